/* Lists of layers. */
#include <stdio.h>
#include "nn/nn_internal.h"

static fac_value *apply(fac_value *x, const fac_nn_layer *l, const char *name) {
    const int kinds = (l->op != NULL) + (l->sized != NULL) + (l->norm != NULL) + (l->conv != NULL) +
                      (l->dropout != 0);
    if (kinds != 1)
        return fac_graph_raise(
            x->graph, FAC_E_ARGUMENT,
            "%s.%s: a layer is one of op, sized, norm, conv, dropout; %d are given",
            x->graph->scope, name, kinds);
    if (l->op) return l->op(x);
    if (l->sized) return l->sized(x, name, l->size);
    if (l->norm) return l->norm(x, name, l->eps);
    if (l->conv) return l->conv(x, name, l->size, l->kernel, &l->opts);
    return fac_nn_dropout(x, l->dropout);
}

fac_value *fac_nn_sequential(fac_value *x, const char *name, int n, const fac_nn_layer layers[]) {
    fac_graph *g = x->graph;
    if (g->error.status) return g->poison;
    fac_graph_push(g, name);
    for (int k = 0; k < n && !g->error.status; k++) {
        char place[16];
        snprintf(place, sizeof place, "%d", k);
        x = apply(x, &layers[k], layers[k].name ? layers[k].name : place);
    }
    fac_graph_pop(g);
    return x;
}

fac_value *fac_nn_residual(fac_value *x, const char *name, int n, const fac_nn_layer layers[]) {
    return fac_add(x, fac_nn_sequential(x, name, n, layers));
}
