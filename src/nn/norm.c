/* Normalizations of single samples, and their parameters: ones and zeros. */
#include "nn/nn_internal.h"

/* weight and bias of these dims; NULL where the options say so. */
static void affine(const fac_value *x, fac_dims dims, bool weight, bool bias, fac_value *to[2]) {
    to[0] = weight ? fac_nn_param(x, "weight", dims, NULL, fac_init_constant(1)) : NULL;
    to[1] = bias ? fac_nn_param(x, "bias", dims, NULL, fac_init_constant(0)) : NULL;
}

/* torch takes the distance of 1 to the next number of the type. */
static double epsilon_of(fac_dtype dtype) {
    return dtype == FAC_F64    ? 0x1p-52
           : dtype == FAC_F16  ? 0x1p-10
           : dtype == FAC_BF16 ? 0x1p-7
                               : 0x1p-23;
}

static fac_value *over_last(fac_value *x, bool rms, const fac_nn_norm_opts *o) {
    const fac_dims *d = &x->type.dims;
    const int n = o->dims ? o->dims : 1;
    fac_dims dims = { .n = n };
    bool known = n > 0 && n <= d->n;
    for (int k = 0; known && k < n; k++) known = (dims.d[k] = d->d[d->n - n + k]) > 0;
    if (!known)
        return fac_graph_raise(
            x->graph, FAC_E_SHAPE,
            "%s: a norm over the last %d dims, which must have known sizes; x has %d "
            "dims",
            x->graph->scope, n, d->n);
    fac_value *p[2];
    affine(x, dims, !o->no_affine, !o->no_affine && !o->no_bias && !rms, p);
    if (rms) return fac_rms_norm(x, p[0], -n, o->eps != 0 ? o->eps : epsilon_of(x->type.dtype));
    return fac_layer_norm(x, p[0], p[1], -n, o->eps != 0 ? o->eps : 1e-5);
}

static fac_value *over_channels(fac_value *x, int groups, const fac_nn_norm_opts *o) {
    const int64_t channels = x->type.dims.n >= 2 ? x->type.dims.d[1] : -1;
    if (channels < 1)
        return fac_graph_raise(
            x->graph, FAC_E_SHAPE,
            "%s: a norm of channels: x must be N,C,... with a known C, it has %d dims",
            x->graph->scope, x->type.dims.n);
    const bool weights = groups ? !o->no_affine : o->affine;
    const double eps = o->eps != 0 ? o->eps : 1e-5;
    fac_value *p[2];
    affine(x, fac_shape(channels), weights, weights && !o->no_bias, p);
    return groups ? fac_group_norm(x, p[0], p[1], groups, eps)
                  : fac_instance_norm(x, p[0], p[1], eps);
}

static const fac_nn_norm_opts defaults;

fac_value *fac_nn_layer_norm(fac_value *x, const char *name, const fac_nn_norm_opts *opts) {
    if (x->graph->error.status) return x->graph->poison;
    fac_graph_push(x->graph, name);
    fac_value *y = over_last(x, false, opts ? opts : &defaults);
    fac_graph_pop(x->graph);
    return y;
}

fac_value *fac_nn_rms_norm(fac_value *x, const char *name, const fac_nn_norm_opts *opts) {
    if (x->graph->error.status) return x->graph->poison;
    fac_graph_push(x->graph, name);
    fac_value *y = over_last(x, true, opts ? opts : &defaults);
    fac_graph_pop(x->graph);
    return y;
}

fac_value *fac_nn_group_norm(fac_value *x, const char *name, int groups,
                             const fac_nn_norm_opts *opts) {
    if (x->graph->error.status) return x->graph->poison;
    fac_graph_push(x->graph, name);
    fac_value *y;
    if (groups > 0)
        y = over_channels(x, groups, opts ? opts : &defaults);
    else
        y = fac_graph_raise(x->graph, FAC_E_ARGUMENT, "%s: %d groups", x->graph->scope, groups);
    fac_graph_pop(x->graph);
    return y;
}

fac_value *fac_nn_instance_norm(fac_value *x, const char *name, const fac_nn_norm_opts *opts) {
    if (x->graph->error.status) return x->graph->poison;
    fac_graph_push(x->graph, name);
    fac_value *y = over_channels(x, 0, opts ? opts : &defaults);
    fac_graph_pop(x->graph);
    return y;
}
