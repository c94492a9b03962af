#include "ops/known.h"
#include "facula/ops.h"

#if FAC_INTERFACE
fac_value *fac_identity(fac_value *x); /* x, any dtype: a view */
#endif

/* Also dropout at inference and other nodes that ONNX files hold and that mean nothing. */
static bool infer(fac_node *n) {
    fac_contents c;
    if (!fac_infer_same(n)) return false;
    return !fac_known(n->in[0], &c) || fac_knows_items(n, &c);
}
static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    (void)input;
    for (int k = 0; k < m->out.n; k++) from[k] = to[k];
    return true;
}
static bool view(const fac_node *n, const fac_layout *in, fac_layout *out) {
    (void)n;
    *out = *in;
    return true;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    (void)n;
    dx[0] = dy[0];
}
static const fac_onnx onnx[] = { { "", "Identity", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "identity(f32[2,3])", -4, 4, 0 },
                                  { "identity(bool[3])", 0, 1, 0 },
                                  { "identity(f16[])", -4, 4, 0 },
                                  { "identity(u64[0,2])", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_identity = {
    .name = "identity",
    .doc = "x",
    .in = fac_ports_any_x,
    .out = fac_ports_y,
    .is = FAC_OP_KNOWS,
    .infer = infer,
    .move = move,
    .view = view,
    .onnx = onnx,
    .grad = grad,
    .cases = cases,
    .torch = "Identity",
    .mixed = FAC_MIXED_FOLLOWS,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_identity(fac_value *x) { return fac_emit(&fac_op_identity, NULL, 1, &x); }
