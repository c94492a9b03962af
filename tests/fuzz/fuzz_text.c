/* libFuzzer: the first byte says what the others are: a table, a vocabulary, vectors, or a text to
 * cut. */
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "data/text/text_internal.h"
#include "fuzz.h"

static void tokens(const fac_vocab *v, const char *text) {
    int32_t ids[16];
    int64_t n = fac_vocab_encode(v, text, ids, 16);
    for (int64_t i = 0; i < n && i < 16; i++)
        if (!fac_vocab_word(v, ids[i])) abort();
}

static void table(const char *data, size_t bytes, const fac_texts_opts *o, fac_token_kind kind) {
    fac_texts t = { 0 };
    fac_vocab *v;
    fac_dataset d = { 0 };
    if (fac_texts_scan(data, bytes, "fuzz", o, &t, NULL)) return;
    for (int64_t i = 0; i < t.count; i++)
        if (t.labels[i] < 0 || t.labels[i] >= t.classes) abort();
    if (!fac_vocab_new(&t, &(fac_vocab_opts){ .kind = kind, .size = 20 }, &v, NULL)) {
        tokens(v, t.text[0]);
        if (!fac_dataset_texts(&t, v, 0, &d, NULL)) fac_dataset_free(&d);
        fac_vocab_free(v);
    }
    fac_texts_free(&t);
}

static void vectors(const char *data, size_t bytes) {
    static const char *const words[] = { "the a b c film" };
    static const int64_t label;
    static const fac_texts one = { .count = 1, .text = words, .labels = &label, .classes = 1 };
    fac_vocab *v;
    fac_tensor *t;
    if (fac_vocab_new(&one, NULL, &v, NULL)) return;
    if (!fac_vectors_parse(v, data, bytes, "fuzz", 0, &t, NULL, NULL)) fac_tensor_free(t);
    fac_vocab_free(v);
}

static void vocabulary(const char *data, size_t bytes) {
    fac_vocab *v;
    if (fac_vocab_parse(data, bytes, "fuzz", &v, NULL)) return;
    for (int64_t i = 0; i < fac_vocab_count(v); i++)
        if (fac_vocab_find(v, fac_vocab_word(v, i)) != i) abort();
    tokens(v, "It's a film.");
    fac_vocab_free(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    if (!bytes) return 0;
    const char *rest = (const char *)data + 1;
    const fac_token_kind kind = (fac_token_kind)(data[0] / 8 % 3);
    switch (data[0] % 8) {
    case 0:
        vocabulary(rest, bytes - 1);
        break;
    case 1:
        vectors(rest, bytes - 1);
        break;
    case 2:
        table(rest, bytes - 1, NULL, kind);
        break;
    case 3:
        table(rest, bytes - 1,
              &(fac_texts_opts){ .separator = ',', .header = true, .text = "text" }, kind);
        break;
    default:
        table(rest, bytes - 1, &(fac_texts_opts){ .separator = ',', .text = "1", .label = "0" },
              kind);
        break;
    }
    return 0;
}
