/* The thread that writes all answers.
 *
 * A prompt is read in a session of one slot, the desk: in a batch of four, reading it would cost
 * four times as much.  An answer is written on there as long as nothing else waits; else its caches
 * go to a slot of the batch, which writes all of its answers in one step, and the desk reads the
 * next prompts, 256 tokens between two steps: a step costs the same for one answer as for all. What
 * the desk still holds of an earlier conversation is not read again.  Guesses fill a step of one
 * answer; several answers fill it themselves. */
#include "serve/engine.h"
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

enum { PART = 256 }; /* of a prompt, between two steps */

struct fac_engine {
    fac_lm *m;
    const fac_tokenizer *t;
    fac_lm_facts facts;
    fac_engine_opts o;
    fac_session *desk, *batch; /* batch: made when first needed */
    fac_session *draft;        /* guesses for the desk; NULL: there is none */
    fac_task *reader;          /* at the desk */
    fac_task **writers;        /* by slot of the batch; NULL: free */
    int32_t *past;
    int64_t whole; /* tokens at the desk that were read in whole parts of a prompt */
    int64_t round; /* tokens of prompts that were read since the last step of the batch */
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t work;
    fac_task *first, *last; /* who waits */
    bool stop;
    fac_engine_stat stat;
};

/* The engine has no more to do with it. */
static void finish(fac_engine *e, fac_task *t, fac_status status, const fac_error *err) {
    fac_call *c = t->call;
    if (t->begun && !status) fac_writer_rest(&t->writer);
    pthread_mutex_lock(&c->lock);
    if (t->begun) t->stat = *t->writer.stat;
    if (status) t->err = *err;
    t->over = true;
    pthread_cond_signal(&c->moved);
    pthread_mutex_unlock(&c->lock);
    pthread_mutex_lock(&e->lock);
    e->stat.active -= t->begun;
    e->stat.tokens += t->stat.generated;
    e->stat.guessed += t->stat.guessed;
    e->stat.accepted += t->stat.accepted;
    pthread_mutex_unlock(&e->lock);
    if (t->begun) {
        fac_release(t->writer.stat);
        fac_writer_end(&t->writer);
    }
    fac_call_release(c);
}

/* ---- the desk ---- */

/* What the desk has read already stays, one token less than all so that there is one to read. */
static fac_status begin(fac_engine *e, fac_task *t, fac_error *err) {
    const int64_t have = fac_session_past(e->desk, 0, e->past);
    int64_t same = 0;
    while (same < t->nprompt - 1 && same < have && t->prompt[same] == e->past[same]) same++;
    if (t->call->wish.seeded || !(t->how.sampler.temperature > 0))
        same = (same < e->whole ? same : e->whole) / PART * PART;
    if (same < e->whole) e->whole = same / PART * PART;
    FAC_TRY(fac_session_cut(e->desk, 0, same, err));
    t->how.lookup = e->o.lookup;
    t->how.guesses = e->o.guesses;
    t->how.draft = e->draft;
    FAC_TRY(fac_task_begin(t, e->t, &e->facts, err));
    t->read = same;
    pthread_mutex_lock(&e->lock);
    e->stat.active++;
    e->stat.prompt_tokens += t->nprompt;
    e->stat.reused += same;
    pthread_mutex_unlock(&e->lock);
    return FAC_OK;
}

/* A token by the logits of a slot; *over: the answer has ended. */
static fac_status write_one(fac_engine *e, fac_task *t, const float *logits, bool *over,
                            fac_error *err) {
    bool go_on = true;
    if (!logits) return fac_raise(err, FAC_E_INTERNAL, "a step without logits");
    const int64_t before = t->writer.stat->generated;
    FAC_TRY(fac_writer_next(&t->writer, logits, &t->pending, &go_on, err));
    *over = !go_on;
    if (t->call->wish.logprobs < 0 || t->writer.stat->generated == before) return FAC_OK;
    return fac_task_record(t, logits, e->facts.vocabulary, t->pending, err);
}

static bool batch_is_busy(const fac_engine *e) {
    for (int k = 0; k < e->o.slots; k++)
        if (e->writers[k]) return true;
    return false;
}

/* Of a prompt, a part; *more: it goes on. */
static fac_status read_prompt(fac_engine *e, fac_task *t, bool *more, fac_error *err) {
    const int64_t left = t->nprompt - t->read, n = left < PART ? left : PART;
    FAC_TRY(fac_session_feed(e->desk, 0, t->prompt + t->read, n, err));
    FAC_TRY(fac_session_step(e->desk, err));
    if (n == PART && t->read == e->whole) e->whole += PART;
    t->read += n;
    e->round += n;
    *more = t->read < t->nprompt;
    return FAC_OK;
}

