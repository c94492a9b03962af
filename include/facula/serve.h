/* facula/serve.h: a language model behind OpenAI's HTTP interface.
 *
 *   POST /v1/chat/completions  /v1/completions  /v1/embeddings  /tokenize  /detokenize
 *   GET  /v1/models  /v1/models/NAME  /health  /metrics
 *
 * Answers are written by one thread, several at once in the slots of one batch; a prompt is read on
 * its own, 256 tokens at a time between the steps of the others.  What does not fit waits in a
 * queue, then requests are turned away with 429.  An answer whose client leaves is dropped.  See
 * docs/LANGUAGE.md for fields, and facula/http.h for who is let in. */
#ifndef FACULA_SERVE_H
#define FACULA_SERVE_H

#include "facula/http.h"
#include "facula/lm.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_serve fac_serve;
typedef struct fac_serve_opts { /* zero is the default everywhere */
    fac_http_opts http;         /* self is for log alone */
    const char *name;           /* of the model, for its clients; NULL: its architecture */
    const char *format; /* of conversations, as fac_chat_encode takes it; NULL: the model's own */
    int slots;          /* sequences that are written at once; 0: 4 */
    int queue;          /* sequences that wait; 0: 64 */
    /* Guesses, as in fac_generate_opts: while one answer is written alone.  The draft is a smaller
     * model of the same tokens, which the server alone uses; NULL: none. */
    fac_lm *draft;
    int lookup, guesses;
} fac_serve_opts;

/* The model and the tokenizer must outlive the server, and nothing else may use the model
 * meanwhile. An encoder serves embeddings, other models the rest.  Strings of the options must
 * stay, too. */
fac_status fac_serve_start(fac_lm *m, const fac_tokenizer *t, const fac_serve_opts *opts,
                           fac_serve **out, fac_error *err);
/* The port that the server listens on, also when port 0 asked for any. */
int fac_serve_port(const fac_serve *s);
/* No new clients; those there are answered on.  How many requests are under way. */
int fac_serve_close(fac_serve *s);
/* Breaks off what is under way, and frees.  NULL is fine. */
void fac_serve_stop(fac_serve *s);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
