/* fac_nn_linear: a fully connected layer and its parameters. */
#include <math.h>
#include "nn/nn_internal.h"

/* Weight and bias start uniform within 1 / sqrt(in), as torch.nn.Linear does. */
static fac_value *linear(fac_value *x, int features) {
    fac_graph *g = x->graph;
    int64_t in = x->type.dims.n ? x->type.dims.d[x->type.dims.n - 1] : -1;
    if (in < 1 || features < 1)
        return fac_graph_raise(g, FAC_E_SHAPE, "%s: linear to %d features: the last dim of x must be a known size, x has %d dims",
                               g->scope, features, x->type.dims.n);
    const float bound = (float)(1 / sqrt((double)in));
    const fac_nn_init uniform = { -bound, bound };
    fac_value *w = fac_nn_leaf(g, FAC_PARAM, "weight", x->type.dtype, fac_shape(features, in), uniform);
    fac_value *b = fac_nn_leaf(g, FAC_PARAM, "bias", x->type.dtype, fac_shape(features), uniform);
    return fac_linear(x, w, b);
}

fac_value *fac_nn_linear(fac_value *x, const char *name, int features) {
    fac_graph *g = x->graph;
    if (g->error.status) return g->poison;
    fac_graph_push(g, name);
    fac_value *y = linear(x, features);
    fac_graph_pop(g);
    return y;
}
