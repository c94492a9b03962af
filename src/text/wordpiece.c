/* WordPiece of BERT (Devlin et al., https://arxiv.org/abs/1810.04805): a text is cleaned, lowered,
 * freed of accents, cut at spaces and punctuation; of each word the longest token is taken first,
 * "##" before later ones.  A word that has no such cut, or more than 100 characters, is unknown. */
#include <string.h>
#include "base/text.h"
#include "data/text/text_internal.h"
#include "text/normal.h"
#include "text/tokenizer.h"

enum { MOST_CHARACTERS = 100, ROOM = 4 * MOST_CHARACTERS + 16 };

static bool is_chinese(uint32_t c) {
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static bool is_control(uint32_t c) {
    if (c == '\t' || c == '\n' || c == '\r') return false;
    return c < 32 || (c >= 0x7f && c < 0xa0) || fac_unicode_is_format(c);
}

static bool is_punctuation(uint32_t c) {
    const bool ascii = (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
                       (c >= 123 && c <= 126);
    return ascii || fac_unicode_is_punctuation(c);
}

/* ---- one word ---- */

typedef struct word {
    char s[ROOM];
    size_t n;
    int characters;
} word;

/* The longest token at byte `at`; *end is after it. */
static int32_t longest(const fac_tokenizer *t, const word *w, size_t at, size_t *end) {
    char spelled[ROOM + 16];
    const size_t join = at && t->join ? strlen(t->join) : 0;
    if (join > 16) return -1;
    memcpy(spelled, t->join ? t->join : "", join);
    memcpy(spelled + join, w->s + at, w->n - at);
    for (size_t n = w->n - at; n; n--) {
        if ((w->s[at + n] & 0xc0) == 0x80 && at + n < w->n) continue;
        const int32_t id = fac_tokenizer_look(t, spelled, join + n);
        if (id < 0) continue;
        *end = at + n;
        return id;
    }
    return -1;
}

static void put_word(const fac_tokenizer *t, word *w, fac_ids *out) {
    const size_t before = out->n;
    size_t at = 0, end = 0;
    int32_t id = 0;
    for (; at < w->n && w->characters <= MOST_CHARACTERS && id >= 0; at = end) {
        id = longest(t, w, at, &end);
        if (id >= 0) fac_ids_add(out, id);
    }
    if (w->characters > MOST_CHARACTERS || id < 0) {
        out->n = before;
        if (t->unknown >= 0) fac_ids_add(out, t->unknown);
    }
    w->n = 0;
    w->characters = 0;
}

static void add_character(word *w, uint32_t c) {
    if (w->n + 4 < ROOM) w->n += fac_utf8_write(w->s + w->n, c);
    w->characters++;
}

/* ---- a text ---- */

/* A character of the normalized text. */
static void take(const fac_tokenizer *t, word *w, uint32_t c, fac_ids *out) {
    const bool space = fac_unicode_is_space(c),
               alone = is_punctuation(c) || (t->chinese && is_chinese(c));
    if ((space || alone) && w->n) put_word(t, w, out);
    if (space) return;
    add_character(w, c);
    if (alone) put_word(t, w, out);
}

void fac_wordpiece(const fac_tokenizer *t, const char *s, size_t n, fac_ids *out) {
    word w = { .n = 0 };
    for (size_t at = 0, used; at < n; at += used) {
        uint32_t c = fac_code_point(s + at, n - at, &used), parts[FAC_DECOMPOSED];
        if (t->clean && (!c || c == 0xfffd || is_control(c))) continue;
        const int count = t->strip ? fac_decompose(c, parts) : 1;
        if (!t->strip) parts[0] = c;
        for (int k = 0; k < count; k++) {
            if (t->strip && fac_unicode_is_nonspacing(parts[k])) continue;
            take(t, &w, t->lower ? fac_unicode_lower(parts[k]) : parts[k], out);
        }
    }
    if (w.n) put_word(t, &w, out);
}
