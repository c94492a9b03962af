/* Small GGUF files made byte by byte, from the format's description. */
#ifndef FACULA_GGUF_FILES_H
#define FACULA_GGUF_FILES_H
#include "weight_files.h"

FILES void put_gguf_text(fac_text *t, const char *s) {
    put_number(t, strlen(s), 8);
    fac_text_add(t, s);
}

FILES void put_gguf_key(fac_text *t, const char *name, int type) {
    put_gguf_text(t, name);
    put_number(t, (uint64_t)type, 4);
}

FILES void put_gguf_key_text(fac_text *t, const char *name, const char *value) {
    put_gguf_key(t, name, 8);
    put_gguf_text(t, value);
}

FILES void put_gguf_head(fac_text *t, int version, int tensors, int keys) {
    fac_text_add(t, "GGUF");
    put_number(t, (uint64_t)version, 4);
    put_number(t, (uint64_t)tensors, 8);
    put_number(t, (uint64_t)keys, 8);
}

FILES void put_gguf_tensor(fac_text *t, const char *name, uint64_t fast, uint64_t slow, int type,
                           uint64_t offset) {
    put_gguf_text(t, name);
    put_number(t, 2, 4);
    put_number(t, fast, 8);
    put_number(t, slow, 8);
    put_number(t, (uint64_t)type, 4);
    put_number(t, offset, 8);
}

FILES void put_gguf_padding(fac_text *t) {
    while (t->n % 32) fac_text_add_bytes(t, "\0", 1);
}

/* A byte-level BPE of five tokens and a file of two tensors: f32 [2,2] of 1..4, q8_0 [1,32]. */
FILES void gguf_file(fac_text *t) {
    static const char *const tokens[] = { "a", "b", "ab", "\xc4\xa0", "<s>" };
    put_gguf_head(t, 3, 2, 6);
    put_gguf_key_text(t, "general.architecture", "llama");
    put_gguf_key_text(t, "tokenizer.ggml.model", "gpt2");
    put_gguf_key_text(t, "tokenizer.ggml.pre", "gpt-2");
    put_gguf_key(t, "tokenizer.ggml.tokens", 9);
    put_number(t, 8, 4);
    put_number(t, 5, 8);
    for (int k = 0; k < 5; k++) put_gguf_text(t, tokens[k]);
    put_gguf_key(t, "tokenizer.ggml.token_type", 9);
    put_number(t, 5, 4);
    put_number(t, 5, 8);
    for (int k = 0; k < 5; k++) put_number(t, k == 4 ? 3 : 1, 4);
    put_gguf_key(t, "tokenizer.ggml.merges", 9);
    put_number(t, 8, 4);
    put_number(t, 1, 8);
    put_gguf_text(t, "a b");
    put_gguf_tensor(t, "plain", 2, 2, 0, 0);
    put_gguf_tensor(t, "blocks", 32, 1, 8, 32);
    put_gguf_padding(t);
    for (int k = 1; k <= 4; k++) {
        const float x = (float)k;
        fac_text_add_bytes(t, (const char *)&x, 4);
    }
    put_gguf_padding(t);
    put_number(t, 0x3800, 2); /* 0.5 in f16 */
    for (int k = 0; k < 32; k++) put_number(t, (uint64_t)(k - 16) & 255, 1);
}
#endif
