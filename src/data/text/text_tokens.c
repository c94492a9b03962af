/* How a text is cut into tokens.  The input is UTF-8 that ends in a NUL; what is malformed in it
 * counts as U+FFFD. */
#include "data/text/text_internal.h"
#include "tensor/utf.h"

enum { APOSTROPHE = '\'', TYPOGRAPHIC_APOSTROPHE = 0x2019, LONGEST_CHARACTER = 4 };

typedef const unsigned char *cursor;

/* A token while it is written; too_long: nothing more is. */
typedef struct spelling {
    char *to;
    size_t n;
    bool keep_case, too_long;
} spelling;

static void spell(spelling *s, uint32_t c) {
    if (s->n + LONGEST_CHARACTER >= FAC_TOKEN_ROOM) s->too_long = true;
    if (s->too_long) return;
    s->n = (size_t)(fac_utf8_put(s->to + s->n, s->keep_case ? c : fac_unicode_lower(c)) - s->to);
}

/* 0 at the end: fac_utf8_next must not be asked there, it would step over the NUL. */
static uint32_t take(cursor *p) { return **p ? fac_utf8_next(p) : 0; }
static uint32_t peek(cursor p) { return take(&p); }

static bool in_word(uint32_t c) {
    return fac_unicode_is_letter(c) || fac_unicode_is_number(c) || fac_unicode_is_mark(c);
}
static bool is_apostrophe(uint32_t c) { return c == APOSTROPHE || c == TYPOGRAPHIC_APOSTROPHE; }

/* Does this ending (small letters) stand at p, and a word end after it? */
static bool ends_with(cursor p, const char *ending) {
    for (; *ending; ending++) {
        uint32_t c = take(&p);
        if (*ending == APOSTROPHE ? !is_apostrophe(c) : fac_unicode_lower(c) != (uint32_t)*ending)
            return false;
    }
    return !in_word(peek(p));
}

/* Letters that the Penn Treebank cuts off together with their apostrophe at p: it 's, they 're, is
 * n't. */
static size_t ending_at(cursor p) {
    static const char *const endings[] = { "'s", "'d", "'m", "'t", "'re", "'ve", "'ll", NULL };
    for (const char *const *e = endings; *e; e++)
        if (ends_with(p, *e)) return (*e)[2] ? 3 : 2;
    return ends_with(p, "n't") ? 3 : 0;
}

static void spell_many(spelling *s, cursor *p, size_t n) {
    while (n--) {
        uint32_t c = take(p);
        spell(s, is_apostrophe(c) ? APOSTROPHE : c);
    }
}

static void word(cursor *p, spelling *s) {
    size_t ending = ending_at(*p);
    if (ending) {
        spell_many(s, p, ending);
        return;
    }
    uint32_t c = take(p);
    spell(s, is_apostrophe(c) ? APOSTROPHE : c);
    if (in_word(c))
        while (in_word(peek(*p)) && !ends_with(*p, "n't")) spell(s, take(p));
}

static void skip_spaces(cursor *p) {
    for (cursor next = *p; fac_unicode_is_space(take(&next));) *p = next;
}

bool fac_token_next(fac_token_kind kind, bool keep_case, const unsigned char **p,
                    char token[FAC_TOKEN_ROOM]) {
    spelling s = { token, 0, keep_case, false };
    if (kind != FAC_TOKENS_CHAR) skip_spaces(p);
    if (!**p) return false;
    if (kind == FAC_TOKENS_WORD)
        word(p, &s);
    else if (kind == FAC_TOKENS_CHAR)
        spell(&s, take(p));
    else
        while (**p && !fac_unicode_is_space(peek(*p))) spell(&s, take(p));
    token[s.too_long ? 0 : s.n] = 0;
    return true;
}
