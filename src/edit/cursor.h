/* A place in the text of a rule or of a replacement; errors say line and column. */
#ifndef FACULA_EDIT_CURSOR_H
#define FACULA_EDIT_CURSOR_H
#include <stdbool.h>
#include "base/arena.h"
#include "facula/status.h"

typedef struct fac_place {
    int line, column;
} fac_place;
typedef struct fac_cursor {
    const char *s, *end, *bol; /* bol: the first byte of the line */
    int line;
    const char *file; /* leads errors */
    fac_arena *arena;
    fac_error *err;
} fac_cursor;

fac_place fac_cursor_place(fac_cursor *c); /* of what comes next */
/* "FILE:3:7: ...": FAC_E_FORMAT. */
fac_status fac_cursor_fail(fac_cursor *c, const char *format, ...) FAC_PRINTF(2, 3);
fac_status fac_cursor_fail_at(fac_cursor *c, fac_place at, const char *format, ...)
    FAC_PRINTF(3, 4);

void fac_cursor_space(fac_cursor *c);         /* blanks and comments, not the ends of lines */
bool fac_cursor_is(fac_cursor *c, char x);    /* skips blanks, takes x if it is there       */
bool fac_cursor_ahead(fac_cursor *c, char x); /* the same, but leaves it                    */
fac_status fac_cursor_need(fac_cursor *c, char x);
bool fac_cursor_line_end(fac_cursor *c);  /* nothing is left of the line or statement   */
void fac_cursor_next_line(fac_cursor *c); /* past empty lines and ;                     */
/* A word of letters, digits, _ . / : and, in quotes, anything; NULL when there is none (no error).
 */
fac_status fac_cursor_name(fac_cursor *c, const char **out);
bool fac_cursor_number(fac_cursor *c, double *out);
bool fac_cursor_keyword(fac_cursor *c, const char *word); /* takes it if it is the next word */
#endif
