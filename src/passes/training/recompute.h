/* Between the files of the recompute pass: what is known of a graph, which values are kept, and the
 * graph that follows. */
#ifndef FACULA_PASSES_RECOMPUTE_H
#define FACULA_PASSES_RECOMPUTE_H
#include "facula/recompute.h"
#include "graph/graph_internal.h"

enum { FAC_STAGE_AGAIN = 1 }; /* fac_node.stage of what is made again */

/* Forward: nodes of each run that the outputs need.  A view and what it looks at are one piece of
 * memory, named by the latter, its base. */
typedef struct fac_forward {
    const fac_graph *g;
    const fac_node **nodes; /* in their order */
    int n;
    int *place;             /* by id of a node: its place in nodes + 1; 0: it is not forward */
    const fac_value **base; /* by id of a value                                             */
    size_t *bytes;          /* by id of a base                                              */
    int *reader; /* by id of a base: place of the last forward node that reads it; -1: none */
    bool *saved; /* by id of a base: other nodes read it                         */
} fac_forward;

bool fac_forward_new(const fac_graph *g,
                     fac_forward *f); /* false when memory is gone; free it in any case */
void fac_forward_free(fac_forward *f);
/* Made by a forward node. */
static inline bool fac_forward_makes(const fac_forward *f, const fac_value *v) {
    return v && v->node && f->place[v->node->id];
}
/* Products and convolutions: not to be done again lightly. */
bool fac_forward_heavy(const fac_node *n, double *macs);

/* The graph in which everybody but forward nodes reads copies of what is not kept; keep: by id of a
 * base.  NULL: no memory. */
fac_graph *fac_recompute_build(const fac_forward *f, const bool *keep, fac_recompute_stat *stat);
/* Bytes of forward values and copies that are alive at one time, in the order of the nodes;
 * SIZE_MAX: no memory. */
size_t fac_recompute_peak(const fac_graph *g);
#endif
