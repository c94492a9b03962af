/* Reverse mode one node at a time, for those who keep a history of their own (src/lazy). */
#ifndef FACULA_GRAD_REVERSE_H
#define FACULA_GRAD_REVERSE_H
#include "graph/graph_internal.h"

typedef struct fac_reverse {
    fac_graph *g;
    fac_value **d; /* gradients so far, by value id */
    size_t room;
} fac_reverse; /* { .g = g } is one that begins */

/* dx[i] = the gradient of input i of n, an op of r->g, from dy[k] of its outputs (NULL: not used),
 * for the inputs that need it; else NULL.  The sum is at the first place of an input that is there
 * twice.  false: the op has no gradient.  Errors are the graph's. */
bool fac_reverse_node(fac_reverse *r, fac_node *n, const bool needs[], fac_value *const dy[],
                      fac_value *dx[]);
void fac_reverse_end(fac_reverse *r);
#endif
