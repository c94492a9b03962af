/* What conv2d_grad_x, conv2d_grad_w and their three-dimensional kin share.  A convolution is one
 * sum of products of three things, x, w and dy (a trilinear form); the convolution and its two
 * gradients each leave one of them out, so the gradients of each of the three are the other two. */
#ifndef FACULA_OPS_CONV_GRAD_H
#define FACULA_OPS_CONV_GRAD_H
#include "ops/conv.h"

/* Of a conv_grad_x or conv_grad_w node whose sizes are all numbers, as the convolution that it
 * belongs to. */
bool fac_conv_grad_geometry(const fac_node *n, fac_conv_geom *g);

bool fac_conv_grad_infer(fac_node *n);
void fac_conv_grad_cost(const fac_node *n, fac_cost *cost);
void fac_conv_grad_x_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]);
void fac_conv_grad_w_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]);
fac_status fac_conv2d_grad_x_ref(const fac_ref *r, fac_error *err);
fac_status fac_conv2d_grad_w_ref(const fac_ref *r, fac_error *err);
fac_status fac_conv3d_grad_x_ref(const fac_ref *r, fac_error *err);
fac_status fac_conv3d_grad_w_ref(const fac_ref *r, fac_error *err);
extern const fac_port fac_conv_grad_x_in[], fac_conv_grad_x_out[], fac_conv_grad_w_in[],
    fac_conv_grad_w_out[];
#endif
