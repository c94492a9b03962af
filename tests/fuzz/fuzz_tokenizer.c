/* libFuzzer: any bytes are a tokenizer or an error; one that was read takes any text, and its ids
 * become a text again. */
#include "fuzz.h"
#include "text/tokenizer.h"

static void use(const fac_tokenizer *t, const char *text, size_t bytes) {
    int32_t ids[256];
    char back[512];
    const int64_t n =
        fac_tokenizer_encode(t, text, bytes, FAC_TEXT_SPECIAL | FAC_TEXT_BOS, ids, 256);
    if (n > 0) fac_tokenizer_decode(t, ids, n < 256 ? n : 256, FAC_TEXT_SPECIAL, back, sizeof back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char text[] = "Hello, 12 w\xc3\xb6rlds!  <s>\n\t\xe6\x9d\xb1 'S";
    fac_tokenizer *t;
    fac_file *f = fac_file_memory(data, bytes);
    if (f && !fac_tokenizer_parse(f, &t, NULL)) {
        use(t, text, sizeof text - 1);
        use(t, (const char *)data, bytes < 300 ? bytes : 300);
        fac_tokenizer_free(t);
    }
    fac_file_free(f);
    return 0;
}
