/* The networks of the zoo: each takes its input and returns the logits, [N, classes]. */
#ifndef FACULA_NN_ZOO_INTERNAL_H
#define FACULA_NN_ZOO_INTERNAL_H
#include "facula/nn.h"

fac_value *fac_zoo_lenet(fac_value *x);
fac_value *fac_zoo_alexnet(fac_value *x);
fac_value *fac_zoo_vgg16(fac_value *x);
fac_value *fac_zoo_squeezenet1_1(fac_value *x);
fac_value *fac_zoo_googlenet(fac_value *x);
fac_value *fac_zoo_resnet18(fac_value *x);
fac_value *fac_zoo_resnet34(fac_value *x);
fac_value *fac_zoo_resnet50(fac_value *x);
fac_value *fac_zoo_mobilenet_v2(fac_value *x);
fac_value *fac_zoo_efficientnet_lite0(fac_value *x);
#endif
