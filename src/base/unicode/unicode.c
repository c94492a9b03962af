/* What texts need to know of characters, by binary search in tables made from the Unicode Character
 * Database. */
#include "base/unicode/unicode.h"
#include "base/unicode/unicode_tables.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static bool within(const unicode_range *table, size_t n, uint32_t c) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && table[low].first <= c;
}

static bool ascii_letter(uint32_t c) { return (c | 0x20) - 'a' < 26; }
static bool ascii_digit(uint32_t c) { return c - '0' < 10; }

bool fac_unicode_is_letter(uint32_t c) {
    return c < 0x80 ? ascii_letter(c) : within(unicode_letters, COUNT(unicode_letters), c);
}

bool fac_unicode_is_mark(uint32_t c) {
    return c >= 0x80 && within(unicode_marks, COUNT(unicode_marks), c);
}

bool fac_unicode_is_number(uint32_t c) {
    return c < 0x80 ? ascii_digit(c) : within(unicode_numbers, COUNT(unicode_numbers), c);
}

bool fac_unicode_is_space(uint32_t c) {
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

uint32_t fac_unicode_lower(uint32_t c) {
    if (c < 0x80) return c - 'A' < 26 ? c + 32 : c;
    size_t low = 0, high = COUNT(unicode_lower);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (unicode_lower[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == COUNT(unicode_lower)) return c;
    const unicode_run *r = &unicode_lower[low];
    return r->first <= c && (c - r->first) % r->step == 0 ? (uint32_t)((int64_t)c + r->add) : c;
}

/* The smallest letter whose small form it is. */
uint32_t fac_unicode_upper(uint32_t c) {
    if (c < 0x80) return c - 'a' < 26 ? c - 32 : c;
    if (c == 0xdf) return c; /* sharp s has no capital of one letter that texts use */
    for (size_t k = 0; k < COUNT(unicode_lower); k++) {
        const unicode_run *r = &unicode_lower[k];
        const int64_t from = (int64_t)c - r->add;
        if (from >= r->first && from <= r->last && (from - r->first) % r->step == 0)
            return (uint32_t)from;
    }
    return c;
}
