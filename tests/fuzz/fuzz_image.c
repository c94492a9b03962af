/* libFuzzer: any bytes are an image or an error; what was decoded becomes a tensor. */
#include <stddef.h>
#include <stdint.h>
#include "facula/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fac_image image = { 0 };
    if (fac_image_decode(data, bytes, "fuzz", &image, NULL)) return 0;
    fac_tensor *t = NULL;
    if (!fac_image_tensor(&image, &fac_presets[0].how, &t, NULL)) fac_tensor_free(t);
    fac_image_free(&image);
    return 0;
}
