/* libFuzzer: names of classes, one a line. */
#include <stdlib.h>
#include <string.h>
#include "facula/data/classes.h"
#include "fuzz.h"

/* What was read reads again, to the same names. */
static void again(const fac_labels *l) {
    fac_labels *other = NULL;
    const char *text = fac_labels_text(l);
    if (fac_labels_parse(text, strlen(text), "fuzz", &other, NULL)) abort();
    if (fac_labels_count(other) != fac_labels_count(l)) abort();
    for (int k = 0; k < fac_labels_count(l); k++) {
        const char *a = fac_labels_get(l, k), *b = fac_labels_get(other, k);
        if (!a != !b || (a && strcmp(a, b))) abort();
    }
    fac_labels_free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fac_labels *l = NULL;
    if (fac_labels_parse((const char *)data, bytes, "fuzz", &l, NULL)) return 0;
    if (!fac_labels_count(l) || fac_labels_get(l, -1) || fac_labels_get(l, fac_labels_count(l)))
        abort();
    again(l);
    fac_labels_free(l);
    return 0;
}
