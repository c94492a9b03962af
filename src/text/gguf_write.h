/* The head of a GGUF file while it is written: keys, one after the other (see tensor/gguf.h). */
#ifndef FACULA_TEXT_GGUF_WRITE_H
#define FACULA_TEXT_GGUF_WRITE_H
#include <string.h>
#include "base/text.h"
#include "tensor/gguf.h"
#include "text/tokenizer.h"

typedef struct fac_gguf_head {
    fac_text text;
    uint64_t keys;
} fac_gguf_head;

static inline void fac_gguf_put_number(fac_gguf_head *h, uint64_t x, int bytes) {
    fac_text_add_bytes(&h->text, (const char *)&x, (size_t)bytes);
}
static inline void fac_gguf_put_name(fac_gguf_head *h, const char *name) {
    fac_gguf_put_number(h, strlen(name), 8);
    fac_text_add(&h->text, name);
}
static inline void fac_gguf_put_key(fac_gguf_head *h, const char *name, int type) {
    h->keys++;
    fac_gguf_put_name(h, name);
    fac_gguf_put_number(h, (uint64_t)type, 4);
}
static inline void fac_gguf_put_int(fac_gguf_head *h, const char *name, int64_t x) {
    fac_gguf_put_key(h, name, FAC_GGUF_U32);
    fac_gguf_put_number(h, (uint64_t)x, 4);
}
static inline void fac_gguf_put_real(fac_gguf_head *h, const char *name, double x) {
    const float f = (float)x;
    fac_gguf_put_key(h, name, FAC_GGUF_F32);
    fac_text_add_bytes(&h->text, (const char *)&f, sizeof f);
}
static inline void fac_gguf_put_flag(fac_gguf_head *h, const char *name, bool is) {
    fac_gguf_put_key(h, name, FAC_GGUF_FLAG);
    fac_gguf_put_number(h, is, 1);
}
static inline void fac_gguf_put_text(fac_gguf_head *h, const char *name, const char *text) {
    fac_gguf_put_key(h, name, FAC_GGUF_TEXT);
    fac_gguf_put_name(h, text);
}
/* The n elements follow. */
static inline void fac_gguf_begin_list(fac_gguf_head *h, const char *name, int type, uint64_t n) {
    fac_gguf_put_key(h, name, FAC_GGUF_ARRAY);
    fac_gguf_put_number(h, (uint64_t)type, 4);
    fac_gguf_put_number(h, n, 8);
}

/* FAC_E_UNSUPPORTED: one that GGUF files cannot hold as it is. */
fac_status fac_tokenizer_put_gguf(const fac_tokenizer *t, fac_gguf_head *h, fac_error *err);
#endif
