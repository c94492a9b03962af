/* What the conv_transpose ops, their reference and the solvers of the backends agree on. */
#ifndef FACULA_OPS_CONV_TRANSPOSE_H
#define FACULA_OPS_CONV_TRANSPOSE_H
#include "ops/conv.h"

/* Of a conv_transpose node whose sizes are all numbers, as the convolution that it turns around:
 * g->in are the spatial dims of y, g->out those of x, C the channels of y and K those of x, so that
 *     y[n, c, i stride + r dilation - pad, ...] += x[n, k, i, ...] w[k, c, r, ...]
 * False when it is another op or a symbol is left. */
bool fac_conv_transpose_geometry(const fac_node *n, fac_conv_geom *g);

/* Shared by the three ops. */
bool fac_conv_transpose_infer(fac_node *n);
bool fac_conv_transpose_save(const fac_onnx_writer *w, const fac_node *n);
void fac_conv_transpose_cost(const fac_node *n, fac_cost *cost);
void fac_conv_transpose_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]);
int64_t fac_conv_transpose_expands(const fac_node *n);
void fac_conv_transpose_expand(const fac_node *n, fac_value *y[]);
fac_status fac_conv_transpose2d_ref(const fac_ref *r, fac_error *err);
fac_status fac_conv_transpose3d_ref(const fac_ref *r, fac_error *err);
#endif
