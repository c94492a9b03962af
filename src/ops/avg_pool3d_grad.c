/* The gradient of three-dimensional average pooling. */
#include "ops/pool_grad.h"

#if FAC_INTERFACE
/* As fac_avg_pool2d_grad with a depth in front. */
fac_value *fac_avg_pool3d_grad(fac_value *x, fac_value *dy, const int64_t kernel[3],
                               const fac_pool3d_opts *opts);
#endif

static const fac_case cases[] = {
    { "avg_pool3d_grad(f32[1,2,5,6,7], f32[1,2,6,3,3]) kernel=2,3,2 stride=1,2,3 pad=1,0,1,1,1,1",
      -1, 1, 1e-6 },
    { "avg_pool3d_grad(f32[1,1,7,7,7], f32[1,1,3,2,3]) kernel=2,3,2", -1, 1, 1e-6 },
    { 0 }
};

extern const fac_op fac_op_avg_pool3d_grad;
const fac_op fac_op_avg_pool3d_grad = {
    .name = "avg_pool3d_grad",
    .doc = "the gradient of three-dimensional average pooling",
    .in = fac_avg_pool_grad_in,
    .out = fac_pool_grad_out,
    .attrs = fac_pool3d_table,
    .attrs_size = sizeof(fac_pool3d_attrs),
    .infer = fac_pool_grad_infer,
    .ref = fac_avg_pool3d_grad_ref,
    .grad = fac_avg_pool_grad_grad,
    .cost = fac_pool_grad_cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_avg_pool3d_grad(fac_value *x, fac_value *dy, const int64_t kernel[3],
                               const fac_pool3d_opts *opts) {
    fac_pool3d_attrs a = { .kernel = { kernel[0], kernel[1], kernel[2] } };
    if (opts) a.o = *opts;
    return fac_emit(&fac_op_avg_pool3d_grad, &a, 2, (fac_value *[]){ x, dy });
}
