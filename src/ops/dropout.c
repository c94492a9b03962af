/* Dropout (Hinton et al., 2012).  The noise is a function of (counter, stream, place) alone, Philox
 * of src/base/rng.h, so a seed gives the same noise on any device and number of threads, and the
 * gradient makes it again instead of keeping a mask. */
#include "base/rng.h"
#include "graph/graph_internal.h"
#include "ops/cost.h"
#include "facula/ops.h"

#if FAC_INTERFACE
/* Inference: y = x.  Output 1, the mask: all true.  ratio in [0, 1) is what training would drop.
 * f32 f64 f16 bf16. */
fac_value *fac_dropout(fac_value *x, double ratio);
/* Training: each element is 0 with probability `ratio`, else x / (1 - ratio).  counter: an integer
 * scalar, usually a state that starts with the seed and is updated to counter + 1; every value of
 * it is other noise, and so is every call of this builder. fac_graph_inference turns it into the
 * form above. */
fac_value *fac_dropout_train(fac_value *x, double ratio, fac_value *counter);
#endif

typedef struct attrs {
    double ratio;
    int64_t stream;
    bool training;
} attrs;
static const fac_attr table[] = {
    { "ratio", FAC_A_REAL, offsetof(attrs, ratio), 0, 0, 0, 1, NULL, "how many are dropped" },
    { "stream", FAC_A_INT, offsetof(attrs, stream), 0, 0, 0, 0, NULL,
      "which of the noises of a counter" },
    { "training", FAC_A_FLAG, offsetof(attrs, training), 0, 0, 0, 0, NULL, "drop, by the counter" },
    { 0 }
};
static const fac_port ports[] = { { "x", FAC_FLOATS, 0 },
                                  { "counter", FAC_INTS, FAC_OPTIONAL },
                                  { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 },
                                { "mask", FAC_BOOLS, FAC_OPTIONAL },
                                { 0 } };

extern const fac_op fac_op_dropout;

static bool infer(fac_node *n) {
    if (((const attrs *)n->attrs)->training && (!n->in[1] || n->in[1]->type.dims.n != 0))
        return fac_fail(n, FAC_E_SHAPE, "training needs a counter, an integer scalar");
    n->out[0]->type = n->in[0]->type;
    n->out[1]->type = (fac_type){ FAC_BOOL, n->in[0]->type.dims };
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const attrs *a = r->attrs;
    int64_t n = fac_dims_count(&r->in[0].type.dims);
    for (int64_t i = 0; i < n; i++) {
        bool keep = !a->training || fac_random_uniform((uint64_t)r->in[1].i[0], (uint64_t)a->stream,
                                                       (uint64_t)i) >= a->ratio;
        if (r->out[0].f)
            r->out[0].f[i] = !a->training ? r->in[0].f[i]
                             : keep       ? r->in[0].f[i] / (1 - a->ratio)
                                          : 0;
        if (r->out[1].i) r->out[1].i[i] = keep;
    }
    return FAC_OK;
}

/* Linear in x: the same noise on dy. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = ((const attrs *)n->attrs)->training
                ? fac_emit(n->op, n->attrs, 2, (fac_value *[]){ dy[0], n->in[1] })
                : dy[0];
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 0, to); }

/* A constant number or flag; false when it is not constant.  Absent: `missing`. */
static bool constant(const fac_value *v, double missing, double *to) {
    *to = missing;
    if (!v) return true;
    fac_tensor *t = fac_value_tensor(v), *as = NULL;
    if (!t || v->leaf != FAC_CONST) return false;
    bool good = fac_tensor_convert(t, FAC_F64, &as, NULL) == FAC_OK &&
                fac_tensor_read(as, to, sizeof *to, NULL) == FAC_OK;
    fac_tensor_free(as);
    return good;
}

/* Training in a run: x mask / (1 - ratio), where a run may still say that it is none.  The mask is
 * that of ONNX's reference. */
static void load_training(const fac_onnx_node *n, fac_value *const in[], fac_value *training,
                          fac_value *y[]) {
    fac_value *x = in[0];
    fac_graph *g = fac_value_graph(x);
    const fac_dtype dtype = x->type.dtype;
    fac_value *ratio = n->nin > 1 && in[1] ? fac_cast(in[1], FAC_F64) : fac_number(g, FAC_F64, 0.5);
    fac_value *noise = fac_uniform_mt(fac_shape_of(x), fac_onnx_int(n, "seed", 0));
    fac_value *off = fac_not(fac_cast(training, FAC_BOOL)),
              *mask = fac_or(fac_greater_or_equal(noise, ratio), off);
    fac_value *scale = fac_reciprocal(fac_sub(fac_number(g, FAC_F64, 1), ratio));
    scale = fac_cast(fac_where(off, fac_number(g, FAC_F64, 1), scale), dtype);
    y[0] = fac_where(mask, fac_mul(x, scale), fac_number(g, dtype, 0));
    y[1] = mask;
}

/* opset 7 and 10: an attribute, inference only (the mask of 7 has x's dtype); since 12: inputs
 * ratio and training_mode. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *y[]) {
    (void)g;
    double ratio = fac_onnx_real(n, "ratio", 0.5), training = 0;
    if (n->opset >= 12) {
        bool known = constant(n->nin > 2 ? in[2] : NULL, 0, &training);
        if (!known || training) {
            bool none = constant(n->nin > 1 ? in[1] : NULL, 0.5, &ratio) && ratio == 0;
            if (!none) {
                load_training(n, in, in[2], y);
                return;
            }
        } else
            constant(n->nin > 1 ? in[1] : NULL, 0.5, &ratio);
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
static const fac_onnx onnx[] = { { "", "Dropout", 7, 0, spellings, load, 0 }, { 0 } };
/* Without training it passes x on; the node stays where something reads its mask. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]),
               *mask = fac_onnx_name(w, n->out[1]);
    if (a->training) return false;
    if (!mask) return fac_onnx_put(w, "Identity", 1, &x, y) != NULL;
    fac_onnx_put(w, "Dropout", 2, (const char *[]){ x, fac_onnx_number(w, FAC_F32, a->ratio) },
                 y ? y : "");
    fac_onnx_put_out(w, mask);
    return true;
}

static const fac_case cases[] = { { "dropout(f32[3,4]) ratio=0.5", -1, 1, 0 },
                                  { "dropout(f32[0,4])", 0, 0, 0 },
                                  { "dropout(f32[7,5], i64[]) ratio=0.3 stream=3 training", -2, 2,
                                    1e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *y[]) {
    if (!((const attrs *)n->attrs)->training) y[0] = n->in[0];
}

const fac_op fac_op_dropout = {
    .name = "dropout",
    .doc = "x, of which training would drop some elements",
    .in = ports,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .define = define,
    .torch = "Dropout",
    .mixed = FAC_MIXED_FOLLOWS,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_dropout(fac_value *x, double ratio) {
    return fac_emit(&fac_op_dropout, &(attrs){ .ratio = ratio }, 1, &x);
}
fac_value *fac_dropout_train(fac_value *x, double ratio, fac_value *counter) {
    attrs a = { ratio, x->graph->streams++, true };
    return fac_emit(&fac_op_dropout, &a, 2, (fac_value *[]){ x, counter });
}
