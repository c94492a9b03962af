/* AlexNet in the form of Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks".
 * x N,3,224,224 -> N,1000.  At this size torchvision's adaptive pooling to 6 x 6 changes nothing; dropout is for training. */
#include "nn/zoo/zoo_internal.h"

static fac_value *pool(fac_value *x) { return fac_max_pool2d(x, 3, 3, &(fac_pool2d_opts){ .stride = { 2, 2 } }); }

fac_value *fac_zoo_alexnet(fac_value *x) {
    x = fac_relu(fac_nn_conv2d(x, "features.0", 64, 11, &(fac_nn_conv2d_opts){ .stride = 4, .pad = 2 }));
    x = pool(x);
    x = fac_relu(fac_nn_conv2d(x, "features.3", 192, 5, &(fac_nn_conv2d_opts){ .pad = 2 }));
    x = pool(x);
    x = fac_relu(fac_nn_conv2d(x, "features.6", 384, 3, &(fac_nn_conv2d_opts){ .pad = 1 }));
    x = fac_relu(fac_nn_conv2d(x, "features.8", 256, 3, &(fac_nn_conv2d_opts){ .pad = 1 }));
    x = fac_relu(fac_nn_conv2d(x, "features.10", 256, 3, &(fac_nn_conv2d_opts){ .pad = 1 }));
    x = fac_flatten(pool(x), 1);
    x = fac_relu(fac_nn_linear(x, "classifier.1", 4096));
    x = fac_relu(fac_nn_linear(x, "classifier.4", 4096));
    return fac_nn_linear(x, "classifier.6", 1000);
}
