/* The gradient of a two-dimensional convolution with respect to its input. */
#include "ops/conv_grad.h"

#if FAC_INTERFACE
/* dx[n,c, p stride + r dilation - pad, ...] = sum of all dy[n,k,p,q] w[k,c,r,s] that meet there,
 * as fac_conv2d with these options has it; shapes as there, and of x only the shape is used.
 * f32 f64 f16 bf16. */
fac_value *fac_conv2d_grad_x(fac_value *dy, fac_value *w, fac_value *x,
                             const fac_conv2d_opts *opts);
#endif

static const fac_case cases[] = {
    { "conv2d_grad_x(f32[1,1,3,3], f32[1,1,3,3], f32[1,1,5,5])", -1, 1, 2e-5 },
    { "conv2d_grad_x(f32[2,5,5,8], f32[5,3,3,2], f32[2,3,9,8]) stride=2,1 pad=1,0,2,1", -1, 1,
      2e-5 },
    { "conv2d_grad_x(f32[1,4,7,7], f32[4,3,3,3], f32[1,6,7,7]) pad=1,1,1,1 groups=2", -1, 1, 2e-5 },
    { "conv2d_grad_x(f32[1,7,6,7], f32[7,1,3,3], f32[1,7,11,13]) stride=2,2 pad=1,1,1,1 groups=7",
      -1, 1, 2e-5 },
    { "conv2d_grad_x(f32[1,3,17,15], f32[3,4,3,5], f32[1,4,17,15]) pad=4,2,4,2 dilation=4,1", -1, 1,
      2e-5 },
    { "conv2d_grad_x(f32[2,24,14,14], f32[24,16,1,1], f32[2,16,14,14])", -1, 1, 2e-5 },
    { "conv2d_grad_x(f32[1,8,5,5], f32[8,3,5,5], f32[1,3,9,9]) stride=2,2 auto_pad=same_upper", -1,
      1, 2e-5 },
    { "conv2d_grad_x(f32[1,3,3,2], f32[3,2,2,2], f32[1,2,10,7]) stride=3,3", -1, 1, 2e-5 },
    { "conv2d_grad_x(f32[0,4,6,6], f32[4,3,3,3], f32[0,3,8,8])", -1, 1, 0 },
    { "conv2d_grad_x(f16[1,4,4,4], f16[4,3,3,3], f16[1,3,6,6])", -1, 1, 8e-3 },
    { "conv2d_grad_x(f64[1,4,4,4], f64[4,3,3,3], f64[1,3,6,6])", -1, 1, 1e-13 },
    { 0 }
};

extern const fac_op fac_op_conv2d_grad_x;
const fac_op fac_op_conv2d_grad_x = {
    .name = "conv2d_grad_x",
    .doc = "the gradient of a two-dimensional convolution with respect to its input",
    .in = fac_conv_grad_x_in,
    .out = fac_conv_grad_x_out,
    .attrs = fac_conv2d_table,
    .attrs_size = sizeof(fac_conv2d_opts),
    .infer = fac_conv_grad_infer,
    .ref = fac_conv2d_grad_x_ref,
    .grad = fac_conv_grad_x_grad,
    .cost = fac_conv_grad_cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_conv2d_grad_x(fac_value *dy, fac_value *w, fac_value *x,
                             const fac_conv2d_opts *opts) {
    return fac_emit(&fac_op_conv2d_grad_x, opts, 3, (fac_value *[]){ dy, w, x });
}
