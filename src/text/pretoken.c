/* How texts are cut into pieces that are merged each for itself: the regular expressions of GPT-2
 * and its heirs, by hand.
 *
 *   gpt-2    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *   digits   every \p{N} alone, and gpt-2 between them
 *   llama 3  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}
 *            | ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 *   qwen 2   the same with \p{N}
 *
 * \s+(?!\S) is a run of spaces, less its last one if something follows. */
#include <string.h>
#include "base/unicode/unicode.h"
#include "data/text/text_internal.h"
#include "text/tokenizer.h"

uint32_t fac_code_point(const char *s, size_t n, size_t *bytes) {
    const unsigned char *p = (const unsigned char *)s;
    const size_t length = 1 + (size_t)fac_utf8_announced(*p);
    *bytes = length > n ? n : length;
    if (length == 1) return *p;
    uint32_t c = *p & (0xffu >> (length + 1));
    for (size_t k = 1; k < *bytes; k++) c = c << 6 | (p[k] & 0x3f);
    return c;
}

bool fac_is_utf8(const char *s, size_t n) {
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    for (size_t at = 0, used; at < n; at += used) {
        const unsigned char first = (unsigned char)s[at];
        if (first >= 0x80 && (first < 0xc2 || first > 0xf4)) return false;
        const uint32_t c = fac_code_point(s + at, n - at, &used);
        for (size_t k = 1; k < used; k++)
            if ((s[at + k] & 0xc0) != 0x80) return false;
        const size_t want = 1 + (size_t)fac_utf8_announced(first);
        if (used != want || c < least[used] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            return false;
    }
    return true;
}

/* alone: every number is a piece, and ends what comes before it as the end of the text does. */
typedef struct cursor {
    const char *s;
    size_t n;
    bool alone;
} cursor;
enum kind { END, LETTER, NUMBER, SPACE, OTHER };

static enum kind kind_of(uint32_t c) {
    if (fac_unicode_is_letter(c)) return LETTER;
    if (fac_unicode_is_number(c)) return NUMBER;
    return fac_unicode_is_space(c) ? SPACE : OTHER;
}

/* What stands at byte `at`, and how long it is. */
static enum kind look(const cursor *p, size_t at, size_t *bytes, uint32_t *c) {
    if (at >= p->n) {
        *bytes = 0;
        *c = 0;
        return END;
    }
    *c = fac_code_point(p->s + at, p->n - at, bytes);
    const enum kind kind = kind_of(*c);
    return kind == NUMBER && p->alone && at ? END : kind;
}

/* After all characters of a kind from `at` on, at most so many. */
static size_t run_of(const cursor *p, size_t at, enum kind kind, int most) {
    size_t bytes;
    uint32_t c;
    while (most-- && look(p, at, &bytes, &c) == kind) at += bytes;
    return at;
}

/* 's, 't, 're, 've, 'm, 'll, 'd: bytes, or 0.  (?i:s) is also U+017F, the long s. */
static size_t ending(const cursor *p, bool any_case) {
    static const char *const endings[] = { "s", "t", "re", "ve", "m", "ll", "d" };
    if (p->s[0] != '\'') return 0;
    for (size_t k = 0; k < sizeof endings / sizeof *endings; k++) {
        size_t at = 1, bytes;
        const char *e = endings[k];
        for (; *e; e++, at += bytes) {
            uint32_t c;
            if (look(p, at, &bytes, &c) == END) break;
            if (any_case && c < 0x80) c = fac_unicode_lower(c);
            if (any_case && c == 0x17f) c = 's'; /* the long s */
            if (c != (uint32_t)*e) break;
        }
        if (!*e) return at;
    }
    return 0;
}

/* A run of spaces from the first character on. */
static size_t spaces(const cursor *p) {
    size_t at = 0, before = 0, bytes;
    uint32_t c;
    enum kind kind;
    while ((kind = look(p, at, &bytes, &c)) == SPACE) {
        before = at;
        at += bytes;
    }
    return kind != END && before ? before : at;
}

static size_t gpt2(const cursor *p) {
    size_t bytes;
    uint32_t c;
    const size_t cut = ending(p, false);
    if (cut) return cut;
    const size_t from = p->s[0] == ' ';
    const enum kind kind = look(p, from, &bytes, &c);
    if (kind == NUMBER && p->alone) return bytes;
    return kind == LETTER || kind == NUMBER || kind == OTHER ? run_of(p, from, kind, -1)
                                                             : spaces(p);
}

static bool is_line(uint32_t c) { return c == '\r' || c == '\n'; }

/* Past the last end of a line in the spaces that the text begins with; 0: there is none. */
static size_t lines(const cursor *p) {
    size_t at = 0, last = 0, bytes;
    uint32_t c;
    while (look(p, at, &bytes, &c) == SPACE) {
        at += bytes;
        if (is_line(c)) last = at;
    }
    return last;
}

static size_t llama3(const cursor *p, int digits) {
    size_t bytes, after;
    uint32_t c, d;
    const size_t cut = ending(p, true);
    if (cut) return cut;
    const enum kind first = look(p, 0, &bytes, &c);
    if (first == LETTER) return run_of(p, 0, LETTER, -1);
    if (first == NUMBER) return run_of(p, 0, NUMBER, digits);
    const enum kind second = look(p, bytes, &after, &d);
    if (!is_line(c) && second == LETTER) return run_of(p, bytes, LETTER, -1);
    if (first == OTHER || (c == ' ' && second == OTHER)) {
        size_t at = run_of(p, first == OTHER ? 0 : 1, OTHER, -1);
        while (at < p->n && is_line((unsigned char)p->s[at])) at++;
        return at;
    }
    const size_t line = lines(p);
    return line ? line : spaces(p);
}

size_t fac_pretoken_next(fac_pretoken cut, const char *s, size_t n) {
    const cursor p = { s, n, cut == FAC_CUT_DIGITS };
    switch (cut) {
    case FAC_CUT_GPT2:
    case FAC_CUT_DIGITS:
        return gpt2(&p);
    case FAC_CUT_LLAMA3:
        return llama3(&p, 3);
    case FAC_CUT_QWEN2:
        return llama3(&p, 1);
    default:
        return n;
    }
}

/* ---- names ---- */

const char fac_pretoken_names[] = "those of GPT-2, SmolLM, Llama 3 and Qwen 2 are known";

static const struct {
    const char *name;
    fac_pretoken cut;
    bool whole;
} names[] = {
    { "gpt-2", FAC_CUT_GPT2, false },
    { "gpt2", FAC_CUT_GPT2, false },
    { "phi-2", FAC_CUT_GPT2, false },
    { "mpt", FAC_CUT_GPT2, false },
    { "olmo", FAC_CUT_GPT2, false },
    { "jais", FAC_CUT_GPT2, false },
    { "jina-es", FAC_CUT_GPT2, false },
    { "jina-de", FAC_CUT_GPT2, false },
    { "default", FAC_CUT_GPT2, false },
    { "smollm", FAC_CUT_DIGITS, false },
    { "starcoder", FAC_CUT_DIGITS, false },
    { "refact", FAC_CUT_DIGITS, false },
    { "command-r", FAC_CUT_DIGITS, false },
    { "codeshell", FAC_CUT_DIGITS, false },
    { "llama-bpe", FAC_CUT_LLAMA3, true },
    { "llama3", FAC_CUT_LLAMA3, true },
    { "llama-v3", FAC_CUT_LLAMA3, true },
    { "falcon3", FAC_CUT_LLAMA3, true },
    { "smaug-bpe", FAC_CUT_LLAMA3, false },
    { "dbrx", FAC_CUT_LLAMA3, false },
    { "pixtral", FAC_CUT_LLAMA3, true },
    { "qwen2", FAC_CUT_QWEN2, false },
    { "stablelm2", FAC_CUT_QWEN2, false },
    { "hunyuan", FAC_CUT_QWEN2, false },
    { "deepseek-r1-qwen", FAC_CUT_QWEN2, false },
    { "megrez", FAC_CUT_QWEN2, false },
};

bool fac_pretoken_named(const char *name, fac_pretoken *cut, bool *whole) {
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (strcmp(names[k].name, name)) continue;
        *cut = names[k].cut;
        *whole = names[k].whole;
        return true;
    }
    return false;
}
