/* fac_nn_conv2d: a convolution and its parameters. */
#include <math.h>
#include "nn/nn_internal.h"

static int64_t or_one(int x) { return x ? x : 1; }

/* Weight and bias start uniform within 1 / sqrt(fan_in), as torch.nn.Conv2d does: He et al. 2015 with a = sqrt(5). */
static fac_value *conv2d(fac_value *x, int channels, int kernel, const fac_nn_conv2d_opts *o) {
    fac_graph *g = x->graph;
    int64_t groups = or_one(o->groups), in = x->type.dims.n == 4 ? x->type.dims.d[1] : -1;
    if (in < 1 || groups < 1 || in % groups || channels < 1 || kernel < 1)
        return fac_graph_raise(g, FAC_E_SHAPE, "%s: conv2d of %d channels, kernel %d, groups %d: x must be [N,C,H,W] with a "
                               "known C that the groups divide; it has %d dims and C = %lld", g->scope, channels, kernel,
                               (int)groups, x->type.dims.n, (long long)in);
    const fac_dims w_dims = fac_shape(channels, in / groups, kernel, kernel);
    const float bound = (float)(1 / sqrt((double)(in / groups) * kernel * kernel));
    const fac_nn_init uniform = { -bound, bound };
    fac_value *w = fac_nn_leaf(g, FAC_PARAM, "weight", x->type.dtype, w_dims, uniform);
    fac_value *b = o->no_bias ? NULL : fac_nn_leaf(g, FAC_PARAM, "bias", x->type.dtype, fac_shape(channels), uniform);
    const int64_t stride = or_one(o->stride), dilation = or_one(o->dilation);
    return fac_conv2d(x, w, b, &(fac_conv2d_opts){
        .stride = { stride, stride }, .pad = { o->pad, o->pad, o->pad, o->pad }, .dilation = { dilation, dilation },
        .groups = groups, .auto_pad = o->auto_pad });
}

fac_value *fac_nn_conv2d(fac_value *x, const char *name, int channels, int kernel, const fac_nn_conv2d_opts *opts) {
    fac_graph *g = x->graph;
    if (g->error.status) return g->poison;
    static const fac_nn_conv2d_opts defaults = { 0 };
    fac_graph_push(g, name);
    fac_value *y = conv2d(x, channels, kernel, opts ? opts : &defaults);
    fac_graph_pop(g);
    return y;
}
