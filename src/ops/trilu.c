#include "ops/host_list.h"
#include "ops/shape.h"

#if FAC_INTERFACE
fac_value *fac_tril(fac_value *x, int64_t k); /* the last two dims: zero where column - row > k */
fac_value *fac_triu(fac_value *x, int64_t k); /* the last two dims: zero where column - row < k */
#endif

typedef struct attrs {
    bool lower;
} attrs;
static const fac_attr table[] = { { "lower", FAC_A_FLAG, offsetof(attrs, lower), 0, 0, 0, 0, NULL,
                                    "the lower triangle stays" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, 0 },
                               { "k", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { 0 } };

extern const fac_op fac_op_trilu;

static bool infer(fac_node *n) {
    if (n->in[0]->type.dims.n < 2) return fac_fail(n, FAC_E_SHAPE, "x must have at least two dims");
    if (n->in[1] && !fac_may_be_one(n->in[1]))
        return fac_fail(n, FAC_E_SHAPE, "k must be one number");
    return fac_infer_same(n);
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const int rank = m->out.n;
    const int64_t k = m->nin > 1 && m->in[1].i ? m->in[1].i[0] : 0,
                  right = to[rank - 1] - to[rank - 2];
    fac_move_same(m, to, input, from);
    return ((const attrs *)m->attrs)->lower ? right <= k : right >= k;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_emit(&fac_op_trilu, n->attrs, 2, (fac_value *[]){ dy[0], n->in[1] });
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[], fac_value *out[]) {
    (void)g;
    out[0] = fac_emit(&fac_op_trilu, &(attrs){ !fac_onnx_int(n, "upper", 1) }, n->nin, ins);
}
static const fac_onnx_attr names[] = { { "upper", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Trilu", 14, 0, names, load, 0 },
                                 { "com.microsoft", "Trilu", 1, 0, names, load, 0 },
                                 { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_ranked(w, n->in[1], 0) };
    if (w->opset < 14) return false;
    fac_onnx_put(w, "Trilu", 2, ins, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "upper", !((const attrs *)n->attrs)->lower);
    return true;
}

static const fac_case cases[] = {
    { "trilu(f32[4,5])", -4, 4, 0 },         { "trilu(f32[2,5,4], i64(-1)) lower", -4, 4, 0 },
    { "trilu(i64[3,3], i64(2))", -9, 9, 0 }, { "trilu(bool[3,3], i64(-9)) lower", 0, 1, 0 },
    { "trilu(f16[0,3])", 0, 0, 0 },          { 0 }
};

const fac_op fac_op_trilu = {
    .name = "trilu",
    .doc = "the upper or lower triangle of matrices",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .move = move,
    .onnx = onnx,
    .save = save,
    .grad = grad,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
static fac_value *triangle(fac_value *x, int64_t k, bool lower) {
    return fac_emit(&fac_op_trilu, &(attrs){ lower }, 2,
                    (fac_value *[]){ x, fac_ints(fac_value_graph(x), fac_shape(k)) });
}
fac_value *fac_tril(fac_value *x, int64_t k) { return triangle(x, k, true); }
fac_value *fac_triu(fac_value *x, int64_t k) { return triangle(x, k, false); }