/* The token that was written last, with guesses after it where nothing else is written. */
static fac_status read_answer(fac_engine *e, fac_task *t, fac_guesses *g, fac_error *err) {
    if (!batch_is_busy(e)) return fac_guess_read(e->desk, &t->writer, t->pending, g, err);
    FAC_TRY(fac_session_feed(e->desk, 0, &t->pending, 1, err));
    return fac_session_step(e->desk, err);
}

static fac_status desk_step(fac_engine *e, fac_task *t, bool *over, fac_error *err) {
    fac_guesses g = { .logits = NULL };
    bool more = false, right = true;
    if (t->read < t->nprompt)
        FAC_TRY(read_prompt(e, t, &more, err));
    else
        FAC_TRY(read_answer(e, t, &g, err));
    if (more) return FAC_OK;
    if (!g.logits) g.logits = fac_session_logits(e->desk, 0);
    for (int k = 0; right; k++) {
        const float *row = g.logits ? g.logits + k * e->facts.vocabulary : NULL;
        FAC_TRY(write_one(e, t, row, over, err));
        FAC_TRY(fac_guess_take(e->desk, &t->writer, &g, k, t->pending, !*over, &right, err));
    }
    return FAC_OK;
}

static void leave_desk(fac_engine *e, fac_status status, const fac_error *err) {
    fac_task *t = e->reader;
    e->reader = NULL;
    if (status) {
        fac_session_cut(e->desk, 0, 0, NULL);
        e->whole = 0;
    }
    finish(e, t, status, err);
}

static void desk(fac_engine *e) {
    fac_error err = { 0 };
    bool over = false;
    if (!e->reader) return;
    const bool left = atomic_load(&e->reader->call->left);
    const fac_status status = left ? FAC_OK : desk_step(e, e->reader, &over, &err);
    if (status || over || left) leave_desk(e, status, &err);
}

/* ---- the batch ---- */

static bool any_queued(fac_engine *e) {
    pthread_mutex_lock(&e->lock);
    const bool any = e->first != NULL;
    pthread_mutex_unlock(&e->lock);
    return any;
}

static bool others_wait(fac_engine *e) { return any_queued(e) || batch_is_busy(e); }

static int free_slot(const fac_engine *e) {
    int slot = 0;
    while (slot < e->o.slots && e->writers[slot]) slot++;
    return slot;
}

static fac_status to_slot(fac_engine *e, int slot, fac_error *err) {
    if (!e->batch) FAC_TRY(fac_session_new_slots(e->m, e->o.slots, &e->batch, err));
    return fac_session_bring(e->desk, 0, e->batch, slot, fac_session_length(e->desk, 0), err);
}

/* An answer that is being written leaves the desk to those who wait. */
static void move_on(fac_engine *e) {
    fac_task *t = e->reader;
    fac_error err = { 0 };
    const int slot = free_slot(e);
    if (!t || t->read < t->nprompt || e->o.slots < 2 || !others_wait(e)) return;
    if (slot == e->o.slots) return;
    const fac_status status = to_slot(e, slot, &err);
    if (status) {
        leave_desk(e, status, &err);
        return;
    }
    e->writers[slot] = t;
    e->reader = NULL;
}

static void leave_slot(fac_engine *e, int slot, fac_status status, const fac_error *err) {
    fac_task *t = e->writers[slot];
    e->writers[slot] = NULL;
    fac_session_cut(e->batch, slot, 0, NULL);
    finish(e, t, status, err);
}

static bool feed_all(fac_engine *e) {
    bool any = false;
    for (int k = 0; k < e->o.slots; k++) {
        fac_task *t = e->writers[k];
        fac_error err = { 0 };
        if (!t) continue;
        fac_status status = FAC_OK;
        const bool left = atomic_load(&t->call->left);
        if (!left) status = fac_session_feed(e->batch, k, &t->pending, 1, &err);
        if (status || left)
            leave_slot(e, k, status, &err);
        else
            any = true;
    }
    return any;
}

static void batch(fac_engine *e) {
    fac_error err = { 0 };
    if (!e->batch || !feed_all(e)) return;
    const fac_status status = fac_session_step(e->batch, &err);
    for (int k = 0; k < e->o.slots; k++) {
        bool over = false;
        fac_error of_one = err;
        fac_status bad = status;
        if (!e->writers[k]) continue;
        if (!bad)
            bad = write_one(e, e->writers[k], fac_session_logits(e->batch, k), &over, &of_one);
        if (bad || over) leave_slot(e, k, bad, &of_one);
    }
}

/* ---- rounds ---- */

static bool is_busy(const fac_engine *e) { return e->reader || batch_is_busy(e); }

static fac_task *pop(fac_engine *e) {
    pthread_mutex_lock(&e->lock);
    fac_task *t = e->first;
    if (t) {
        e->first = t->next;
        e->stat.queued--;
    }
    if (!e->first) e->last = NULL;
    pthread_mutex_unlock(&e->lock);
    return t;
}

