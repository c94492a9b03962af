/* UTF-8 and UTF-32 (Unicode 15, chapter 3.9). */
#include "tensor/utf.h"
#include <string.h>
#include "base/unicode/unicode.h"

enum { REPLACEMENT = 0xfffd, LARGEST = 0x10ffff };

/* One code point, and where the next begins: 0xxxxxxx, 110xxxxx 10..., 1110xxxx 10... 10...,
 * 11110xxx 10... 10... 10... */
uint32_t fac_utf8_next(const unsigned char **p) {
    static const uint32_t least[4] = { 0, 0x80, 0x800, 0x10000 };
    uint32_t c = *(*p)++;
    if ((c >= 0x80 && c < 0xc0) || c >= 0xf8) return REPLACEMENT;
    const int more = fac_utf8_announced((unsigned char)c);
    if (more) c &= 0x3fu >> more;
    for (int k = 0; k < more; k++, (*p)++) {
        if ((**p & 0xc0) != 0x80) return REPLACEMENT;
        c = c << 6 | (**p & 0x3f);
    }
    bool surrogate = c >= 0xd800 && c < 0xe000;
    return c < least[more] || c > LARGEST || surrogate ? REPLACEMENT : c;
}

size_t fac_utf32_length(const char *s) {
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)s; *p; n++) fac_utf8_next(&p);
    return n;
}

void fac_utf32_of_utf8(uint32_t *to, const char *s) {
    for (const unsigned char *p = (const unsigned char *)s; *p;) *to++ = fac_utf8_next(&p);
}

char *fac_utf8_put(char *p, uint32_t c) {
    if (c > LARGEST || (c >= 0xd800 && c < 0xe000)) c = REPLACEMENT;
    int more = fac_utf8_more(c);
    static const unsigned lead[4] = { 0, 0xc0, 0xe0, 0xf0 };
    *p++ = (char)(lead[more] | c >> 6 * more);
    while (more--) *p++ = (char)(0x80 | (c >> 6 * more & 0x3f));
    return p;
}

static uint32_t point_at(const char *p, bool big) {
    uint32_t c;
    memcpy(&c, p, sizeof c);
    return big ? __builtin_bswap32(c) : c;
}

char *fac_utf8_of_utf32(fac_arena *a, const void *from, size_t n, bool big) {
    const char *p = from;
    size_t length = 0;
    while (length < n && point_at(p + 4 * length, big)) length++;
    char *text = fac_arena_alloc(a, length + 1, 4), *to = text;
    for (size_t i = 0; text && i < length; i++) to = fac_utf8_put(to, point_at(p + 4 * i, big));
    return text;
}
