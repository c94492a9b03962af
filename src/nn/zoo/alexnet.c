/* AlexNet in the form of Krizhevsky 2014, "One weird trick for parallelizing convolutional neural
 * networks". x N,3,224,224 -> N,1000.  At this size torchvision's adaptive pooling to 6 x 6 changes
 * nothing, and no plan has it; dropout is for training. */
#include "nn/zoo/zoo_internal.h"

static fac_value *pool(fac_value *x, const char *name) {
    return fac_zoo_max_pool(x, name, 3, &(fac_pool2d_opts){ .stride = { 2, 2 } });
}

fac_value *fac_zoo_alexnet(fac_value *x) {
    fac_zoo_class(x, "", "AlexNet");
    fac_zoo_class(x, "features", "Sequential");
    x = fac_zoo_relu(
        fac_nn_conv2d(x, "features.0", 64, 11, &(fac_nn_conv2d_opts){ .stride = 4, .pad = 2 }),
        "features.1");
    x = pool(x, "features.2");
    x = fac_zoo_relu(fac_nn_conv2d(x, "features.3", 192, 5, &(fac_nn_conv2d_opts){ .pad = 2 }),
                     "features.4");
    x = pool(x, "features.5");
    x = fac_zoo_relu(fac_nn_conv2d(x, "features.6", 384, 3, &(fac_nn_conv2d_opts){ .pad = 1 }),
                     "features.7");
    x = fac_zoo_relu(fac_nn_conv2d(x, "features.8", 256, 3, &(fac_nn_conv2d_opts){ .pad = 1 }),
                     "features.9");
    x = fac_zoo_relu(fac_nn_conv2d(x, "features.10", 256, 3, &(fac_nn_conv2d_opts){ .pad = 1 }),
                     "features.11");
    x = fac_flatten(fac_zoo_adaptive_avg_pool(pool(x, "features.12"), "avgpool", 6), 1);
    fac_zoo_class(x, "classifier", "Sequential");
    fac_zoo_class(x, "classifier.0", "Dropout");
    fac_zoo_class(x, "classifier.1", "Linear");
    x = fac_zoo_relu(fac_nn_linear(x, "classifier.1", 4096), "classifier.2");
    fac_zoo_class(x, "classifier.3", "Dropout");
    fac_zoo_class(x, "classifier.4", "Linear");
    x = fac_zoo_relu(fac_nn_linear(x, "classifier.4", 4096), "classifier.5");
    return fac_nn_linear(x, "classifier.6", 1000);
}
