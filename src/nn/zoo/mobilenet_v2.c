/* MobileNetV2 (Sandler et al. 2018, "Inverted residuals and linear bottlenecks").  x N,3,224,224 ->
 * N,1000. */
#include <stdio.h>
#include "nn/zoo/zoo_internal.h"

/* Convolution "<name>.0" and batch normalization "<name>.1" with ReLU6 after. */
static fac_value *conv_bn_relu6(fac_value *x, const char *name, int channels, int kernel,
                                int stride, int groups) {
    fac_graph *g = fac_value_graph(x);
    fac_graph_push_module(g, name, "Conv2dNormActivation");
    x = fac_nn_conv2d(x, "0", channels, kernel,
                      &(fac_nn_conv2d_opts){
                          .stride = stride, .pad = kernel / 2, .groups = groups, .no_bias = true });
    x = fac_zoo_relu6(fac_nn_batch_norm(x, "1", 0), "2");
    fac_graph_pop(g);
    return x;
}

/* Widen by 1 x 1, filter each channel by 3 x 3, narrow by 1 x 1; the sum with x where the shape
 * stays. */
static fac_value *inverted_residual(fac_value *x, int in, int out, int expand, int stride) {
    fac_value *y = x;
    int wide = in * expand;
    if (expand > 1) y = conv_bn_relu6(y, "0", wide, 1, 1, 1);
    y = conv_bn_relu6(y, expand > 1 ? "1" : "0", wide, 3, stride, wide);
    y = fac_nn_conv2d(y, expand > 1 ? "2" : "1", out, 1, &(fac_nn_conv2d_opts){ .no_bias = true });
    y = fac_nn_batch_norm(y, expand > 1 ? "3" : "2", 0);
    return stride == 1 && in == out ? fac_add(x, y) : y;
}

fac_value *fac_zoo_mobilenet_v2(fac_value *x) {
    static const struct {
        int expand, channels, repeat, stride;
    } stages[] = {
        /* table 2 of the paper */
        { 1, 16, 1, 1 }, { 6, 24, 2, 2 },  { 6, 32, 3, 2 },  { 6, 64, 4, 2 },
        { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 },
    };
    fac_graph *g = fac_value_graph(x);
    int index = 1, channels = 32;
    fac_zoo_class(x, "", "MobileNetV2");
    fac_zoo_class(x, "features", "Sequential");
    x = conv_bn_relu6(x, "features.0", channels, 3, 2, 1);
    for (size_t s = 0; s < sizeof stages / sizeof *stages; s++)
        for (int k = 0; k < stages[s].repeat; k++, index++) {
            char name[32];
            snprintf(name, sizeof name, "features.%d", index);
            fac_zoo_class(x, name, "InvertedResidual");
            snprintf(name, sizeof name, "features.%d.conv", index);
            fac_graph_push_module(g, name, "Sequential");
            x = inverted_residual(x, channels, stages[s].channels, stages[s].expand,
                                  k == 0 ? stages[s].stride : 1);
            fac_graph_pop(g);
            channels = stages[s].channels;
        }
    x = conv_bn_relu6(x, "features.18", 1280, 1, 1, 1);
    x = fac_mean(x, fac_shape(2, 3), false);
    fac_zoo_class(x, "classifier", "Sequential");
    fac_zoo_class(x, "classifier.0", "Dropout");
    fac_zoo_class(x, "classifier.1", "Linear");
    return fac_nn_linear(x, "classifier.1", 1000);
}
