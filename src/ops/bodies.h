/* Ops that are what their body says: `fused`, a chain of elementwise ops, and `group`, independent
 * nodes. */
#ifndef FACULA_OPS_BODIES_H
#define FACULA_OPS_BODIES_H
#include "facula/op.h"

/* The body's inputs are those of the node, its outputs the node's. */
bool fac_bodies_infer(fac_node *n);
/* The nodes of the body in place of the node. */
void fac_bodies_expand(const fac_node *n, fac_value *y[]);
/* The sum over the nodes of the body. */
void fac_bodies_cost(const fac_node *n, fac_cost *cost);
#endif
