/* fac_nn_prelu: a rectifier whose slope below zero is learned (He et al. 2015). */
#include "nn/nn_internal.h"
#include "ops/grad.h"

static fac_value *prelu(fac_value *x, int count) {
    const int rank = x->type.dims.n;
    if (count < 1 || (count > 1 && (rank < 2 || x->type.dims.d[1] != count)))
        return fac_graph_raise(x->graph, FAC_E_SHAPE, "%s: prelu of %d slopes; x has %d dims",
                               x->graph->scope, count, rank);
    fac_value *w = fac_nn_param(x, "weight", fac_shape(count), NULL, fac_init_constant(0.25));
    return fac_prelu(x, count > 1 ? fac_grad_of_channels(w, x) : w);
}

fac_value *fac_nn_prelu(fac_value *x, const char *name, int count) {
    fac_graph *g = x->graph;
    if (g->error.status) return g->poison;
    fac_graph_push(g, name);
    fac_value *y = prelu(x, count);
    fac_graph_pop(g);
    return y;
}
