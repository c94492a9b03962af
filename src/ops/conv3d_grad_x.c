/* The gradient of a three-dimensional convolution with respect to its input. */
#include "ops/conv_grad.h"

#if FAC_INTERFACE
/* As fac_conv2d_grad_x with a depth in front. */
fac_value *fac_conv3d_grad_x(fac_value *dy, fac_value *w, fac_value *x,
                             const fac_conv3d_opts *opts);
#endif

static const fac_case cases[] = {
    { "conv3d_grad_x(f32[1,3,6,2,7], f32[3,2,2,3,3], f32[1,2,5,6,7]) stride=1,2,1 pad=1,0,1,1,0,1",
      -1, 1, 2e-5 },
    { "conv3d_grad_x(f32[2,4,2,5,2], f32[4,2,3,1,2], f32[2,4,6,5,5]) dilation=2,1,3 groups=2", -1,
      1, 2e-5 },
    { "conv3d_grad_x(f32[0,2,2,2,2], f32[2,1,3,3,3], f32[0,1,4,4,4])", -1, 1, 0 },
    { 0 }
};

extern const fac_op fac_op_conv3d_grad_x;
const fac_op fac_op_conv3d_grad_x = {
    .name = "conv3d_grad_x",
    .doc = "the gradient of a three-dimensional convolution with respect to its input",
    .in = fac_conv_grad_x_in,
    .out = fac_conv_grad_x_out,
    .attrs = fac_conv3d_table,
    .attrs_size = sizeof(fac_conv3d_opts),
    .infer = fac_conv_grad_infer,
    .ref = fac_conv3d_grad_x_ref,
    .grad = fac_conv_grad_x_grad,
    .cost = fac_conv_grad_cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_conv3d_grad_x(fac_value *dy, fac_value *w, fac_value *x,
                             const fac_conv3d_opts *opts) {
    return fac_emit(&fac_op_conv3d_grad_x, opts, 3, (fac_value *[]){ dy, w, x });
}
