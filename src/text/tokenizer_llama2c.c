/* tokenizer.bin of llama2.c: i32 the longest, then for each token f32 score, i32 length, bytes.
 * SentencePiece BPE; 0 is <unk>, 1 <s>, 2 </s>, then the bytes as <0xNN>.  Tokens are spelled with
 * plain spaces. */
#include <inttypes.h>
#include <string.h>
#include "base/error.h"
#include "base/text.h"
#include "text/tokenizer.h"

enum { HEAD = 4, FIRST_BYTE = 3, LONGEST = 1024 };

/* The token at *at; false: the file ends, or it is none. */
static bool next(const char *p, size_t n, size_t *at, float *score, const char **s,
                 int32_t *bytes) {
    if (n - *at < 8) return false;
    memcpy(score, p + *at, 4);
    memcpy(bytes, p + *at + 4, 4);
    *at += 8;
    if (*bytes < 0 || *bytes > LONGEST || (size_t)*bytes > n - *at) return false;
    *s = p + *at;
    *at += (size_t)*bytes;
    return true;
}

static int type_of(int32_t id) {
    if (id == 0) return FAC_TOKEN_UNKNOWN;
    if (id < FIRST_BYTE) return FAC_TOKEN_CONTROL;
    return id < FIRST_BYTE + 256 ? FAC_TOKEN_BYTE : FAC_TOKEN_NORMAL;
}

/* <s> and </s> are written with line ends around them there. */
static bool set(fac_tokenizer *t, int32_t id, const char *s, size_t n, float score) {
    static const char *const names[] = { "<unk>", "<s>", "</s>" };
    fac_text spelled = { 0 };
    if (id < FIRST_BYTE) fac_text_add(&spelled, names[id]);
    for (size_t k = 0; k < n && id >= FIRST_BYTE; k++) {
        if (s[k] == ' ')
            fac_text_add(&spelled, "\xe2\x96\x81");
        else
            fac_text_add_bytes(&spelled, s + k, 1);
    }
    const bool good = !spelled.failed && fac_tokenizer_set(t, id, spelled.s ? spelled.s : "",
                                                           spelled.n, score, type_of(id));
    fac_text_free(&spelled);
    return good;
}

fac_status fac_tokenizer_llama2c(const void *data, size_t bytes, fac_tokenizer **out,
                                 fac_error *err) {
    const char *p = data, *s;
    int32_t n = 0, length, longest = 0;
    float score;
    size_t at = HEAD;
    if (bytes >= HEAD) memcpy(&longest, p, HEAD);
    while (bytes > HEAD && at < bytes && next(p, bytes, &at, &score, &s, &length)) n++;
    if (longest < 1 || longest > LONGEST || at != bytes || n <= FIRST_BYTE + 256)
        return fac_raise(err, FAC_E_FORMAT,
                         "no tokenizer: not GGUF, tokenizer.json or llama2.c's tokenizer.bin");
    fac_tokenizer *t = fac_tokenizer_begin(n);
    bool good = t;
    at = HEAD;
    for (int32_t id = 0; good && id < n; id++)
        good = next(p, bytes, &at, &score, &s, &length) && set(t, id, s, (size_t)length, score);
    fac_status status = good ? FAC_OK : fac_raise_memory(err, "%" PRId32 " tokens", n);
    if (!status) {
        t->kind = FAC_TOKENS_SCORES;
        t->unknown = 0;
        t->bos = 1;
        t->eos = 2;
        t->add_bos = t->lead = t->decode_drops = true;
        status = fac_tokenizer_finish(t, err);
    }
    if (status)
        fac_tokenizer_free(t);
    else
        *out = t;
    return status;
}
