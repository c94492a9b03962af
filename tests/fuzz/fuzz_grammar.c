/* libFuzzer: any bytes are a grammar, or a JSON schema, or an error; and bytes of the same text are
 * matched. */
#include <stdlib.h>
#include <string.h>
#include "fuzz.h"
#include "lm/grammar.h"
#include "text/tokenizer.h"

static fac_tokenizer *bytes_alone(void) {
    fac_tokenizer *t = fac_tokenizer_begin(256);
    static const char of[] = "0123456789ABCDEF";
    for (int k = 0; t && k < 256; k++) {
        const char name[] = { '<', '0', 'x', of[k / 16], of[k % 16], '>' };
        fac_tokenizer_set(t, k, name, sizeof name, 0, FAC_TOKEN_BYTE);
    }
    if (t) t->kind = FAC_TOKENS_SCORES;
    if (!t || fac_tokenizer_finish(t, NULL)) abort();
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static fac_tokenizer *t;
    fac_grammar *g;
    fac_matcher m;
    if (!bytes) return 0;
    if (!t) t = bytes_alone();
    char *text = malloc(bytes);
    if (!text) return 0;
    memcpy(text, data + 1, bytes - 1);
    text[bytes - 1] = 0;
    const fac_status status =
        data[0] % 2 ? fac_grammar_new(t, text, &g, NULL) : fac_grammar_json(t, text, &g, NULL);
    free(text);
    if (status) return 0;
    if (!fac_matcher_begin(&m, g, NULL)) {
        for (size_t k = 1; k < bytes && k < 40 && fac_matcher_takes(&m, data[k]); k++)
            fac_matcher_step(&m, data[k]);
        if (!m.failed) fac_matcher_walk(&m);
        fac_matcher_end(&m);
    }
    fac_grammar_free(g);
    return 0;
}
