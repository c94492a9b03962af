/* How conversations are written for models, see chat_formats.c. */
#ifndef FACULA_TEXT_CHAT_FORMATS_H
#define FACULA_TEXT_CHAT_FORMATS_H
#include <stdbool.h>

/* begin: before all; a turn of each role in front of and after its text; answer: asks for one.
 * system NULL: its text comes before the next user's, `joint` between them.  trims: texts lose the
 * spaces around them. */
typedef struct fac_chat_turns {
    const char *name, *begin;
    struct {
        const char *before, *after;
    } system, user, assistant;
    const char *answer, *joint;
    bool trims;
} fac_chat_turns;

const fac_chat_turns *fac_chat_named(const char *name); /* NULL: none */
#endif
