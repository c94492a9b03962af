#include "facula/op.h"
#include "ops/onnx_put.h"

/* fac_stop is declared in facula/graph.h. */
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
/* It matters to gradients only. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    return fac_onnx_unary(w, "Identity", fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->out[0])) !=
           NULL;
}

static const fac_case cases[] = { { "stop(f32[2,3])", -4, 4, 0 },
                                  { "stop(i64[])", -4, 4, 0 },
                                  { 0 } };

const fac_op fac_op_stop = {
    .name = "stop",
    .doc = "x, through which no gradient flows",
    .in = fac_ports_any_x,
    .out = fac_ports_y,
    .is = FAC_OP_NO_GRAD,
    .infer = fac_infer_same,
    .move = move,
    .view = view,
    .save = save,
    .cases = cases,
    .mixed = FAC_MIXED_FOLLOWS,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_stop(fac_value *x) { return fac_emit(&fac_op_stop, NULL, 1, &x); }
