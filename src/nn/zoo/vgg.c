/* VGG-16 (Simonyan and Zisserman 2014, configuration D).  x N,3,224,224 -> N,1000.
 * At this size torchvision's adaptive pooling to 7 x 7 changes nothing; dropout is for training. */
#include <stdio.h>
#include "nn/zoo/zoo_internal.h"

fac_value *fac_zoo_vgg16(fac_value *x) {
    static const struct { int layers, channels; } stages[] = { { 2, 64 }, { 2, 128 }, { 3, 256 }, { 3, 512 }, { 3, 512 } };
    int index = 0;              /* in torchvision's list of layers, where a ReLU and a pooling count as well */
    for (size_t s = 0; s < sizeof stages / sizeof *stages; s++) {
        for (int k = 0; k < stages[s].layers; k++, index += 2) {
            char name[32];
            snprintf(name, sizeof name, "features.%d", index);
            x = fac_relu(fac_nn_conv2d(x, name, stages[s].channels, 3, &(fac_nn_conv2d_opts){ .pad = 1 }));
        }
        x = fac_max_pool2d(x, 2, 2, NULL);
        index++;
    }
    x = fac_flatten(x, 1);
    x = fac_relu(fac_nn_linear(x, "classifier.0", 4096));
    x = fac_relu(fac_nn_linear(x, "classifier.3", 4096));
    return fac_nn_linear(x, "classifier.6", 1000);
}
