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

/* A task's answer in its parts.  Text of the task, so they end when its lock is given back. */
typedef struct fac_parts {
    const char *thought, *text;
    size_t nthought, ntext; /* bytes that may be sent */
    cJSON *calls;           /* of tools, once the answer is over; NULL: none */
} fac_parts;

/* ---- choice.c ---- */
/* The parts of task `at`.  False: all of it was sent, and p->calls is not set. */
bool fac_reply_look(const fac_reply *y, int at, fac_parts *p);
/* A choice as JSON; delta: only what was not sent yet.  Frees p->calls. */
void fac_reply_choice(const fac_reply *y, fac_text *t, int at, fac_parts *p, bool delta);

/* ---- records.c ---- */
/* The log probabilities that were not told yet, or null, as a field. */
void fac_reply_records(const fac_reply *y, fac_text *t, const fac_task *k, fac_told *d);
#endif
