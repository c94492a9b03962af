/* Residual networks (He et al. 2015, "Deep residual learning for image recognition"), 18, 34 and 50
 * layers. x N,3,224,224 -> N,1000.  In the block of three layers the middle one has the stride, as
 * in torchvision ("v1.5"). */
#include <stdio.h>
#include "nn/zoo/zoo_internal.h"

/* Convolution and batch normalization; a convolution has no bias where the next layer adds one. */
static fac_value *conv_bn(fac_value *x, const char *conv, const char *bn, int channels, int kernel,
                          int stride) {
    x = fac_nn_conv2d(
        x, conv, channels, kernel,
        &(fac_nn_conv2d_opts){ .stride = stride, .pad = kernel / 2, .no_bias = true });
    return fac_nn_batch_norm(x, bn, 0);
}

static fac_value *shortcut(fac_value *x, bool project, int channels, int stride) {
    if (project) fac_zoo_class(x, "downsample", "Sequential");
    return project ? conv_bn(x, "downsample.0", "downsample.1", channels, 1, stride) : x;
}

/* x C -> channels; `project` where the shape changes. */
static fac_value *basic_block(fac_value *x, bool project, int channels, int stride) {
    fac_value *y = fac_zoo_relu(conv_bn(x, "conv1", "bn1", channels, 3, stride), "relu");
    y = conv_bn(y, "conv2", "bn2", channels, 3, 1);
    return fac_zoo_relu(fac_add(y, shortcut(x, project, channels, stride)), "relu");
}

/* x C -> 4 channels through `channels` */
static fac_value *bottleneck(fac_value *x, bool project, int channels, int stride) {
    fac_value *y = fac_zoo_relu(conv_bn(x, "conv1", "bn1", channels, 1, 1), "relu");
    y = fac_zoo_relu(conv_bn(y, "conv2", "bn2", channels, 3, stride), "relu");
    y = conv_bn(y, "conv3", "bn3", 4 * channels, 1, 1);
    return fac_zoo_relu(fac_add(y, shortcut(x, project, 4 * channels, stride)), "relu");
}

typedef fac_value *block(fac_value *x, bool project, int channels, int stride);

static fac_value *resnet(fac_value *x, block *build, const int blocks[4]) {
    fac_graph *g = fac_value_graph(x);
    fac_zoo_class(x, "", "ResNet");
    x = fac_zoo_relu(conv_bn(x, "conv1", "bn1", 64, 7, 2), "relu");
    x = fac_zoo_max_pool(x, "maxpool", 3,
                         &(fac_pool2d_opts){ .stride = { 2, 2 }, .pad = { 1, 1, 1, 1 } });
    for (int stage = 0; stage < 4; stage++)
        for (int k = 0; k < blocks[stage]; k++) {
            char name[32];
            snprintf(name, sizeof name, "layer%d", stage + 1);
            fac_zoo_class(x, name, "Sequential");
            snprintf(name, sizeof name, "layer%d.%d", stage + 1, k);
            fac_graph_push_module(g, name, build == bottleneck ? "Bottleneck" : "BasicBlock");
            /* the first stage of basic blocks goes on with 64 channels at stride 1: nothing to
             * project */
            bool project = k == 0 && (stage > 0 || build == bottleneck);
            x = build(x, project, 64 << stage, k == 0 && stage > 0 ? 2 : 1);
            fac_graph_pop(g);
        }
    return fac_nn_linear(fac_zoo_adaptive_avg_pool(x, "avgpool", 1), "fc", 1000);
}

fac_value *fac_zoo_resnet18(fac_value *x) {
    return resnet(x, basic_block, (const int[]){ 2, 2, 2, 2 });
}
fac_value *fac_zoo_resnet34(fac_value *x) {
    return resnet(x, basic_block, (const int[]){ 3, 4, 6, 3 });
}
fac_value *fac_zoo_resnet50(fac_value *x) {
    return resnet(x, bottleneck, (const int[]){ 3, 4, 6, 3 });
}
