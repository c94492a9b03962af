/* fac_nn_linear: a fully connected layer and its parameters. */
#include <math.h>
#include "nn/nn_internal.h"

/* Weight and bias start uniform within 1 / sqrt(in), as torch.nn.Linear does. */
static fac_value *linear(fac_value *x, int features, const fac_nn_linear_opts *o) {
    int64_t in = x->type.dims.n ? x->type.dims.d[x->type.dims.n - 1] : -1;
    if (in < 1 || features < 1)
        return fac_graph_raise(
            x->graph, FAC_E_SHAPE,
            "%s: linear to %d features: the last dim of x must be a known size, x has "
            "%d dims",
            x->graph->scope, features, x->type.dims.n);
    const fac_init usual = fac_init_within(1 / sqrt((double)in));
    fac_value *w = fac_nn_param(x, "weight", fac_shape(features, in), &o->weight, usual);
    return fac_linear(
        x, w, o->no_bias ? NULL : fac_nn_param(x, "bias", fac_shape(features), &o->bias, usual));
}

fac_value *fac_nn_linear_with(fac_value *x, const char *name, int features,
                              const fac_nn_linear_opts *opts) {
    static const fac_nn_linear_opts defaults;
    fac_graph *g = x->graph;
    if (g->error.status) return g->poison;
    fac_graph_push(g, name);
    fac_value *y = linear(x, features, opts ? opts : &defaults);
    fac_graph_pop(g);
    return y;
}

fac_value *fac_nn_linear(fac_value *x, const char *name, int features) {
    return fac_nn_linear_with(x, name, features, NULL);
}
