/* LeNet-5 (LeCun et al. 1998, "Gradient-based learning applied to document recognition"), with ReLU
 * and maximum pooling as it is taught today.  x N,1,28,28 -> N,10. */
#include "nn/zoo/zoo_internal.h"

fac_value *fac_zoo_lenet(fac_value *x) {
    fac_zoo_class(x, "", "LeNet");
    x = fac_nn_conv2d(x, "conv1", 6, 5, &(fac_nn_conv2d_opts){ .pad = 2 });
    x = fac_zoo_max_pool(fac_zoo_relu(x, "relu1"), "pool1", 2, NULL);
    x = fac_nn_conv2d(x, "conv2", 16, 5, NULL);
    x = fac_zoo_max_pool(fac_zoo_relu(x, "relu2"), "pool2", 2, NULL);
    x = fac_flatten(x, 1);
    x = fac_zoo_relu(fac_nn_linear(x, "fc1", 120), "relu3");
    x = fac_zoo_relu(fac_nn_linear(x, "fc2", 84), "relu4");
    return fac_nn_linear(x, "fc3", 10);
}
