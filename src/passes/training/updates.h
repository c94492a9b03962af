/* Between the files of the pass that fuses updates: updates.c finds the tail of a graph and its
 * parts, updates_emit.c makes nodes of them. */
#ifndef FACULA_PASSES_UPDATES_H
#define FACULA_PASSES_UPDATES_H
#include "passes/passes.h"

enum { FAC_TAIL_INPUTS = 16, FAC_TAIL_OUTPUTS = 16, FAC_TAIL_NODES = 64 }; /* of a part */

typedef struct fac_tail_part {
    fac_graph *body;
    fac_value *in[FAC_TAIL_INPUTS],
        *out[FAC_TAIL_OUTPUTS]; /* of the graph: what it reads and what others read of it */
    int nin, nout, nodes, level, number;
    size_t bytes;    /* of what it reads that is no leaf */
    fac_node *after; /* the node after which it may stand; NULL: anywhere */
    bool refused;
} fac_tail_part;

typedef struct fac_tail {
    fac_graph *g;
    fac_accept *accept;
    void *self;
    unsigned char *excluded; /* by node id: belongs to a part that was refused    */
    uint32_t ids;            /* of the graph before anything was emitted          */
    int *part_of;            /* by node id: number of its part + 1; 0: not in it  */
    int *leader;             /* by node id: while parts are found, of a forest    */
    uint32_t *updates;       /* by value id: how many parameters become it        */
    fac_value **owner;       /* by value id: the parameter that becomes it        */
    fac_value **became;      /* by value id: what stands for it now               */
    fac_node **by_id;        /* nodes of the tail                                 */
    fac_tail_part *parts;
    int nparts;
} fac_tail;

static inline bool fac_in_tail(const fac_tail *t, const fac_node *n) {
    return n && t->by_id[n->id];
}
static inline fac_tail_part *fac_tail_part_with(const fac_tail *t, const fac_value *v) {
    return fac_in_tail(t, v->node) ? &t->parts[t->part_of[v->node->id] - 1] : NULL;
}

/* ---- updates_emit.c ---- */

/* Would a kernel take this part? */
bool fac_tail_accepts(fac_tail *t, fac_tail_part *p);
/* All parts, in their levels, as few nodes; false when memory is gone. */
bool fac_tail_emit(fac_tail *t);
/* Parameters become what those nodes make. */
void fac_tail_relink(fac_tail *t);
#endif
