/* What passes ask of a transpose. */
#ifndef FACULA_OPS_TRANSPOSE_H
#define FACULA_OPS_TRANSPOSE_H
#include "facula/op.h"

/* Dim k of the result of n is dim order[k] of its operand, each from 0.  false: n is no transpose.
 */
bool fac_transpose_order(const fac_node *n, fac_dims *order);
#endif
