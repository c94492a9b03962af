/* The networks of the zoo: each takes its input and returns the logits, [N, classes]. */
#ifndef FACULA_NN_ZOO_INTERNAL_H
#define FACULA_NN_ZOO_INTERNAL_H
#include "facula/nn.h"

/* Layers without parameters under the names that they have in torchvision, where those who count
 * layers look for them. */
fac_value *fac_zoo_relu(fac_value *x, const char *name);
fac_value *fac_zoo_relu6(fac_value *x, const char *name);
fac_value *fac_zoo_max_pool(fac_value *x, const char *name, int64_t kernel,
                            const fac_pool2d_opts *opts);
/* AdaptiveAvgPool2d to side x side, of planes that it divides; to one, and flat: N,C,H,W -> N,C */
fac_value *fac_zoo_adaptive_avg_pool(fac_value *x, const char *name, int64_t side);

/* Says of which class a module is in torchvision; path: from the open scope on, "" that scope
 * itself.  A module that does nothing in inference (dropout) is said where it would stand, and has
 * no node. */
void fac_zoo_class(fac_value *x, const char *path, const char *name);

fac_value *fac_zoo_lenet(fac_value *x);
fac_value *fac_zoo_alexnet(fac_value *x);
fac_value *fac_zoo_vgg16(fac_value *x);
fac_value *fac_zoo_squeezenet1_0(fac_value *x);
fac_value *fac_zoo_squeezenet1_1(fac_value *x);
fac_value *fac_zoo_googlenet(fac_value *x);
fac_value *fac_zoo_googlenet_transformed(fac_value *x);
fac_value *fac_zoo_resnet18(fac_value *x);
fac_value *fac_zoo_resnet34(fac_value *x);
fac_value *fac_zoo_resnet50(fac_value *x);
fac_value *fac_zoo_mobilenet_v2(fac_value *x);
fac_value *fac_zoo_efficientnet_lite0(fac_value *x);
#endif
