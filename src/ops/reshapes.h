/* A fact of ops that only their meaning tells: which ones give the elements of x as they lie. */
#ifndef FACULA_OPS_RESHAPES_H
#define FACULA_OPS_RESHAPES_H
#include "ops/shape.h"

/* n, if there is one, gives all elements of input 0, in their order, in another shape: reshape,
 * flatten, squeeze, unsqueeze.
 */
static inline bool fac_node_reshapes(const fac_node *n) {
    return n && n->op->move == fac_move_flat;
}
#endif
