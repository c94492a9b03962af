/* libFuzzer: a regular expression, and after a zero byte a text to match: no pattern may take
 * long, none may match in two ways. */
#include <stdlib.h>
#include <string.h>
#include "fuzz.h"
#include "ops/strings/regex.h"

enum { LONGEST = 1 << 10 };

static void match(fac_arena *arena, const fac_regex *r, const char *text) {
    fac_regex_run *run = fac_regex_begin(arena, r);
    if (run && fac_regex_full(run, text) != fac_regex_full(run, text)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fac_arena arena = { 0 };
    fac_regex *r = NULL;
    if (bytes > LONGEST) return 0;
    char *all = malloc(bytes + 2);
    if (!all) return 0;
    if (bytes) memcpy(all, data, bytes);
    all[bytes] = all[bytes + 1] = 0;
    if (!fac_regex_new(&arena, all, &r, NULL)) {
        const size_t pattern = strlen(all);
        match(&arena, r, pattern < bytes ? all + pattern + 1 : "");
        match(&arena, r, all);
    }
    fac_arena_free(&arena);
    free(all);
    return 0;
}
