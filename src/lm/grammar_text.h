/* A grammar while its text is read (grammar_text.c) and its rules are written (grammar_write.c). */
#ifndef FACULA_LM_GRAMMAR_TEXT_H
#define FACULA_LM_GRAMMAR_TEXT_H
#include "lm/grammar.h"

enum { FAC_GRAMMAR_NO_RULE = -1, FAC_GRAMMAR_LAST_LETTER = 0x10ffff };

/* Items of alternatives, one after the other with OR between them. */
typedef struct fac_grammar_row {
    fac_grammar_item *of;
    size_t n, room;
} fac_grammar_row;
/* Characters of a class, from low to high. */
typedef struct fac_grammar_range {
    uint32_t low, high;
} fac_grammar_range;
/* Of a rule; s NULL: it has none. */
typedef struct fac_grammar_name {
    const char *s;
    size_t n;
    bool defined;
} fac_grammar_name;

typedef struct fac_grammar_text {
    fac_grammar *g;
    const char *begin, *s;
    fac_grammar_name *names; /* by rule */
    size_t room, depth;
    fac_error *err;
} fac_grammar_text;

/* The error: what is expected where the reader is. */
fac_status fac_grammar_wrong(const fac_grammar_text *r, const char *expected);
fac_status fac_grammar_no_memory(const fac_grammar_text *r);
fac_status fac_grammar_put_bytes(const fac_grammar_text *r, fac_grammar_row *to, unsigned low,
                                 unsigned high);
fac_status fac_grammar_put_rule(const fac_grammar_text *r, fac_grammar_row *to, int32_t rule);
fac_status fac_grammar_put_or(const fac_grammar_text *r, fac_grammar_row *to);
/* One of the n ranges `of`, which are sorted on the way, or a character of none of them. */
fac_status fac_grammar_put_class(fac_grammar_text *r, fac_grammar_row *to, fac_grammar_range *of,
                                 size_t n, bool all_but);
/* `what` from low to high times; high < 0: without end. */
fac_status fac_grammar_repeat(fac_grammar_text *r, fac_grammar_row *to, const fac_grammar_row *what,
                              int low, int high);

/* A rule that is not defined yet; s NULL: without a name. */
fac_status fac_grammar_new_rule(fac_grammar_text *r, const char *s, size_t n, int32_t *to);
/* The rule of that name, which is new where there is none. */
fac_status fac_grammar_rule_named(fac_grammar_text *r, const char *s, size_t n, int32_t *to);
/* The rule is these rows, which end here. */
fac_status fac_grammar_define(fac_grammar_text *r, int32_t rule, fac_grammar_row *rows);

/* The UTF-8 of a character; how many bytes it has. */
int fac_grammar_bytes_of(uint32_t c, unsigned char to[4]);
#endif
