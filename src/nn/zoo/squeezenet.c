/* SqueezeNet 1.1 (Iandola et al. 2016, and the authors' later, faster form).  x N,3,224,224 -> N,1000. */
#include "nn/zoo/zoo_internal.h"

static fac_value *pool(fac_value *x) {
    return fac_max_pool2d(x, 3, 3, &(fac_pool2d_opts){ .stride = { 2, 2 }, .ceil_mode = true });
}

/* Few channels through a 1 x 1 convolution, then many through one of 1 x 1 and one of 3 x 3 side by side. */
static fac_value *fire(fac_value *x, const char *name, int squeeze, int expand) {
    fac_graph *g = fac_value_graph(x);
    fac_graph_push(g, name);
    x = fac_relu(fac_nn_conv2d(x, "squeeze", squeeze, 1, NULL));
    fac_value *narrow = fac_relu(fac_nn_conv2d(x, "expand1x1", expand, 1, NULL));
    fac_value *wide = fac_relu(fac_nn_conv2d(x, "expand3x3", expand, 3, &(fac_nn_conv2d_opts){ .pad = 1 }));
    fac_value *y = fac_concat((fac_value *[]){ narrow, wide }, 2, 1);
    fac_graph_pop(g);
    return y;
}

fac_value *fac_zoo_squeezenet1_1(fac_value *x) {
    x = fac_relu(fac_nn_conv2d(x, "features.0", 64, 3, &(fac_nn_conv2d_opts){ .stride = 2 }));
    x = pool(x);
    x = fire(x, "features.3", 16, 64);
    x = fire(x, "features.4", 16, 64);
    x = pool(x);
    x = fire(x, "features.6", 32, 128);
    x = fire(x, "features.7", 32, 128);
    x = pool(x);
    x = fire(x, "features.9", 48, 192);
    x = fire(x, "features.10", 48, 192);
    x = fire(x, "features.11", 64, 256);
    x = fire(x, "features.12", 64, 256);
    x = fac_relu(fac_nn_conv2d(x, "classifier.1", 1000, 1, NULL));      /* behind a dropout, which counts */
    return fac_mean(x, fac_shape(2, 3), false);
}
