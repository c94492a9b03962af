/* The gradient of a three-dimensional convolution with respect to its weight. */
#include "ops/conv_grad.h"

#if FAC_INTERFACE
/* As fac_conv2d_grad_w with a depth in front. */
fac_value *fac_conv3d_grad_w(fac_value *x, fac_value *dy, fac_value *w,
                             const fac_conv3d_opts *opts);
#endif

static const fac_case cases[] = {
    { "conv3d_grad_w(f32[1,2,5,6,7], f32[1,3,6,2,7], f32[3,2,2,3,3]) stride=1,2,1 pad=1,0,1,1,0,1",
      -1, 1, 2e-5 },
    { "conv3d_grad_w(f32[2,4,6,5,5], f32[2,4,2,5,2], f32[4,2,3,1,2]) dilation=2,1,3 groups=2", -1,
      1, 2e-5 },
    { "conv3d_grad_w(f32[0,1,4,4,4], f32[0,2,2,2,2], f32[2,1,3,3,3])", -1, 1, 0 },
    { 0 }
};

extern const fac_op fac_op_conv3d_grad_w;
const fac_op fac_op_conv3d_grad_w = {
    .name = "conv3d_grad_w",
    .doc = "the gradient of a three-dimensional convolution with respect to its weight",
    .in = fac_conv_grad_w_in,
    .out = fac_conv_grad_w_out,
    .attrs = fac_conv3d_table,
    .attrs_size = sizeof(fac_conv3d_opts),
    .infer = fac_conv_grad_infer,
    .ref = fac_conv3d_grad_w_ref,
    .grad = fac_conv_grad_w_grad,
    .cost = fac_conv_grad_cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_conv3d_grad_w(fac_value *x, fac_value *dy, fac_value *w,
                             const fac_conv3d_opts *opts) {
    return fac_emit(&fac_op_conv3d_grad_w, opts, 3, (fac_value *[]){ x, dy, w });
}
