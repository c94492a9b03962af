/* Convolutions of one, two and three dims and their parameters. */
#include <math.h>
#include "nn/nn_internal.h"

static fac_value *call(fac_value *x, fac_value *w, fac_value *b, int rank,
                       const fac_nn_conv_opts *o) {
    const int64_t stride = fac_nn_or_one(o->stride), dilation = fac_nn_or_one(o->dilation),
                  groups = fac_nn_or_one(o->groups);
    fac_conv3d_opts all3 = { .groups = groups, .auto_pad = o->auto_pad };
    fac_conv2d_opts all2 = { .groups = groups, .auto_pad = o->auto_pad };
    fac_conv1d_opts all1 = { stride, { o->pad, o->pad }, dilation, groups, o->auto_pad };
    fac_nn_fill(all3.stride, 3, stride), fac_nn_fill(all3.pad, 6, o->pad),
        fac_nn_fill(all3.dilation, 3, dilation);
    fac_nn_fill(all2.stride, 2, stride), fac_nn_fill(all2.pad, 4, o->pad),
        fac_nn_fill(all2.dilation, 2, dilation);
    return rank == 1   ? fac_conv1d(x, w, b, &all1)
           : rank == 2 ? fac_conv2d(x, w, b, &all2)
                       : fac_conv3d(x, w, b, &all3);
}

/* Weight and bias start uniform within 1 / sqrt(fan_in), as in torch.nn.Conv2d: He et al. 2015 with
 * a = sqrt(5). */
static fac_value *conv(fac_value *x, int rank, int channels, int kernel,
                       const fac_nn_conv_opts *o) {
    fac_graph *g = x->graph;
    int64_t groups = fac_nn_or_one(o->groups),
            in = x->type.dims.n == rank + 2 ? x->type.dims.d[1] : -1;
    if (in < 1 || groups < 1 || in % groups || channels < 1 || kernel < 1)
        return fac_graph_raise(
            g, FAC_E_SHAPE,
            "%s: conv%dd of %d channels, kernel %d, groups %d: x must be N,C and %d more "
            "dims, with a known C that the groups divide; it has %d dims and C = %lld",
            g->scope, rank, channels, kernel, (int)groups, rank, x->type.dims.n, (long long)in);
    fac_dims dims = { .n = rank + 2, .d = { channels, in / groups } };
    fac_nn_fill(dims.d + 2, rank, kernel);
    const fac_init usual = fac_init_within(1 / sqrt((double)(in / groups) * pow(kernel, rank)));
    fac_value *w = fac_nn_param(x, "weight", dims, &o->weight, usual);
    return call(x, w,
                o->no_bias ? NULL : fac_nn_param(x, "bias", fac_shape(channels), &o->bias, usual),
                rank, o);
}

static fac_value *layer(fac_value *x, const char *name, int rank, int channels, int kernel,
                        const fac_nn_conv_opts *opts) {
    static const fac_nn_conv_opts defaults;
    fac_graph *g = x->graph;
    if (g->error.status) return g->poison;
    fac_graph_push(g, name);
    fac_value *y = conv(x, rank, channels, kernel, opts ? opts : &defaults);
    fac_graph_pop(g);
    return y;
}

fac_value *fac_nn_conv1d(fac_value *x, const char *name, int channels, int kernel,
                         const fac_nn_conv_opts *opts) {
    return layer(x, name, 1, channels, kernel, opts);
}
fac_value *fac_nn_conv2d(fac_value *x, const char *name, int channels, int kernel,
                         const fac_nn_conv_opts *opts) {
    return layer(x, name, 2, channels, kernel, opts);
}
fac_value *fac_nn_conv3d(fac_value *x, const char *name, int channels, int kernel,
                         const fac_nn_conv_opts *opts) {
    return layer(x, name, 3, channels, kernel, opts);
}
