/* What the op conv2d_basis, the pass that makes it and its solvers agree on. */
#ifndef FACULA_OPS_CONV_BASIS_H
#define FACULA_OPS_CONV_BASIS_H
#include "ops/conv.h"

/* Ports. */
enum { FAC_CB_X, FAC_CB_BITS, FAC_CB_B, FAC_CB_X_BASIS, FAC_CB_W_BASIS, FAC_CB_SCALE,
       FAC_CB_PORTS };

/* The convolution's own first: what reads those of conv2d reads them here. */
typedef struct fac_conv_basis_attrs {
    fac_conv2d_opts conv;
    fac_dims        dims;           /* of the weight: K, C/groups, R, S */
    bool            relu;           /* of x, before it is quantized     */
} fac_conv_basis_attrs;
extern const fac_op fac_op_conv2d_basis;

/* false: sizes are open. */
static inline bool fac_conv_basis_geometry(const fac_node *n, fac_conv_geom *g) {
    const fac_conv_basis_attrs *a = n->attrs;
    return fac_conv_geometry_of(2, &a->conv, &n->in[0]->type.dims, &a->dims, g);
}
#endif
