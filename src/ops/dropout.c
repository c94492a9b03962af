/* Dropout, of which so far only inference exists: the noise comes with training. */
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"

#if FAC_INTERFACE
/* Inference: y = x.  Output 1, the mask: all true.  ratio in [0, 1) is what training would drop.  f32 f64 f16 bf16. */
fac_value *fac_dropout(fac_value *x, double ratio);
#endif

typedef struct attrs { double ratio; } attrs;
static const fac_attr table[] = {
    { "ratio", FAC_A_REAL, offsetof(attrs, ratio), 0, 0, 0, 1, NULL, "what training would drop" }, { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 }, { "mask", FAC_BOOLS, FAC_OPTIONAL }, { 0 } };

static bool infer(fac_node *n) {
    n->out[0]->type = n->in[0]->type;
    n->out[1]->type = (fac_type){ FAC_BOOL, n->in[0]->type.dims };
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    int64_t n = fac_dims_count(&r->in[0].type.dims);
    for (int64_t i = 0; i < n; i++) {
        if (r->out[0].f) r->out[0].f[i] = r->in[0].f[i];
        if (r->out[1].i) r->out[1].i[i] = 1;
    }
    return FAC_OK;
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 0, to); }

/* A constant number or flag; false when it is not constant.  Absent: `missing`. */
static bool constant(const fac_value *v, double missing, double *to) {
    *to = missing;
    if (!v) return true;
    fac_tensor *t = fac_value_tensor(v), *as = NULL;
    if (!t || v->leaf != FAC_CONST) return false;
    bool good = fac_tensor_convert(t, FAC_F64, &as, NULL) == FAC_OK && fac_tensor_read(as, to, sizeof *to, NULL) == FAC_OK;
    fac_tensor_free(as);
    return good;
}

/* opset 7 and 10: an attribute, inference only (the mask of 7 has x's dtype); since 12: inputs ratio and training_mode. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *y[]) {
    double ratio = fac_onnx_real(n, "ratio", 0.5), training = 0;
    if (n->opset >= 12) {
        bool known = constant(n->nin > 2 ? in[2] : NULL, 0, &training);
        if (!known || training) {
            bool none = constant(n->nin > 1 ? in[1] : NULL, 0.5, &ratio) && ratio == 0;
            if (!none) {
                y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "Dropout: training_mode must be constant and off, or ratio 0");
                return;
            }
        } else constant(n->nin > 1 ? in[1] : NULL, 0.5, &ratio);
    }
    if (n->nout < 2) {
        y[0] = in[0];
        return;
    }
    y[0] = fac_dropout(in[0], ratio);
    y[1] = fac_value_other(y[0], 1);
    if (n->opset < 10) y[1] = fac_cast(y[1], fac_value_type(in[0]).dtype);
}

static const fac_onnx_attr spellings[] = { { "seed", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Dropout", 7, 0, spellings, load }, { 0 } };
static const fac_case cases[] = { { "dropout(f32[3,4]) ratio=0.5", -1, 1, 0 }, { "dropout(f32[0,4])", 0, 0, 0 }, { 0 } };

extern const fac_op fac_op_dropout;
const fac_op fac_op_dropout = {
    .name = "dropout", .doc = "x, of which training would drop some elements", .in = fac_ports_x, .out = out, .attrs = table,
    .attrs_size = sizeof(attrs), .infer = infer, .ref = ref, .cost = cost, .onnx = onnx, .cases = cases,
};
fac_value *fac_dropout(fac_value *x, double ratio) { return fac_emit(&fac_op_dropout, &(attrs){ ratio }, 1, &x); }
