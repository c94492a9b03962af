/* The gradient of two-dimensional max pooling. */
#include "ops/pool_grad.h"

#if FAC_INTERFACE
/* dx: each dy[n,c,p,q] is added to where the maximum of its window of x was, the first one in
 * memory when there are several, as fac_max_pool2d with these options has it.  x N,C,H,W  dy
 * N,C,P,Q  dx N,C,H,W.  f32 f64 f16 bf16. */
fac_value *fac_max_pool2d_grad(fac_value *x, fac_value *dy, int64_t kernel_height,
                               int64_t kernel_width, const fac_pool2d_opts *opts);
#endif

static const fac_case cases[] = {
    { "max_pool2d_grad(f32[1,3,8,8], f32[1,3,4,4]) kernel=2,2", -1, 1, 1e-6 },
    { "max_pool2d_grad(f32[2,3,11,9], f32[2,3,6,5]) kernel=3,3 stride=2,2 pad=1,1,1,1", -1, 1,
      1e-6 },
    { "max_pool2d_grad(f32[1,5,13,10], f32[1,5,7,4]) kernel=3,2 stride=2,3 pad=1,0,0,1 ceil_mode",
      -1, 1, 1e-6 },
    { "max_pool2d_grad(f32[1,2,12,12], f32[1,2,9,8]) kernel=2,3 stride=1,1 dilation=3,2", -1, 1,
      1e-6 },
    { "max_pool2d_grad(f32[1,2,9,7], f32[1,2,5,4]) kernel=3,3 stride=2,2 auto_pad=same_upper", -1,
      1, 1e-6 },
    { "max_pool2d_grad(f32[0,2,6,6], f32[0,2,3,3]) kernel=2,2", -1, 1, 0 },
    { "max_pool2d_grad(f16[1,2,6,6], f16[1,2,3,3]) kernel=2,2", -1, 1, 1e-3 },
    { 0 }
};

extern const fac_op fac_op_max_pool2d_grad;
const fac_op fac_op_max_pool2d_grad = {
    .name = "max_pool2d_grad",
    .doc = "the gradient of two-dimensional max pooling",
    .in = fac_max_pool_grad_in,
    .out = fac_pool_grad_out,
    .attrs = fac_pool2d_table,
    .attrs_size = sizeof(fac_pool2d_attrs),
    .infer = fac_pool_grad_infer,
    .ref = fac_max_pool2d_grad_ref,
    .grad = fac_max_pool_grad_grad,
    .cost = fac_pool_grad_cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_max_pool2d_grad(fac_value *x, fac_value *dy, int64_t kernel_height,
                               int64_t kernel_width, const fac_pool2d_opts *opts) {
    fac_pool2d_attrs a = { .kernel = { kernel_height, kernel_width } };
    if (opts) a.o = *opts;
    return fac_emit(&fac_op_max_pool2d_grad, &a, 2, (fac_value *[]){ x, dy });
}
