/* Regular expressions in the syntax of RE2, matched against whole texts in time linear in their
 * length.
 *
 * Repetitions:  x* x+ x? x{n} x{n,} x{n,m}, at most 1000 times; a ? after them changes nothing
 * here.
 *
 * Groups:  xy, x|y, (x), (?:x), (?P<name>x), (?<name>x), (?flags), (?flags:x) with i, m, s, U.
 *
 * Characters:  . [abc] [^a-z] [[:alpha:]] \d \D \s \S \w \W, \pL and its like of the categories L,
 * M and N, \a \f \n \r \t \v \123 \x7F \x{10FFFF} \Q...\E, and every escaped punctuation mark.
 *
 * Places:  ^ $ \A \z \b \B.
 *
 * Not:  \C, other categories, scripts; RE2 has no references back and no looking around. */
#ifndef FACULA_OPS_REGEX_H
#define FACULA_OPS_REGEX_H
#include <stdbool.h>
#include "base/arena.h"
#include "facula/status.h"

typedef struct fac_regex fac_regex;
/* In the arena's memory.  FAC_E_FORMAT for what is no expression, FAC_E_UNSUPPORTED. */
fac_status fac_regex_new(fac_arena *arena, const char *pattern, fac_regex **out, fac_error *err);
/* A run's memory, of which each thread needs its own; NULL: there is none. */
typedef struct fac_regex_run fac_regex_run;
fac_regex_run *fac_regex_begin(fac_arena *arena, const fac_regex *r);
bool fac_regex_full(fac_regex_run *run, const char *text);
#endif
