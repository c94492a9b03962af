/* What the op conv2d_basis, the pass that makes it and its solvers agree on. */
#ifndef FACULA_OPS_CONV_BASIS_H
#define FACULA_OPS_CONV_BASIS_H
#include "ops/conv.h"

/* Ports behind x, w and b. */
enum { FAC_BASIS_X = 3, FAC_BASIS_W, FAC_BASIS_SCALE, FAC_BASIS_PORTS };
typedef struct fac_conv2d_basis_attrs { fac_conv2d_opts conv; } fac_conv2d_basis_attrs;
extern const fac_op fac_op_conv2d_basis;
#endif
