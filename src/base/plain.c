/* Text of others, made safe to show. */
#include "facula/text.h"
#include <string.h>

static size_t length_of(unsigned char first) {
    if (first < 0x80) return 1;
    if (first < 0xc0) return 0; /* the middle of a character */
    return first < 0xe0 ? 2 : 3 + (size_t)(first >= 0xf0) + (size_t)(first >= 0xf8);
}

size_t fac_utf8(const char *s, uint32_t *c) {
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *p = (const unsigned char *)s;
    const size_t n = length_of(*p);
    *c = n == 1 ? *p : FAC_NO_LETTER;
    if (n < 2 || n > 4) return 1;
    uint32_t x = *p & (0x7fu >> n);
    for (size_t k = 1; k < n; k++) {
        if ((p[k] & 0xc0) != 0x80) return 1;
        x = x << 6 | (p[k] & 0x3f);
    }
    if (x < least[n] || x > 0x10ffff || (x >= 0xd800 && x < 0xe000)) return 1;
    *c = x;
    return n;
}

bool fac_steers(uint32_t c) {
    if (c < 0x20 || (c >= 0x7f && c < 0xa0)) return true;
    return (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* U+FFFD may stand in the text itself: three bytes then. */
static bool shown(uint32_t c, size_t n) { return !fac_steers(c) && (c != FAC_NO_LETTER || n > 1); }

size_t fac_plain(char *text) {
    char *to = text;
    for (const char *from = text; *from;) {
        uint32_t c;
        const size_t n = fac_utf8(from, &c);
        const bool good = shown(c, n);
        if (good)
            memmove(to, from, n);
        else
            *to = '?';
        to += good ? n : 1;
        from += n;
    }
    *to = 0;
    return (size_t)(to - text);
}
