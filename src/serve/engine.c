/* The thread that writes all answers.
 *
 * A prompt is read in a session of one slot, the desk: in a batch of four, reading it would cost
 * four times as much.  An answer is written on there as long as nothing else waits; else its caches
 * go to a slot of the batch, which writes all of its answers in one step, and the desk reads the
 * next prompt, 256 tokens between two steps.  What the desk still holds of an earlier conversation
 * is not read again. */
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
    int slots, most;
    fac_session *desk, *batch; /* batch: made when first needed */
    fac_task *reader;          /* at the desk */
    fac_task **writers;        /* by slot of the batch; NULL: free */
    int32_t *past;
    int64_t whole; /* tokens at the desk that were read in whole parts of a prompt */
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t work;
    fac_task *first, *last; /* who waits */
    bool stop;
    fac_engine_stat stat;
};

/* ---- what a task tells its client ---- */

/* Comes from the writer, for text that is ready. */
static bool tell(void *self, int32_t id, const char *text, size_t bytes) {
    fac_task *t = self;
    (void)id;
    pthread_mutex_lock(&t->call->lock);
    fac_text_add_bytes(&t->text, text, bytes);
    const bool fine = !t->text.failed;
    pthread_cond_signal(&t->call->moved);
    pthread_mutex_unlock(&t->call->lock);
    return fine;
}

static void insert(fac_token_record *r, int most, fac_likely x) {
    int at = r->ntop;
    while (at > 0 && r->top[at - 1].logprob < x.logprob) at--;
    if (at >= most) return;
    if (r->ntop < most) r->ntop++;
    memmove(r->top + at + 1, r->top + at, (size_t)(r->ntop - at - 1) * sizeof *r->top);
    r->top[at] = x;
}

static fac_status record(fac_task *t, const float *logits, int64_t vocabulary, int32_t id,
                         fac_error *err) {
    const int most = t->call->wish.logprobs;
    const float sum = (float)fac_log_sum(logits, vocabulary);
    fac_token_record r = { .chosen = { id, logits[id] - sum } };
    for (int64_t k = 0; k < vocabulary && most; k++)
        if (r.ntop < most || logits[k] - sum > r.top[r.ntop - 1].logprob)
            insert(&r, most, (fac_likely){ (int32_t)k, logits[k] - sum });
    pthread_mutex_lock(&t->call->lock);
    const bool room = fac_reserve(&t->records, &t->room, t->nrecords + 1, sizeof *t->records);
    if (room) t->records[t->nrecords++] = r;
    pthread_mutex_unlock(&t->call->lock);
    return room ? FAC_OK : fac_raise_memory(err, "the answer");
}

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
    pthread_mutex_unlock(&e->lock);
    if (t->begun) {
        fac_release(t->writer.stat);
        fac_writer_end(&t->writer);
    }
    fac_call_release(c);
}

/* ---- the desk ---- */

static fac_status begin_writer(fac_engine *e, fac_task *t, fac_error *err) {
    fac_generate_stat *stat = fac_alloc(1, sizeof *stat);
    if (!stat) return fac_raise_memory(err, "the answer");
    t->writer = (fac_writer){
        .t = e->t, .o = &t->how, .tell = tell, .self = t, .facts = e->facts, .stat = stat
    };
    const fac_status status = fac_writer_begin(&t->writer, t->prompt, t->nprompt, err);
    if (status)
        fac_release(stat);
    else
        t->begun = true;
    return status;
}

/* What the desk has read already stays, one token less than all so that there is one to read. */
static fac_status begin(fac_engine *e, fac_task *t, fac_error *err) {
    const int64_t have = fac_session_past(e->desk, 0, e->past);
    int64_t same = 0;
    while (same < t->nprompt - 1 && same < have && t->prompt[same] == e->past[same]) same++;
    if (t->call->wish.seeded || !(t->how.sampler.temperature > 0))
        same = (same < e->whole ? same : e->whole) / PART * PART;
    if (same < e->whole) e->whole = same / PART * PART;
    FAC_TRY(fac_session_cut(e->desk, 0, same, err));
    FAC_TRY(begin_writer(e, t, err));
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
    return record(t, logits, e->facts.vocabulary, t->pending, err);
}

