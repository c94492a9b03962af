/* The gradient of softmax. */
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/softmax.h"

#if FAC_INTERFACE
/* dx = y (dy - sum of dy y) along one axis, y being the result of softmax; a negative axis counts
 * from the end. */
fac_value *fac_softmax_grad(fac_value *y, fac_value *dy, int64_t axis);
#endif

static void expand(const fac_node *n, fac_value *to[]) {
    fac_value *y = n->in[0], *dy = n->in[1];
    to[0] = fac_mul(y, fac_sub(dy, fac_sum(fac_mul(dy, y), fac_softmax_axis(n), true)));
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 4, to); }

static const fac_case cases[] = { { "softmax_grad(f32[2,5], f32[2,5]) axis=1", -2, 2, 1e-5 },
                                  { "softmax_grad(f32[3,4,5], f32[3,4,5]) axis=0", -2, 2, 1e-5 },
                                  { "softmax_grad(f32[7,100], f32[7,100]) axis=-1", -1, 1, 1e-5 },
                                  { "softmax_grad(f32[2,1,6], f32[2,1,6]) axis=1", -2, 2, 1e-5 },
                                  { "softmax_grad(f32[2,5,1], f32[2,5,1]) axis=1", -2, 2, 1e-5 },
                                  { "softmax_grad(f32[3,0], f32[3,0]) axis=-1", 0, 0, 0 },
                                  { 0 } };

extern const fac_op fac_op_softmax_grad;
const fac_op fac_op_softmax_grad = {
    .name = "softmax_grad",
    .doc = "the gradient of softmax",
    .in = fac_softmax_grad_in,
    .out = fac_softmax_grad_out,
    .attrs = fac_softmax_table,
    .attrs_size = sizeof(fac_softmax_attrs),
    .infer = fac_softmax_grad_infer,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_softmax_grad(fac_value *y, fac_value *dy, int64_t axis) {
    return fac_emit(&fac_op_softmax_grad, &(fac_softmax_attrs){ axis }, 2,
                    (fac_value *[]){ y, dy });
}
