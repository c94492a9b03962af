/* SqueezeNet 1.0 (Iandola et al. 2016), and 1.1, the authors' later, faster form.  x N,3,224,224 ->
 * N,1000. */
#include <stdio.h>
#include "nn/zoo/zoo_internal.h"

static fac_value *pool(fac_value *x, const char *name) {
    return fac_zoo_max_pool(x, name, 3,
                            &(fac_pool2d_opts){ .stride = { 2, 2 }, .ceil_mode = true });
}

/* Few channels through a 1 x 1 convolution, then many through one of 1 x 1 and one of 3 x 3 side by
 * side. */
static fac_value *fire(fac_value *x, const char *name, int squeeze, int expand) {
    fac_graph *g = fac_value_graph(x);
    fac_graph_push_module(g, name, "Fire");
    x = fac_zoo_relu(fac_nn_conv2d(x, "squeeze", squeeze, 1, NULL), "squeeze_activation");
    fac_value *narrow =
        fac_zoo_relu(fac_nn_conv2d(x, "expand1x1", expand, 1, NULL), "expand1x1_activation");
    fac_value *wide = fac_nn_conv2d(x, "expand3x3", expand, 3, &(fac_nn_conv2d_opts){ .pad = 1 });
    wide = fac_zoo_relu(wide, "expand3x3_activation");
    fac_value *y = fac_concat((fac_value *[]){ narrow, wide }, 2, 1);
    fac_graph_pop(g);
    return y;
}

/* Widths of the eight fire modules, and the pools: in front of which of them. */
typedef struct plan {
    int first, kernel;
    int pools[2];
} plan;

static fac_value *squeezenet(fac_value *x, const plan *p) {
    static const int squeeze[8] = { 16, 16, 32, 32, 48, 48, 64, 64 };
    char name[32];
    int index = 3; /* in torchvision's list of layers */
    fac_zoo_class(x, "", "SqueezeNet");
    fac_zoo_class(x, "features", "Sequential");
    x = fac_zoo_relu(
        fac_nn_conv2d(x, "features.0", p->first, p->kernel, &(fac_nn_conv2d_opts){ .stride = 2 }),
        "features.1");
    x = pool(x, "features.2");
    for (int k = 0; k < 8; k++) {
        if (k == p->pools[0] || k == p->pools[1]) {
            snprintf(name, sizeof name, "features.%d", index++);
            x = pool(x, name);
        }
        snprintf(name, sizeof name, "features.%d", index++);
        x = fire(x, name, squeeze[k], 4 * squeeze[k]);
    }
    fac_zoo_class(x, "classifier", "Sequential");
    fac_zoo_class(x, "classifier.0", "Dropout");
    fac_zoo_class(x, "classifier.1", "Conv2d");
    x = fac_zoo_relu(fac_nn_conv2d(x, "classifier.1", 1000, 1, NULL), "classifier.2");
    return fac_zoo_adaptive_avg_pool(x, "classifier.3", 1);
}

fac_value *fac_zoo_squeezenet1_0(fac_value *x) { return squeezenet(x, &(plan){ 96, 7, { 3, 7 } }); }
fac_value *fac_zoo_squeezenet1_1(fac_value *x) { return squeezenet(x, &(plan){ 64, 3, { 2, 4 } }); }
