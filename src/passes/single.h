/* Whether a value may disappear into its only reader. */
#ifndef FACULA_PASSES_SINGLE_H
#define FACULA_PASSES_SINGLE_H
#include "graph/graph_internal.h"

/* One use in all: neither read twice nor an output of the graph nor the next contents of a parameter. */
static inline bool fac_used_once(const fac_value *v) {
    if (!v->uses || v->uses->next) return false;
    for (size_t i = 0; i < v->graph->noutputs; i++)
        if (v->graph->outputs[i].value == v) return false;
    for (size_t i = 0; i < v->graph->nparams; i++)
        if (v->graph->params[i]->next == v) return false;
    return true;
}
#endif
