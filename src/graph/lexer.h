/* Reading graph text: a cursor over bytes, and the few tokens that the formats share.  Text comes
 * from anywhere, so nothing here looks past `end`. */
#ifndef FACULA_GRAPH_LEXER_H
#define FACULA_GRAPH_LEXER_H
#include "base/arena.h"
#include "graph/graph_internal.h"

/* ASCII only: what a byte is must not depend on the locale. */
static inline bool fac_is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static inline bool fac_is_digit(char c) { return c >= '0' && c <= '9'; }
/* After blanks and a comment, which goes to the end of the line; line ends stay. */
const char *fac_skip_blanks(const char *s, const char *end);

typedef struct fac_lexer {
    const char *s, *end;
    int line;           /* 0: the text is one line, messages need not say which */
    int depth;          /* of bodies in bodies */
    fac_table nameless; /* "?2" of this text -> its symbol: a name of ours may be another one */
    size_t most, taken; /* bytes of tensors that are larger than their text; most 0: any number */
    fac_error *err;
} fac_lexer;

/* "line 3: ..., at 'stride=q'": raises FAC_E_FORMAT. */
fac_status fac_lex_fail(fac_lexer *l, const char *format, ...) FAC_PRINTF(2, 3);

void fac_lex_space(fac_lexer *l);      /* blanks and comments; not line ends */
bool fac_lex_is(fac_lexer *l, char c); /* skips blanks, then takes c if it is there */
fac_status fac_lex_need(fac_lexer *l, char c);
fac_status fac_lex_end(fac_lexer *l); /* nothing more may follow */
bool fac_lex_letter(fac_lexer *l);    /* does a word begin here? */
/* letters, digits and _ */
fac_status fac_lex_word(fac_lexer *l, const char *what, char *to, size_t size);
/* A plain name, or any text in quotes; moved to the arena. */
fac_status fac_lex_name(fac_lexer *l, const char *what, fac_arena *arena, const char **out);

/* The other direction. */
bool fac_name_plain(const char *s); /* needs no quotes */
void fac_quote(const char *s, fac_text *to);
void fac_name_print(const char *s, fac_text *to); /* quoted where that is needed */

/* "stride=2,2 ceil_mode": as far as words go.  strict, in a body, where the next word may be the
 * next op: only words with a
 * '=', and so flags are printed as ceil_mode=1. */
fac_status fac_attrs_lex(fac_lexer *l, const fac_op *op, bool strict, fac_arena *arena,
                         void *attrs);
void fac_attrs_put(const fac_op *op, const void *attrs, bool strict, fac_text *to);
#endif
