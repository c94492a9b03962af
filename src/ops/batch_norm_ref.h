/* The reference of batch normalization's gradient, with and without the mask of an activation. */
#ifndef FACULA_OPS_BATCH_NORM_REF_H
#define FACULA_OPS_BATCH_NORM_REF_H
#include "facula/op.h"

/* Inputs 0, 1, 2 of r are x, dy, scale; y (NULL: no mask) says where dy counts: lo < y < hi. */
void fac_batch_norm_grad_ref(const fac_ref *r, double epsilon, const double *y, double lo,
                             double hi);
#endif
