/* What fusing passes share: the walk over a graph, and how a new node takes the place of others. */
#ifndef FACULA_PASSES_EACH_H
#define FACULA_PASSES_EACH_H
#include "passes/passes.h"

/* Who decides whether something is fused: at most one of the two functions is there. */
typedef struct fac_judge {
    fac_accept *accept;
    fac_price *price;
    void *self;
} fac_judge;

/* Looks at a node of the graph that is changed; nodes that it adds are not looked at. */
typedef void fac_visit(fac_graph *to, fac_node *n, const fac_judge *by);

/* A copy of g, of which visit saw each node in order, without what nothing reads any more. */
fac_graph *fac_pass_each(const fac_graph *g, fac_visit *visit, const fac_judge *by);

/* A new node gets the name and scope of an old one; the second function: its stage as well. */
void fac_node_named_as(fac_node *n, const fac_node *as);
void fac_node_stands_for(fac_node *n, const fac_node *as);

/* y holds the first results of all[0..n), side by side along the axis: they become slices of it. */
void fac_split_among(fac_value *y, int axis, fac_node *const *all, int n);
#endif
