/* libFuzzer: names of classes, one a line. */
#include <stdlib.h>
#include <string.h>
#include "../../cli/labels.h"
#include "fuzz.h"

static void look(const labels *l, const char *text, size_t bytes) {
    char to[32];
    for (int k = 0; k < l->n; k++)
        if (!*l->names[k] || l->names[k] < text || l->names[k] + strlen(l->names[k]) > text + bytes) abort();
    if (!label_of(l, l->n, 1000, to, sizeof to) || label_of(l, 0, 10, to, sizeof to) != l->names[0]) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    labels l = { 0 };
    char *text = malloc(bytes + 1);             /* the labels free it as fac_read_free does */
    if (!text) return 0;
    if (bytes) memcpy(text, data, bytes);
    text[bytes] = 0;
    if (labels_parse(text, bytes, "fuzz", &l)) return 0;
    if (!l.n) abort();
    look(&l, text, bytes);
    labels_free(&l);
    return 0;
}
