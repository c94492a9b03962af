/* What passes that shrink a model for good ask of its leaves: contents that no run changes. */
#ifndef FACULA_PASSES_FROZEN_H
#define FACULA_PASSES_FROZEN_H
#include "graph/graph_internal.h"

/* A constant, or a parameter without an update. */
static inline bool fac_frozen(const fac_value *v) {
    return v && v->leaf != FAC_NOT_LEAF && v->leaf != FAC_INPUT && v->leaf != FAC_POISON &&
           v->tensor && !v->next;
}

/* The number that all elements of a frozen leaf are (one of them at least). */
bool fac_frozen_number(const fac_value *v, double *x);
static inline bool fac_frozen_is(const fac_value *v, double x) {
    double is;
    return fac_frozen_number(v, &is) && is == x;
}

/* The name and scope of a node that goes away with its graph, for what takes its place. */
void fac_named_like(fac_value *v, const fac_node *n);
#endif
