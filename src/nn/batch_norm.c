/* fac_nn_batch_norm: batch normalization in its inference form, and its parameters and states. */
#include "nn/nn_internal.h"

static fac_value *batch_norm(fac_value *x, double eps) {
    fac_graph *g = x->graph;
    int64_t channels = x->type.dims.n >= 2 ? x->type.dims.d[1] : -1;
    if (channels < 1)
        return fac_graph_raise(g, FAC_E_SHAPE,
                               "%s: batch_norm: x must be [N,C,...] with a known C, it has %d dims",
                               g->scope, x->type.dims.n);
    const fac_init zero = fac_init_constant(0), one = fac_init_constant(1);
    const fac_dims dims = fac_shape(channels);
    fac_dtype dtype = x->type.dtype;
    fac_value *weight = fac_nn_leaf(g, FAC_PARAM, "weight", dtype, dims, one);
    fac_value *bias = fac_nn_leaf(g, FAC_PARAM, "bias", dtype, dims, zero);
    fac_value *mean = fac_nn_leaf(g, FAC_STATE, "running_mean", dtype, dims, zero);
    fac_value *var = fac_nn_leaf(g, FAC_STATE, "running_var", dtype, dims, one);
    return fac_batch_norm(x, weight, bias, mean, var, eps != 0 ? eps : 1e-5);
}

fac_value *fac_nn_batch_norm(fac_value *x, const char *name, double eps) {
    fac_graph *g = x->graph;
    if (g->error.status) return g->poison;
    fac_graph_push(g, name);
    fac_value *y = batch_norm(x, eps);
    fac_graph_pop(g);
    return y;
}
