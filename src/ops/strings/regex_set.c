/* Sets of characters of regular expressions. */
#include <stdlib.h>
#include <string.h>
#include "base/unicode/unicode.h"
#include "ops/strings/regex_internal.h"

enum { LAST = 0x10ffff };

static bool in_ranges(const fac_set *s, uint32_t c) {
    for (size_t k = 0; k < s->n; k++)
        if (c >= s->ranges[k].first && c <= s->ranges[k].last) return true;
    return false;
}

static unsigned kinds_of(uint32_t c) {
    return (fac_unicode_is_letter(c) ? FAC_OF_LETTERS : 0u) |
           (fac_unicode_is_mark(c) ? FAC_OF_MARKS : 0u) |
           (fac_unicode_is_number(c) ? FAC_OF_NUMBERS : 0u);
}

bool fac_set_has(const fac_set *s, uint32_t c) {
    bool has =
        in_ranges(s, c) ||
        (s->fold && (in_ranges(s, fac_unicode_lower(c)) || in_ranges(s, fac_unicode_upper(c))));
    if (!has && (s->kinds || s->not_kinds)) {
        const unsigned kinds = kinds_of(c);
        has = kinds & s->kinds || s->not_kinds & ~kinds;
    }
    return has != s->others;
}

bool fac_set_add(fac_arena *arena, fac_set *s, uint32_t first, uint32_t last) {
    if (s->n == s->room) {
        const size_t room = s->room ? 2 * s->room : 4;
        fac_range *more = fac_arena_alloc(arena, room, sizeof *more);
        if (!more) return false;
        if (s->n) memcpy(more, s->ranges, s->n * sizeof *more);
        s->ranges = more;
        s->room = room;
    }
    s->ranges[s->n++] = (fac_range){ first, last };
    return true;
}

static int by_first(const void *x, const void *y) {
    const fac_range *a = x, *b = y;
    return (a->first > b->first) - (a->first < b->first);
}

bool fac_set_add_others(fac_arena *arena, fac_set *s, fac_set *from) {
    uint32_t next = 0;
    bool ok = true;
    qsort(from->ranges, from->n, sizeof *from->ranges, by_first);
    for (size_t k = 0; k < from->n && ok; k++) {
        if (from->ranges[k].first > next)
            ok = fac_set_add(arena, s, next, from->ranges[k].first - 1);
        if (from->ranges[k].last >= next) next = from->ranges[k].last + 1;
    }
    return ok && (next > LAST || fac_set_add(arena, s, next, LAST));
}

/* Pairs of characters that bound ranges. */
static bool add_pairs(fac_arena *arena, fac_set *s, const char *pairs) {
    bool ok = true;
    for (; *pairs && ok; pairs += 2)
        ok = fac_set_add(arena, s, (unsigned char)pairs[0], (unsigned char)pairs[1]);
    return ok;
}

static const struct {
    const char *name, *pairs;
    char letter;
} classes[] = {
    { "digit", "09", 'd' },      { "space", "\t\r  ", 0 }, { "", "\t\n\f\r  ", 's' },
    { "word", "09AZ__az", 'w' }, { "alnum", "09AZaz", 0 }, { "alpha", "AZaz", 0 },
    { "ascii", "\1\177", 0 },    { "blank", "\t\t  ", 0 }, { "cntrl", "\1\037\177\177", 0 },
    { "graph", "!~", 0 },        { "lower", "az", 0 },     { "print", " ~", 0 },
    { "punct", "!/:@[`{~", 0 },  { "upper", "AZ", 0 },     { "xdigit", "09AFaf", 0 }
};
enum { CLASSES = sizeof classes / sizeof *classes };

static bool add_class(fac_arena *arena, fac_set *s, int k, bool others) {
    fac_set own = { 0 };
    return others ? add_pairs(arena, &own, classes[k].pairs) && fac_set_add_others(arena, s, &own)
                  : add_pairs(arena, s, classes[k].pairs);
}

bool fac_set_add_class(fac_arena *arena, fac_set *s, char c) {
    for (int k = 0; k < CLASSES; k++)
        if (classes[k].letter && classes[k].letter == (c | 0x20))
            return add_class(arena, s, k, !(c & 0x20));
    return false;
}

bool fac_set_add_named(fac_arena *arena, fac_set *s, const char *name, size_t n) {
    const bool others = n && *name == '^';
    for (int k = 0; k < CLASSES; k++)
        if (*classes[k].name && strlen(classes[k].name) == n - others &&
            !memcmp(classes[k].name, name + others, n - others))
            return add_class(arena, s, k, others);
    return false;
}