static fac_status desk_step(fac_engine *e, fac_task *t, bool *over, fac_error *err) {
    const int64_t left = t->nprompt - t->read, n = left < PART ? left : PART;
    if (!left)
        FAC_TRY(fac_session_feed(e->desk, 0, &t->pending, 1, err));
    else
        FAC_TRY(fac_session_feed(e->desk, 0, t->prompt + t->read, n, err));
    FAC_TRY(fac_session_step(e->desk, err));
    if (n == PART && t->read == e->whole) e->whole += PART;
    t->read += n;
    if (t->read < t->nprompt) return FAC_OK;
    return write_one(e, t, fac_session_logits(e->desk, 0), over, err);
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

static bool others_wait(fac_engine *e) {
    bool any = false;
    for (int k = 0; k < e->slots; k++) any |= e->writers[k] != NULL;
    pthread_mutex_lock(&e->lock);
    any |= e->first != NULL;
    pthread_mutex_unlock(&e->lock);
    return any;
}

static fac_status to_slot(fac_engine *e, int slot, fac_error *err) {
    if (!e->batch) FAC_TRY(fac_session_new_slots(e->m, e->slots, &e->batch, err));
    return fac_session_bring(e->desk, 0, e->batch, slot, fac_session_length(e->desk, 0), err);
}

/* An answer that is being written leaves the desk to those who wait. */
static void move_on(fac_engine *e) {
    fac_task *t = e->reader;
    fac_error err = { 0 };
    int slot = 0;
    if (!t || t->read < t->nprompt || e->slots < 2 || !others_wait(e)) return;
    while (slot < e->slots && e->writers[slot]) slot++;
    if (slot == e->slots) return;
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
    for (int k = 0; k < e->slots; k++) {
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
    for (int k = 0; k < e->slots; k++) {
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

static bool is_busy(const fac_engine *e) {
    bool any = e->reader;
    for (int k = 0; k < e->slots; k++) any |= e->writers[k] != NULL;
    return any;
}

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
    for (int k = 0; k < e->slots; k++)
        if (e->writers[k]) leave_slot(e, k, status, &err);
    for (fac_task *t = pop(e); t; t = pop(e)) finish(e, t, status, &err);
}

static void *work(void *self) {
    fac_engine *e = self;
    while (await(e)) {
        const int64_t began = fac_now_ns();
        move_on(e);
        admit(e);
        desk(e);
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
    const bool room = !e->stop && e->stat.queued + c->ntasks <= e->most;
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
    fac_release(e->writers);
    fac_release(e->past);
    pthread_cond_destroy(&e->work);
    pthread_mutex_destroy(&e->lock);
    fac_release(e);
}

static fac_status make(fac_engine *e, fac_error *err) {
    e->writers = fac_alloc((size_t)e->slots, sizeof(fac_task *));
    e->past = fac_alloc((size_t)e->facts.context + 1, sizeof *e->past);
    if (!e->writers || !e->past) return fac_raise_memory(err, "a server");
    FAC_TRY(fac_session_new_slots(e->m, 1, &e->desk, err));
    if (!pthread_create(&e->thread, NULL, work, e)) return FAC_OK;
    return fac_raise(err, FAC_E_NOMEM, "no thread for the server");
}

fac_status fac_engine_new(fac_lm *m, const fac_tokenizer *t, int slots, int queue, fac_engine **out,
                          fac_error *err) {
    fac_engine *e = fac_alloc(1, sizeof *e);
    if (!e) return fac_raise_memory(err, "a server");
    e->m = m;
    e->t = t;
    e->facts = fac_lm_about(m);
    e->slots = slots;
    e->most = queue;
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
