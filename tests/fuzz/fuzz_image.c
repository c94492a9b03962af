/* libFuzzer: any bytes are an image or an error; what was decoded becomes a tensor. */
#include "facula/data/image.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fac_image image = { 0 };
    if (fac_image_decode(data, bytes, "fuzz", &image, NULL)) return 0;
    fac_tensor *t = NULL;
    const fac_preprocess small = { .resize = 9, .height = 8, .width = 8, .how = FAC_BICUBIC };
    if (!fac_image_tensor(&image, &small, &t, NULL)) fac_tensor_free(t);
    fac_image_free(&image);
    return 0;
}
