/* Whether a value may disappear into its only reader. */
#ifndef FACULA_PASSES_SINGLE_H
#define FACULA_PASSES_SINGLE_H
#include "graph/graph_internal.h"

/* One use in all: neither read twice nor an output of the graph nor the next contents of a parameter. */
static inline bool fac_used_once(const fac_value *v) { return v->uses && !v->uses->next && !v->roots; }
#endif
