/* See families.h. */
#include "ops/families.h"
#include "op_list.h"

bool fac_op_convolves(const fac_op *op) {
    static const fac_op *const ops[] = { &fac_op_conv1d,
                                         &fac_op_conv2d,
                                         &fac_op_conv2d_grad_w,
                                         &fac_op_conv2d_grad_x,
                                         &fac_op_conv2d_grad_x_norm,
                                         &fac_op_conv2d_max_pool,
                                         &fac_op_conv2d_moments,
                                         &fac_op_conv3d,
                                         &fac_op_conv3d_grad_w,
                                         &fac_op_conv3d_grad_x,
                                         &fac_op_conv_transpose1d,
                                         &fac_op_conv_transpose2d,
                                         &fac_op_conv_transpose3d,
                                         NULL };
    return fac_op_is_one_of(op, ops);
}

bool fac_op_averages(const fac_op *op) {
    static const fac_op *const ops[] = { &fac_op_avg_pool1d,      &fac_op_avg_pool2d,
                                         &fac_op_avg_pool2d_grad, &fac_op_avg_pool3d,
                                         &fac_op_avg_pool3d_grad, NULL };
    return fac_op_is_one_of(op, ops);
}
