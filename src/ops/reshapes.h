/* A fact of ops that only their meaning tells: which ones give the elements of x as they lie. */
#ifndef FACULA_OPS_RESHAPES_H
#define FACULA_OPS_RESHAPES_H
#include "ops/shape.h"

/* All elements of input 0, in their order, in another shape: reshape, flatten, squeeze, unsqueeze.
 */
static inline bool fac_op_reshapes(const fac_op *op) { return op->move == fac_move_flat; }
#endif
