/* The thread that writes all answers. */
#ifndef FACULA_SERVE_ENGINE_H
#define FACULA_SERVE_ENGINE_H
#include <pthread.h>
#include <stdatomic.h>
#include "base/text.h"
#include "lm/lm.h"
#include "serve/wish.h"

/* One token of an answer: what it is, how probable, and which others were. */
typedef struct fac_likely {
    int32_t id;
    float logprob;
} fac_likely;
typedef struct fac_token_record {
    fac_likely chosen, top[FAC_WISH_TOP];
    int ntop;
} fac_token_record;

typedef struct fac_call fac_call;

/* A sequence: a prompt and its answer.  The engine writes what is below, under the call's lock. */
typedef struct fac_task {
    fac_call *call;
    int32_t *prompt; /* within the call's arena */
    int64_t nprompt;
    fac_generate_opts how;
    /* the engine's own */
    struct fac_task *next;
    fac_writer writer;
    int64_t read;    /* of the prompt */
    int32_t pending; /* token to be read next */
    bool begun;
    /* shared */
    fac_text text;
    fac_token_record *records;
    size_t nrecords, room;
    fac_generate_stat stat;
    bool over;
    fac_error err; /* status FAC_OK: it went well */
} fac_task;

/* A request: several sequences, for whom one client waits. */
struct fac_call {
    fac_wish wish;
    fac_grammar *grammar; /* of all answers; NULL: none */
    fac_task *tasks;
    int ntasks;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    atomic_bool left; /* nothing waits any more */
    atomic_int users; /* the client, and each task that the engine has */
};

/* ---- task.c ---- */
/* Its writer, which tells the client. */
fac_status fac_task_begin(fac_task *t, const fac_tokenizer *tokens, const fac_lm_facts *facts,
                          fac_error *err);
/* How probable a token was that these logits gave. */
fac_status fac_task_record(fac_task *t, const float *logits, int64_t vocabulary, int32_t id,
                           fac_error *err);

fac_call *fac_call_new(fac_wish *w,
                       int tasks);  /* takes the wish; NULL: no memory, it is the caller's */
void fac_call_release(fac_call *c); /* the last one frees */
/* Until something moved, at most so long; the lock is held. */
void fac_call_wait(fac_call *c, int ms);

typedef struct fac_engine_stat {
    int active, queued;
    int64_t requests, prompt_tokens, tokens, reused, guessed, accepted;
    double seconds; /* of work */
} fac_engine_stat;

typedef struct fac_engine_opts {
    int slots, queue;
    fac_lm *draft; /* NULL: none */
    int lookup, guesses;
} fac_engine_opts;

typedef struct fac_engine fac_engine;
fac_status fac_engine_new(fac_lm *m, const fac_tokenizer *t, const fac_engine_opts *opts,
                          fac_engine **out, fac_error *err);
/* Breaks off what is under way: those tasks end with an error. */
void fac_engine_free(fac_engine *e);
/* All tasks of a call, or none: false says that the queue is full. */
bool fac_engine_add(fac_engine *e, fac_call *c);
fac_engine_stat fac_engine_about(fac_engine *e);
#endif
