/* Between the files of the server of language models. */
#ifndef FACULA_SERVE_SERVE_H
#define FACULA_SERVE_SERVE_H
#include "facula/serve.h"
#include "serve/engine.h"

struct fac_serve {
    fac_serve_opts opts;
    fac_lm *m;
    const fac_tokenizer *t;
    fac_lm_facts facts;
    fac_engine *engine; /* NULL: an encoder */
    fac_http *http;
    pthread_mutex_t embeds; /* one at a time */
    int64_t created;        /* seconds since 1970 */
    atomic_uint_fast64_t count;
    uint64_t seed; /* of answers whose seed nobody said */
};

/* ---- routes.c ---- */
extern const fac_http_route fac_serve_routes[];
extern const int fac_serve_nroutes;
/* 400 or 500, by what went wrong. */
void fac_serve_fail(fac_http_request *r, const fac_error *err);
/* The tokens of a prompt, in the wish's arena. */
fac_status fac_serve_tokens(fac_serve *s, fac_wish *w, fac_prompt *p, unsigned flags,
                            fac_error *err);

/* ---- embed.c ---- */
void fac_serve_embed(void *self, fac_http_request *r);

/* ---- reply.c: answers of a call, which it takes ---- */
void fac_serve_whole(fac_serve *s, fac_http_request *r, fac_call *c);
void fac_serve_stream(fac_serve *s, fac_http_request *r, fac_call *c);
#endif
