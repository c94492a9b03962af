/* libFuzzer: the text of wisdom.  What was read is found again, and lines of it can be put and
 * merged. */
#include <stdlib.h>
#include <string.h>
#include "backends/wisdom.h"
#include "fuzz.h"

static void look(const fac_wisdom *w) {
    for (size_t i = 0; i < fac_wisdom_count(w); i++) {
        const fac_wisdom_entry e = fac_wisdom_at(w, i);
        fac_wisdom_entry found;
        if (!fac_wisdom_find(w, e.device, e.problem, &found) || strcmp(found.solver, e.solver))
            abort();
    }
}

static void merge(const fac_wisdom *from) {
    fac_wisdom *into;
    if (fac_wisdom_new(&into, NULL)) return;
    if (!fac_wisdom_merge(into, from, NULL) && fac_wisdom_count(into) != fac_wisdom_count(from))
        abort();
    look(into);
    fac_wisdom_free(into);
}

static void pick(const char *text) {
    fac_wisdom *w = NULL;
    if (!fac_wisdom_pick(text, "opencl, 132 units, sm_90, driver 550", &w, NULL) && w) {
        look(w);
        fac_wisdom_free(w);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *text = malloc(bytes + 1), *again = malloc(bytes + 1);
    fac_wisdom *w;
    fac_error err;
    if (!text || !again) abort();
    if (bytes) memcpy(text, data, bytes);
    text[bytes] = 0;
    memcpy(again, text, bytes + 1);
    if (!fac_wisdom_parse("fuzz", text, bytes, &w, &err)) {
        look(w);
        merge(w);
        fac_wisdom_free(w);
    }
    pick(again);
    free(text);
    free(again);
    return 0;
}
