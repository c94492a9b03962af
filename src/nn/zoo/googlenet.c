/* GoogLeNet (Szegedy et al. 2014, "Going deeper with convolutions"), with batch normalization, and
 * with 3 x 3 where the paper has 5 x 5: torchvision's trained form.  x N,3,224,224 -> N,1000.
 *
 * The auxiliary classifiers exist only while training.  torchvision's `transform_input` undoes the
 * ImageNet normalization to get x/127.5 - 1, which the published weights were trained on.  Without
 * it that is simply the preset of this network. */
#include "nn/zoo/zoo_internal.h"

static fac_value *conv(fac_value *x, const char *name, int channels, int kernel, int stride) {
    fac_graph *g = fac_value_graph(x);
    fac_graph_push_module(g, name, "BasicConv2d");
    x = fac_nn_conv2d(
        x, "conv", channels, kernel,
        &(fac_nn_conv2d_opts){ .stride = stride, .pad = kernel / 2, .no_bias = true });
    x = fac_relu(fac_nn_batch_norm(x, "bn", 1e-3));
    fac_graph_pop(g);
    return x;
}

static fac_value *halve(fac_value *x, const char *name, int kernel) {
    return fac_zoo_max_pool(x, name, kernel,
                            &(fac_pool2d_opts){ .stride = { 2, 2 }, .ceil_mode = true });
}

/* Four branches side by side: 1 x 1; 1 x 1 then 3 x 3, twice; pooling then 1 x 1. */
typedef struct inception {
    const char *name;
    int one, reduce3, three, reduce5, five, pool;
} inception;

static fac_value *inception_block(fac_value *x, const inception *b) {
    fac_graph *g = fac_value_graph(x);
    static const char *const branches[] = { "branch2", "branch3", "branch4" };
    fac_graph_push_module(g, b->name, "Inception");
    for (int k = 0; k < 3; k++) fac_zoo_class(x, branches[k], "Sequential");
    fac_value *branch[4];
    branch[0] = conv(x, "branch1", b->one, 1, 1);
    branch[1] = conv(conv(x, "branch2.0", b->reduce3, 1, 1), "branch2.1", b->three, 3, 1);
    branch[2] = conv(conv(x, "branch3.0", b->reduce5, 1, 1), "branch3.1", b->five, 3, 1);
    branch[3] = fac_zoo_max_pool(x, "branch4.0", 3,
                                 &(fac_pool2d_opts){ .stride = { 1, 1 }, .pad = { 1, 1, 1, 1 } });
    branch[3] = conv(branch[3], "branch4.1", b->pool, 1, 1);
    x = fac_concat(branch, 4, 1);
    fac_graph_pop(g);
    return x;
}

fac_value *fac_zoo_googlenet(fac_value *x) {
    static const inception blocks[] = {
        { "inception3a", 64, 96, 128, 16, 32, 32 },
        { "inception3b", 128, 128, 192, 32, 96, 64 },
        { "inception4a", 192, 96, 208, 16, 48, 64 },
        { "inception4b", 160, 112, 224, 24, 64, 64 },
        { "inception4c", 128, 128, 256, 24, 64, 64 },
        { "inception4d", 112, 144, 288, 32, 64, 64 },
        { "inception4e", 256, 160, 320, 32, 128, 128 },
        { "inception5a", 256, 160, 320, 32, 128, 128 },
        { "inception5b", 384, 192, 384, 48, 128, 128 },
    };
    fac_zoo_class(x, "", "GoogLeNet");
    x = halve(conv(x, "conv1", 64, 7, 2), "maxpool1", 3);
    x = conv(x, "conv2", 64, 1, 1);
    x = halve(conv(x, "conv3", 192, 3, 1), "maxpool2", 3);
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) {
        x = inception_block(x, &blocks[k]);
        if (k == 1) x = halve(x, "maxpool3", 3);
        if (k == 6) x = halve(x, "maxpool4", 2);
    }
    x = fac_zoo_adaptive_avg_pool(x, "avgpool", 1);
    fac_zoo_class(x, "dropout", "Dropout");
    fac_zoo_class(x, "fc", "Linear");
    return fac_nn_linear(x, "fc", 1000);
}

/* (x std + mean - 0.5) / 0.5 for each channel: from (p - mean) / std, as the preset "imagenet"
 * makes it, to 2 p - 1. */
static fac_value *transform(fac_value *x) {
    static const double mean[3] = { 0.485, 0.456, 0.406 }, std[3] = { 0.229, 0.224, 0.225 };
    fac_graph *g = fac_value_graph(x);
    fac_value *channel[3];
    for (int k = 0; k < 3; k++) {
        channel[k] = fac_mul(fac_slice(x, 1, k, k + 1, 1), fac_number(g, FAC_F32, std[k] / 0.5));
        channel[k] = fac_add(channel[k], fac_number(g, FAC_F32, (mean[k] - 0.5) / 0.5));
    }
    return fac_concat(channel, 3, 1);
}

fac_value *fac_zoo_googlenet_transformed(fac_value *x) { return fac_zoo_googlenet(transform(x)); }
