/* VGG-16 (Simonyan and Zisserman 2014, configuration D).  x N,3,224,224 -> N,1000.
 * At this size torchvision's adaptive pooling to 7 x 7 changes nothing, and no plan has it; dropout
 * is for training. */
#include <stdio.h>
#include "nn/zoo/zoo_internal.h"

/* The next of torchvision's list of layers. */
static const char *next(char name[32], int *index) {
    snprintf(name, 32, "features.%d", (*index)++);
    return name;
}

fac_value *fac_zoo_vgg16(fac_value *x) {
    static const struct {
        int layers, channels;
    } stages[] = { { 2, 64 }, { 2, 128 }, { 3, 256 }, { 3, 512 }, { 3, 512 } };
    char name[32];
    int index = 0;
    fac_zoo_class(x, "", "VGG");
    fac_zoo_class(x, "features", "Sequential");
    for (size_t s = 0; s < sizeof stages / sizeof *stages; s++) {
        for (int k = 0; k < stages[s].layers; k++) {
            x = fac_nn_conv2d(x, next(name, &index), stages[s].channels, 3,
                              &(fac_nn_conv2d_opts){ .pad = 1 });
            x = fac_zoo_relu(x, next(name, &index));
        }
        x = fac_zoo_max_pool(x, next(name, &index), 2, NULL);
    }
    x = fac_flatten(fac_zoo_adaptive_avg_pool(x, "avgpool", 7), 1);
    fac_zoo_class(x, "classifier", "Sequential");
    x = fac_zoo_relu(fac_nn_linear(x, "classifier.0", 4096), "classifier.1");
    fac_zoo_class(x, "classifier.2", "Dropout");
    fac_zoo_class(x, "classifier.3", "Linear");
    x = fac_zoo_relu(fac_nn_linear(x, "classifier.3", 4096), "classifier.4");
    fac_zoo_class(x, "classifier.5", "Dropout");
    fac_zoo_class(x, "classifier.6", "Linear");
    return fac_nn_linear(x, "classifier.6", 1000);
}
