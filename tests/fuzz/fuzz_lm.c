/* libFuzzer: any bytes are a language model or an error.  The first byte says how they are read: as
 * a GGUF file's keys, as config.json, as a file of llama2.c. */
#include "base/file/file.h"
#include "fuzz.h"
#include "lm/lm.h"

static void keys(const uint8_t *data, size_t bytes) {
    fac_file *f = fac_file_memory(data, bytes);
    fac_gguf *g;
    fac_lm_config c;
    fac_arena a = { 0 };
    if (f && fac_gguf_here(f) && !fac_gguf_open(f, &g, NULL)) {
        fac_lm_config_gguf(g, &c, &a, NULL);
        fac_gguf_free(g);
    }
    fac_arena_free(&a);
    fac_file_free(f);
}

static void llama2c(const uint8_t *data, size_t bytes) {
    fac_file *f = fac_file_memory(data, bytes);
    fac_lm *m = f ? fac_lm_empty() : NULL;
    if (m) fac_lm_read_llama2c(m, f, NULL);
    fac_lm_free(m);
    fac_file_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fac_lm_config c;
    if (!bytes) return 0;
    switch (data[0] % 3) {
    case 0:
        keys(data + 1, bytes - 1);
        break;
    case 1:
        fac_lm_config_json((const char *)data + 1, bytes - 1, &c, NULL);
        break;
    default:
        llama2c(data + 1, bytes - 1);
        break;
    }
    return 0;
}
