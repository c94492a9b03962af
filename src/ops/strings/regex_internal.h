/* Between the parser and the matcher of regular expressions. */
#ifndef FACULA_OPS_REGEX_INTERNAL_H
#define FACULA_OPS_REGEX_INTERNAL_H
#include <stdint.h>
#include "ops/strings/regex.h"

typedef struct fac_range {
    uint32_t first, last;
} fac_range;
typedef enum fac_kind_of { FAC_OF_LETTERS = 1, FAC_OF_MARKS = 2, FAC_OF_NUMBERS = 4 } fac_kind_of;
/* Characters: ranges and kinds, or all others. */
typedef struct fac_set {
    fac_range *ranges;
    size_t n, room;
    unsigned kinds, not_kinds; /* fac_kind_of bits: those of these kinds; those that are of none */
    bool others, fold;         /* fold: letters of both cases are one */
} fac_set;
bool fac_set_has(const fac_set *s, uint32_t c);

typedef enum fac_assertion {
    FAC_AT_BEGIN,
    FAC_AT_END,
    FAC_AT_LINE,
    FAC_AT_LINE_END,
    FAC_AT_WORD,
    FAC_AT_NO_WORD
} fac_assertion;

/* A parsed expression. */
typedef enum fac_re_kind {
    FAC_RE_EMPTY,
    FAC_RE_SET,
    FAC_RE_CAT,
    FAC_RE_ALT,
    FAC_RE_REPEAT,
    FAC_RE_ASSERT
} fac_re_kind;
typedef struct fac_re fac_re;
struct fac_re {
    fac_re_kind kind;
    fac_set *set;
    fac_re *a, *b;
    int least, most; /* of REPEAT; most -1: no end */
    fac_assertion at;
};
fac_status fac_re_parse(fac_arena *arena, const char *pattern, fac_re **out, fac_error *err);
/* Adds the characters of "\\d" and its like; false: c names no such class. */
bool fac_set_add_class(fac_arena *arena, fac_set *s, char c);
/* Adds those of [:alpha:] and its like. */
bool fac_set_add_named(fac_arena *arena, fac_set *s, const char *name, size_t n);
bool fac_set_add(fac_arena *arena, fac_set *s, uint32_t first, uint32_t last);
/* Adds to `s` all that `from` does not have; both without kinds. */
bool fac_set_add_others(fac_arena *arena, fac_set *s, fac_set *from);
#endif
