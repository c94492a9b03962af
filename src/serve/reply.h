/* Between the files that write answers: an answer under way, and what was told of it. */
#ifndef FACULA_SERVE_REPLY_H
#define FACULA_SERVE_REPLY_H
#include "base/text.h"
#include "serve/serve.h"
#include "serve/thought.h"
#include "serve/tools.h"

typedef struct fac_told {
    size_t thought, bytes;   /* of the thought, and of the text after it */
    size_t records, letters; /* letters: where the next record's token begins */
    bool role, over;
} fac_told;

typedef struct fac_reply {
    fac_serve *s;
    fac_call *c;
    fac_told *told; /* by task */
    char id[40];
    int64_t created; /* seconds since 1970 */
    bool chat;
    fac_call_form form;
    fac_thought_form thoughts;
    fac_text out; /* of a stream: events, of which `sent` bytes have gone */
    size_t sent;
    bool ended;
} fac_reply;

/* ---- choice.c ---- */
/* Whether task `at` has what was not told yet. */
bool fac_reply_news(const fac_reply *y, int at);
/* A choice as JSON; delta: what is new of it. */
void fac_reply_choice(const fac_reply *y, fac_text *t, int at, bool delta);

/* ---- records.c ---- */
/* The log probabilities that were not told yet, or null, as a field. */
void fac_reply_records(const fac_reply *y, fac_text *t, const fac_task *k, fac_told *d);
#endif
