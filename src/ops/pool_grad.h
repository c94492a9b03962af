/* What max_pool2d_grad, avg_pool2d_grad and their three-dimensional kin share. */
#ifndef FACULA_OPS_POOL_GRAD_H
#define FACULA_OPS_POOL_GRAD_H
#include "ops/pool.h"

/* Of such a node whose sizes are all numbers, as the pooling that it belongs to; false when it is
 * another op. */
bool fac_pool_grad_geometry(const fac_node *n, fac_pool_geom *g);

/* Of the pool ops. */
void fac_max_pool_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]);
void fac_avg_pool_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]);
/* Of the gradient ops; ports of both: x first, dy second. */
bool fac_pool_grad_infer(fac_node *n);
void fac_pool_grad_cost(const fac_node *n, fac_cost *cost);
void fac_max_pool_grad_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]);
void fac_avg_pool_grad_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]);
fac_status fac_max_pool2d_grad_ref(const fac_ref *r, fac_error *err);
fac_status fac_max_pool3d_grad_ref(const fac_ref *r, fac_error *err);
fac_status fac_avg_pool2d_grad_ref(const fac_ref *r, fac_error *err);
fac_status fac_avg_pool3d_grad_ref(const fac_ref *r, fac_error *err);
extern const fac_port fac_max_pool_grad_in[], fac_avg_pool_grad_in[], fac_pool_grad_out[];
#endif
