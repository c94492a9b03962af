/* How well-known networks want their photos. */
#include "facula/data/image.h"

/* Means and deviations of the ImageNet training set, RGB, of 0..1. */
#define IMAGENET .mean = { 0.485, 0.456, 0.406 }, .std = { 0.229, 0.224, 0.225 }
#define CROP_224 .resize = 256, .height = 224, .width = 224
#define PLAIN_224 .height = 224, .width = 224

const fac_preset fac_presets[] = {
    { "imagenet",
      "torchvision: shorter side 256, crop 224, RGB, (x/255 - mean) / std",
      { CROP_224, .how = FAC_BILINEAR, IMAGENET } },
    { "imagenet-bicubic",
      "the same, resized with bicubic interpolation",
      { CROP_224, .how = FAC_BICUBIC, IMAGENET } },
    { "efficientnet-lite0",
      "shorter side 256 bicubic, crop 224, RGB, (x - 127) / 128",
      { CROP_224, .how = FAC_BICUBIC, .scale = 1, .mean = { 127, 127, 127 },
        .std = { 128, 128, 128 } } },
    { "tf",
      "TensorFlow: shorter side 256, crop 224, RGB, x/127.5 - 1",
      { CROP_224, .how = FAC_BILINEAR, .scale = 1 / 127.5, .mean = { 1, 1, 1 } } },
    { "tflite",
      "TensorFlow Lite's examples: the whole photo scaled to 224 x 224, RGB, x/127.5 - 1",
      { PLAIN_224, .how = FAC_BILINEAR, .scale = 1 / 127.5, .mean = { 1, 1, 1 } } },
    { "caffe",
      "shorter side 256, crop 224, BGR, x - (104, 117, 123)",
      { CROP_224, .how = FAC_BILINEAR, .scale = 1, .mean = { 104, 117, 123 }, .bgr = true } },
    { "darknet",
      "shorter side 224, crop 224, RGB, x/255",
      { .resize = 224, PLAIN_224, .how = FAC_BILINEAR } },
    { "cifar10",
      "32 x 32, RGB, (x/255 - ImageNet mean) / ImageNet std",
      { .height = 32, .width = 32, .how = FAC_BILINEAR, IMAGENET } },
    { "mnist",
      "28 x 28, grey, 0..255, light digits on black",
      { .height = 28, .width = 28, .how = FAC_BILINEAR, .scale = 1, .grey = true } },
    { "mnist-unit",
      "28 x 28, grey, 0..1, light digits on black",
      { .height = 28, .width = 28, .how = FAC_BILINEAR, .grey = true } },
    { "unit", "the photo as it is, RGB, x/255", { .how = FAC_BILINEAR } },
    { "raw", "the photo as it is, RGB, 0..255", { .how = FAC_BILINEAR, .scale = 1 } },
    { .name = NULL },
};
