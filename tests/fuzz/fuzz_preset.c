/* libFuzzer: preprocessing as text, and a small photo through what it says. */
#include <stdlib.h>
#include <string.h>
#include "facula/data/image.h"
#include "fuzz.h"

static void try_photo(const fac_preprocess *how) {
    static uint8_t pixels[5 * 4 * 3] = { 0, 255, 17, 3 };
    const fac_image image = { .height = 5, .width = 4, .rgb = pixels };
    fac_tensor *t = NULL;
    if ((double)how->height * how->width > 1e5 || how->resize > 300) return; /* right, but slow */
    if (!fac_image_tensor(&image, how, &t, NULL)) fac_tensor_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *text = malloc(bytes + 1), said[FAC_PREPROCESS_TEXT];
    fac_preprocess how, again;
    if (!text) return 0;
    if (bytes) memcpy(text, data, bytes);
    text[bytes] = 0;
    if (!fac_preprocess_parse(text, &how, NULL)) {
        const int n = fac_preprocess_print(&how, said, sizeof said);
        if (n < 0 || (size_t)n >= sizeof said || fac_preprocess_parse(said, &again, NULL)) abort();
        try_photo(&how);
    }
    free(text);
    return 0;
}
