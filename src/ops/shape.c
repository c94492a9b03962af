#include "base/clamp.h"
#include "ops/shape.h"

#if FAC_INTERFACE
fac_value *fac_shape_of(fac_value *x); /* the dims of x, i64[rank]; the data of x are not needed */
#endif

typedef struct attrs {
    int64_t start, without;
} attrs;
static const fac_attr table[] = { { "start", FAC_A_INT, offsetof(attrs, start), 0, 0, 0, FAC_DIMS,
                                    NULL, "the first dim that is given" },
                                  { "without", FAC_A_INT, offsetof(attrs, without), 0, 0, 0,
                                    FAC_DIMS, NULL, "how many of the last dims are not" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, FAC_SHAPE_ONLY }, { 0 } };

extern const fac_op fac_op_shape;

static bool infer(fac_node *n) {
    const attrs *a = n->attrs;
    const fac_dims *x = &n->in[0]->type.dims;
    fac_contents c = { 0 };
    for (int k = (int)a->start; k < x->n - a->without; k++)
        fac_contents_put(&c, c.n++, (fac_item){ x->d[k], x->d[k] < 0 });
    n->out[0]->type = (fac_type){ FAC_I64, fac_shape(c.n) };
    return fac_knows_items(n, &c);
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const attrs *a = r->attrs;
    const fac_dims *x = &r->in[0].type.dims;
    (void)err;
    for (int k = (int)a->start; k < x->n - a->without; k++) r->out[0].i[k - a->start] = x->d[k];
    return FAC_OK;
}

/* start and end may be negative, and are cut off at the rank. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[], fac_value *out[]) {
    const int rank = fac_value_type(ins[0]).dims.n;
    int64_t start = fac_onnx_int(n, "start", 0), end = fac_onnx_int(n, "end", rank);
    if (ins[0]->guess == FAC_RANKLESS && (fac_onnx_has(n, "end") || start < 0)) {
        out[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED,
                                "Shape with start and end needs the number of dims of its input");
        return;
    }
    if (start < 0) start += rank;
    if (end < 0) end += rank;
    if (ins[0]->guess != FAC_RANKLESS) start = fac_clamp(start, 0, rank);
    end = fac_clamp(end, start, rank);
    const int64_t without = ins[0]->guess == FAC_RANKLESS ? 0 : rank - end;
    out[0] = fac_emit(&fac_op_shape, &(attrs){ start, without }, 1, ins);
}
static const fac_onnx_attr names[] = { { "start", NULL }, { "end", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Shape", 1, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    if ((a->start || a->without) && w->opset < 15) return false;
    fac_onnx_put(w, "Shape", 1, (const char *[]){ fac_onnx_name(w, n->in[0]) },
                 fac_onnx_name(w, n->out[0]));
    if (a->start) fac_onnx_put_int(w, "start", a->start);
    if (a->without) fac_onnx_put_int(w, "end", -a->without);
    return true;
}

static const fac_case cases[] = { { "shape(f32[2,3,4])", -4, 4, 0 },
                                  { "shape(f32[2,3,4]) start=1 without=1", -4, 4, 0 },
                                  { "shape(bool[0,7])", 0, 0, 0 },
                                  { "shape(f16[])", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_shape = {
    .name = "shape",
    .doc = "the dims of x",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD | FAC_OP_KNOWS,
    .infer = infer,
    .ref = ref,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_shape_of(fac_value *x) { return fac_emit(&fac_op_shape, NULL, 1, &x); }
