/* Bodies that are a chain: each node is a function of the one before it and of constants. */
#ifndef FACULA_PASSES_BODY_CHAIN_H
#define FACULA_PASSES_BODY_CHAIN_H
#include "graph/graph_internal.h"

/* NULL is one of no node. */
bool fac_body_is_chain(const fac_graph *body);
/* The same chain on a value of this type.  NULL: a constant of it does not fit that; or memory is
 * gone, which is an error of `to`. */
fac_graph *fac_body_resized(fac_graph *to, const fac_graph *body, fac_type type);
#endif