static void admit(fac_engine *e) {
    fac_error err = { 0 };
    if (e->reader) return;
    fac_task *t = pop(e);
    if (!t) return;
    e->reader = t;
    const fac_status status = begin(e, t, &err);
    if (status) leave_desk(e, status, &err);
}

/* Whether another prompt is read before the next step: one waits, and the desk is free for it. */
static bool reads_on(fac_engine *e) {
    const fac_task *t = e->reader;
    const bool moves = e->o.slots > 1 && free_slot(e) < e->o.slots;
    return e->round < PART && any_queued(e) && (!t || (t->read == t->nprompt && moves));
}

static void desks(fac_engine *e) {
    e->round = 0;
    do {
        move_on(e);
        admit(e);
        desk(e);
    } while (reads_on(e));
}

/* Waits for work; false: it is over. */
static bool await(fac_engine *e) {
    const bool busy = is_busy(e);
    pthread_mutex_lock(&e->lock);
    while (!e->stop && !busy && !e->first) pthread_cond_wait(&e->work, &e->lock);
    const bool stop = e->stop;
    pthread_mutex_unlock(&e->lock);
    return !stop;
}

static void drop_all(fac_engine *e) {
    fac_error err = { 0 };
    const fac_status status = fac_raise(&err, FAC_E_UNSUPPORTED, "the server ends");
    if (e->reader) leave_desk(e, status, &err);
    for (int k = 0; k < e->o.slots; k++)
        if (e->writers[k]) leave_slot(e, k, status, &err);
    for (fac_task *t = pop(e); t; t = pop(e)) finish(e, t, status, &err);
}

static void *work(void *self) {
    fac_engine *e = self;
    while (await(e)) {
        const int64_t began = fac_now_ns();
        desks(e);
        batch(e);
        pthread_mutex_lock(&e->lock);
        e->stat.seconds += (double)(fac_now_ns() - began) * 1e-9;
        pthread_mutex_unlock(&e->lock);
    }
    drop_all(e);
    return NULL;
}

/* ---- from other threads ---- */

bool fac_engine_add(fac_engine *e, fac_call *c) {
    pthread_mutex_lock(&e->lock);
    const bool room = !e->stop && e->stat.queued + c->ntasks <= e->o.queue;
    for (int k = 0; k < c->ntasks && room; k++) {
        if (e->last)
            e->last->next = &c->tasks[k];
        else
            e->first = &c->tasks[k];
        e->last = &c->tasks[k];
        atomic_fetch_add(&c->users, 1);
    }
    if (room) e->stat.queued += c->ntasks;
    if (room) e->stat.requests++;
    pthread_cond_signal(&e->work);
    pthread_mutex_unlock(&e->lock);
    return room;
}

fac_engine_stat fac_engine_about(fac_engine *e) {
    pthread_mutex_lock(&e->lock);
    const fac_engine_stat stat = e->stat;
    pthread_mutex_unlock(&e->lock);
    return stat;
}

/* ---- making ---- */

static void free_engine(fac_engine *e) {
    fac_session_free(e->desk);
    fac_session_free(e->batch);
    fac_session_free(e->draft);
    fac_release(e->writers);
    fac_release(e->past);
    pthread_cond_destroy(&e->work);
    pthread_mutex_destroy(&e->lock);
    fac_release(e);
}

static fac_status make(fac_engine *e, fac_error *err) {
    e->writers = fac_alloc((size_t)e->o.slots, sizeof(fac_task *));
    e->past = fac_alloc((size_t)e->facts.context + 1, sizeof *e->past);
    if (!e->writers || !e->past) return fac_raise_memory(err, "a server");
    FAC_TRY(fac_session_new_slots(e->m, 1, &e->desk, err));
    if (e->o.draft) FAC_TRY(fac_session_new_slots(e->o.draft, 1, &e->draft, err));
    FAC_TRY(fac_guess_fits(e->desk, e->draft, e->o.lookup, err));
    if (!pthread_create(&e->thread, NULL, work, e)) return FAC_OK;
    return fac_raise(err, FAC_E_NOMEM, "no thread for the server");
}

fac_status fac_engine_new(fac_lm *m, const fac_tokenizer *t, const fac_engine_opts *opts,
                          fac_engine **out, fac_error *err) {
    fac_engine *e = fac_alloc(1, sizeof *e);
    if (!e) return fac_raise_memory(err, "a server");
    e->m = m;
    e->t = t;
    e->facts = fac_lm_about(m);
    e->o = *opts;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->work, NULL);
    const fac_status status = make(e, err);
    if (status)
        free_engine(e);
    else
        *out = e;
    return status;
}

void fac_engine_free(fac_engine *e) {
    if (!e) return;
    pthread_mutex_lock(&e->lock);
    e->stop = true;
    pthread_cond_signal(&e->work);
    pthread_mutex_unlock(&e->lock);
    pthread_join(e->thread, NULL);
    free_engine(e);
}
