/* See normal.h. */
#include "base/unicode/unicode.h"
#include "text/normal.h"
#include "base/memory.h"
#include "text/normal_tables.h"
#include "text/tokenizer.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
enum {
    HANGUL = 0xac00,
    LEADS = 0x1100,
    VOWELS = 0x1161,
    TAILS = 0x11a7,
    NLEADS = 19,
    NVOWELS = 21,
    NTAILS = 28,
    SYLLABLES = NLEADS * NVOWELS * NTAILS
};

static const normal_range *find(const normal_range *table, size_t n, uint32_t c) {
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (table[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && table[low].first <= c ? &table[low] : NULL;
}

bool fac_unicode_is_nonspacing(uint32_t c) {
    return c >= 0x300 && find(normal_marks, COUNT(normal_marks), c);
}
bool fac_unicode_is_punctuation(uint32_t c) {
    return find(normal_punctuation, COUNT(normal_punctuation), c);
}
bool fac_unicode_is_format(uint32_t c) { return find(normal_format, COUNT(normal_format), c); }

static int class_of(uint32_t c) {
    const normal_range *r = c < 0x300 ? NULL : find(normal_classes, COUNT(normal_classes), c);
    return r ? r->is : 0;
}

size_t fac_utf8_write(char *to, uint32_t c) {
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    const int more = fac_utf8_more(c);
    to[0] = (char)(uint8_t)(0xff00 >> (more + 1) | c >> (6 * more));
    for (int k = 1; k <= more; k++) to[k] = (char)(0x80 | (c >> (6 * (more - k)) & 0x3f));
    return (size_t)more + 1;
}

static const normal_pair *pair_of(uint32_t c) {
    size_t low = 0, high = COUNT(normal_pairs);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (normal_pairs[middle].c < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < COUNT(normal_pairs) && normal_pairs[low].c == c ? &normal_pairs[low] : NULL;
}

static int hangul(uint32_t s, uint32_t *to) {
    to[0] = LEADS + s / (NVOWELS * NTAILS);
    to[1] = VOWELS + s % (NVOWELS * NTAILS) / NTAILS;
    to[2] = TAILS + s % NTAILS;
    return to[2] == TAILS ? 2 : 3;
}

int fac_decompose(uint32_t c, uint32_t to[FAC_DECOMPOSED]) {
    if (c - HANGUL < SYLLABLES) return hangul(c - HANGUL, to);
    uint32_t tail[FAC_DECOMPOSED];
    int n = 0, ends = 0;
    for (const normal_pair *p; c >= 0xc0 && ends < FAC_DECOMPOSED - 1 && (p = pair_of(c));
         c = p->first)
        if (p->second) tail[ends++] = p->second;
    to[n++] = c;
    while (ends) to[n++] = tail[--ends];
    return n;
}

/* The character that a and b make; 0: none. */
static uint32_t compose(uint32_t a, uint32_t b) {
    if (a - LEADS < NLEADS && b - VOWELS < NVOWELS)
        return HANGUL + ((a - LEADS) * NVOWELS + b - VOWELS) * NTAILS;
    const bool syllable = a - HANGUL < SYLLABLES && (a - HANGUL) % NTAILS == 0;
    if (syllable && b - TAILS - 1 < NTAILS - 1) return a + b - TAILS;
    for (size_t k = 0, low = 0, high = COUNT(normal_joins); low < high;) {
        k = (low + high) / 2;
        const normal_pair *p = &normal_joins[k];
        if (p->first == a && p->second == b) return p->c;
        if (p->first < a || (p->first == a && p->second < b))
            low = k + 1;
        else
            high = k;
    }
    return 0;
}

typedef struct letter {
    uint32_t c;
    int is;
} letter;

/* Marks after a letter by their classes, those of one class as they came. */
static void order(letter *x, size_t n) {
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k && x[k].is && x[k - 1].is > x[k].is; k--) {
            const letter swap = x[k];
            x[k] = x[k - 1];
            x[k - 1] = swap;
        }
}

/* Joins a mark with the last letter where nothing of its class stands between. */
static size_t join(letter *x, size_t n) {
    size_t kept = 0, starter = 0;
    bool begun = false;
    int before = -1;
    for (size_t i = 0; i < n; i++) {
        const bool free_ = before < x[i].is || (before == 0 && kept == starter + 1);
        const uint32_t made = begun && (before == -1 || free_) ? compose(x[starter].c, x[i].c) : 0;
        if (made) {
            x[starter].c = made;
            continue;
        }
        if (!x[i].is) {
            starter = kept;
            begun = true;
            before = -1;
        } else
            before = x[i].is;
        x[kept++] = x[i];
    }
    return kept;
}

static void put(letter *x, size_t n, fac_text *to) {
    order(x, n);
    n = join(x, n);
    for (size_t k = 0; k < n; k++) {
        char s[4];
        fac_text_add_bytes(to, s, fac_utf8_write(s, x[k].c));
    }
}

void fac_nfc(const char *s, size_t n, fac_text *to) {
    letter *x = fac_alloc(n + FAC_DECOMPOSED, FAC_DECOMPOSED * sizeof *x);
    size_t count = 0;
    if (!x) to->failed = true;
    for (size_t at = 0, used; x && at < n; at += used) {
        uint32_t parts[FAC_DECOMPOSED];
        const int m = fac_decompose(fac_code_point(s + at, n - at, &used), parts);
        for (int k = 0; k < m; k++) x[count++] = (letter){ parts[k], class_of(parts[k]) };
    }
    if (x) put(x, count, to);
    fac_release(x);
}
