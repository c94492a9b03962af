/* libFuzzer: the words of preprocessing, a line for each option, and a small photo through what they say. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../cli/photo.h"
#include "fuzz.h"

/* The next line of *text, or NULL for an empty one. */
static const char *next(char **text) {
    char *line = *text, *end = strchr(line, '\n');
    if (end) *end = 0;
    *text = end ? end + 1 : line + strlen(line);
    return *line ? line : NULL;
}

static void try_photo(const fac_preprocess *how) {
    static uint8_t pixels[5 * 4 * 3] = { 0, 255, 17, 3 };
    const fac_image image = { .height = 5, .width = 4, .rgb = pixels };
    fac_tensor *t = NULL;
    if ((double)how->height * how->width > 1e5 || how->resize > 300) return;        /* right, but slow */
    if (!fac_image_tensor(&image, how, &t, NULL)) fac_tensor_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const fac_type inputs[] = {
        { FAC_F32, { 4, { 1, 3, 32, 24 } } }, { FAC_F32, { 4, { 1, 28, 28, 1 } } }, { FAC_U8, { 4, { -1, -1, -1, 3 } } },
        { FAC_F32, { 2, { 1, 10 } } } };
    if (!bytes) return 0;
    char *text = malloc(bytes), *rest = text;
    if (!text) return 0;
    memcpy(text, data + 1, bytes - 1);
    text[bytes - 1] = 0;
    photo_options o = { .bgr = data[0] & 4 };
    const char **to[] = { &o.preset, &o.size, &o.crop, &o.mean, &o.std, &o.scale, &o.layout, &o.interpolation };
    for (size_t k = 0; k < sizeof to / sizeof *to; k++) *to[k] = next(&rest);
    fac_preprocess how;
    if (!photo_how(&o, NULL, inputs[data[0] & 3], &how)) try_photo(&how);
    free(text);
    return 0;
}
