/* Transposed convolutions of one, two and three dims and their parameters. */
#include <math.h>
#include "nn/nn_internal.h"

static fac_value *call(fac_value *x, fac_value *w, fac_value *b, int rank,
                       const fac_nn_conv_transpose_opts *o) {
    const int64_t stride = fac_nn_or_one(o->stride), dilation = fac_nn_or_one(o->dilation);
    const int64_t groups = fac_nn_or_one(o->groups);
    fac_conv_transpose3d_opts all3 = { .groups = groups };
    fac_conv_transpose2d_opts all2 = { .groups = groups };
    fac_conv_transpose1d_opts all1 = { .stride = stride,
                                       .pad = { o->pad, o->pad },
                                       .dilation = dilation,
                                       .output_pad = o->output_pad,
                                       .groups = groups };
    fac_nn_fill(all3.stride, 3, stride), fac_nn_fill(all3.pad, 6, o->pad),
        fac_nn_fill(all3.dilation, 3, dilation);
    fac_nn_fill(all2.stride, 2, stride), fac_nn_fill(all2.pad, 4, o->pad),
        fac_nn_fill(all2.dilation, 2, dilation);
    fac_nn_fill(all3.output_pad, 3, o->output_pad), fac_nn_fill(all2.output_pad, 2, o->output_pad);
    return rank == 1   ? fac_conv_transpose1d(x, w, b, &all1)
           : rank == 2 ? fac_conv_transpose2d(x, w, b, &all2)
                       : fac_conv_transpose3d(x, w, b, &all3);
}

/* torch counts the fan of [C, channels/groups, ...] as of any weight: the second dim times the
 * window. */
static fac_value *conv(fac_value *x, int rank, int channels, int kernel,
                       const fac_nn_conv_transpose_opts *o) {
    int64_t groups = fac_nn_or_one(o->groups),
            in = x->type.dims.n == rank + 2 ? x->type.dims.d[1] : -1;
    if (in < 1 || groups < 1 || in % groups || channels < 1 || channels % groups || kernel < 1)
        return fac_graph_raise(
            x->graph, FAC_E_SHAPE,
            "%s: conv_transpose%dd of %d channels, kernel %d, groups %d: x must be N,C "
            "and %d more dims, the groups must divide the channels and a known C; it has %d dims "
            "and C = %lld",
            x->graph->scope, rank, channels, kernel, (int)groups, rank, x->type.dims.n,
            (long long)in);
    fac_dims dims = { .n = rank + 2, .d = { in, channels / groups } };
    fac_nn_fill(dims.d + 2, rank, kernel);
    const fac_init usual =
        fac_init_within(1 / sqrt((double)(channels / groups) * pow(kernel, rank)));
    fac_value *w = fac_nn_param(x, "weight", dims, &o->weight, usual);
    return call(x, w,
                o->no_bias ? NULL : fac_nn_param(x, "bias", fac_shape(channels), &o->bias, usual),
                rank, o);
}

static fac_value *layer(fac_value *x, const char *name, int rank, int channels, int kernel,
                        const fac_nn_conv_transpose_opts *opts) {
    static const fac_nn_conv_transpose_opts defaults;
    fac_graph *g = x->graph;
    if (g->error.status) return g->poison;
    fac_graph_push(g, name);
    fac_value *y = conv(x, rank, channels, kernel, opts ? opts : &defaults);
    fac_graph_pop(g);
    return y;
}

fac_value *fac_nn_conv_transpose1d(fac_value *x, const char *name, int channels, int kernel,
                                   const fac_nn_conv_transpose_opts *opts) {
    return layer(x, name, 1, channels, kernel, opts);
}
fac_value *fac_nn_conv_transpose2d(fac_value *x, const char *name, int channels, int kernel,
                                   const fac_nn_conv_transpose_opts *opts) {
    return layer(x, name, 2, channels, kernel, opts);
}
fac_value *fac_nn_conv_transpose3d(fac_value *x, const char *name, int channels, int kernel,
                                   const fac_nn_conv_transpose_opts *opts) {
    return layer(x, name, 3, channels, kernel, opts);
}
