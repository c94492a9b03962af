/* Ops that belong together by what they do, whatever they are called. */
#ifndef FACULA_OPS_FAMILIES_H
#define FACULA_OPS_FAMILIES_H
#include "facula/op.h"

/* Convolutions: transposed ones, gradients, and those that do something more. */
bool fac_op_convolves(const fac_op *op);
/* Of pools and their gradients: those that average. */
bool fac_op_averages(const fac_op *op);
#endif
