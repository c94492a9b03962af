/* Sessions: sequences in the slots of one batch.  What was fed waits; a step reads it in chunks of
 * 256, 64, 8 or 1 tokens, for all slots at once.  Tokens of a chunk that a slot has not are
 * padding: they are written after its last row, where nothing sees them and the next chunk writes
 * over them; so caches have a chunk's rows more than the context. */
#include <string.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "lm/session.h"
#include "tensor/mirror.h"
#include "tensor/tensor_internal.h"

enum { CHUNKS = FAC_SESSION_CHUNKS };
static const int64_t chunks[CHUNKS] = { 1, 8, 64, FAC_LARGEST_CHUNK };

enum { IDS, POSITIONS, AT, LENGTHS, ROWS };

/* ---- making ---- */

static fac_status make_inputs(fac_session *s, fac_error *err) {
    const int64_t B = s->nslots;
    for (int c = 0; c < CHUNKS; c++)
        for (int k = 0; k < 5; k++)
            FAC_TRY(fac_tensor_new(NULL, FAC_I64,
                                   k <= POSITIONS ? fac_shape(B, chunks[c]) : fac_shape(B),
                                   &s->in[c][k], err));
    return fac_tensor_new(NULL, FAC_F32, fac_shape(B, s->m->c.vocabulary), &s->out, err);
}

fac_status fac_session_new(fac_lm *m, fac_session **out, fac_error *err) {
    return fac_session_new_slots(m, m->slots, out, err);
}

fac_status fac_session_new_slots(fac_lm *m, int slots, fac_session **out, fac_error *err) {
    if (slots < 1) return fac_raise(err, FAC_E_ARGUMENT, "a session of %d slots", slots);
    if (m->c.is & FAC_LM_ENCODER)
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s gives embeddings, and writes no text",
                         m->c.family);
    fac_session *s = fac_alloc(1, sizeof *s);
    if (!s) return fac_raise_memory(err, "a session");
    s->m = m;
    s->nslots = slots;
    s->slots = fac_alloc((size_t)slots, sizeof *s->slots);
    s->fed = fac_alloc((size_t)slots * (size_t)m->context, sizeof *s->fed);
    s->logits = fac_alloc((size_t)slots * (size_t)m->c.vocabulary, sizeof *s->logits);
    const bool room = s->slots && s->fed && s->logits;
    fac_status status = room ? make_inputs(s, err) : fac_raise_memory(err, "a session");
    if (!status) status = fac_session_grow(s, 1, err);
    if (status)
        fac_session_free(s);
    else
        *out = s;
    return status;
}

void fac_session_free(fac_session *s) {
    if (!s) return;
    fac_program_free(s->program);
    fac_caches_free(s->caches, fac_session_caches(s));
    for (int c = 0; c < CHUNKS; c++)
        for (int k = 0; k < 5; k++) fac_tensor_free(s->in[c][k]);
    fac_tensor_free(s->out);
    fac_tensor_free(s->rows);
    fac_tensor_free(s->checked);
    fac_release(s->slots);
    fac_release(s->fed);
    fac_release(s->logits);
    fac_release(s);
}

/* ---- reading ---- */

static fac_status check_slot(const fac_session *s, int at, fac_error *err) {
    if (at >= 0 && at < s->nslots) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT, "slot %d of %d", at, s->nslots);
}

fac_status fac_session_feed(fac_session *s, int at, const int32_t *ids, int64_t n, fac_error *err) {
    FAC_TRY(check_slot(s, at, err));
    fac_sequence_slot *t = &s->slots[at];
    const int64_t have = t->length + t->pending;
    if (n < 0 || n > s->m->context - have)
        return fac_raise(err, FAC_E_ARGUMENT, "%lld tokens after %lld: the context has %lld",
                         (long long)n, (long long)have, (long long)s->m->context);
    for (int64_t k = 0; k < n; k++)
        if (ids[k] < 0 || ids[k] >= s->m->c.vocabulary)
            return fac_raise(err, FAC_E_ARGUMENT, "token %d of %lld", ids[k],
                             (long long)s->m->c.vocabulary);
    if (n) memcpy(s->fed + at * s->m->context + have, ids, (size_t)n * sizeof *ids);
    t->pending += n;
    return FAC_OK;
}

/* The least chunk that takes all that waits anywhere, or the largest one. */
static int chunk_for(const fac_session *s) {
    int64_t most = 0;
    int c = 0;
    for (int b = 0; b < s->nslots; b++)
        most = s->slots[b].pending > most ? s->slots[b].pending : most;
    if (!most) return -1;
    while (c + 1 < CHUNKS && chunks[c] < most) c++;
    return c;
}

static int64_t taken(const fac_sequence_slot *t, int c) {
    return t->pending < chunks[c] ? t->pending : chunks[c];
}

static fac_status fill(fac_session *s, int c, fac_error *err) {
    int64_t *x[5];
    const int64_t Q = chunks[c];
    for (int k = 0; k < 5; k++) {
        void *data;
        FAC_TRY(fac_tensor_begin_write(s->in[c][k], &data, err));
        x[k] = data;
    }
    for (int b = 0; b < s->nslots; b++) {
        const fac_sequence_slot *t = &s->slots[b];
        const int64_t n = taken(t, c), last = s->m->context - 1;
        for (int64_t k = 0; k < Q; k++) {
            const int64_t at = t->length + k;
            x[IDS][b * Q + k] = k < n ? s->fed[b * s->m->context + at] : 0;
            x[POSITIONS][b * Q + k] = at < last ? at : last;
        }
        x[AT][b] = t->length;
        x[LENGTHS][b] = n ? t->length + Q : 0;
        x[ROWS][b] = b * Q + (n ? n - 1 : 0);
    }
    return FAC_OK;
}

/* Rows that caches need for all that waits, read in chunks: a long prompt grows them once. */
static int64_t rows_for(const fac_session *s, int c) {
    const int64_t Q = chunks[c];
    int64_t rows = 0;
    for (int b = 0; b < s->nslots; b++) {
        const fac_sequence_slot *t = &s->slots[b];
        const int64_t all = t->pending > Q ? (t->pending + Q - 1) / Q * Q : Q;
        rows = t->length + all > rows ? t->length + all : rows;
    }
    return rows;
}

/* A run whose plan is made before it, so that this has a time of its own. */
static fac_status run(fac_session *s, int what, fac_tensor *const in[], fac_tensor **out,
                      fac_error *err) {
    if (s->planned[what] != s->capacity) {
        const double begin = fac_seconds();
        FAC_TRY(fac_program_plan(s->program, in, NULL, err));
        s->planned[what] = s->capacity;
        s->plan_seconds += fac_seconds() - begin;
    }
    FAC_TRY(fac_program_run(s->program, in, out, err));
    return fac_storage_home((*out)->storage, err);
}

/* The next chunk writes over y. */
static void keep_logits(fac_session *s, const float *y) {
    const int64_t vocabulary = s->m->c.vocabulary;
    for (int b = 0; b < s->nslots; b++) {
        if (s->slots[b].logits != y + b * vocabulary) continue;
        float *to = s->logits + b * vocabulary;
        memcpy(to, y + b * vocabulary, (size_t)vocabulary * sizeof *y);
        s->slots[b].logits = to;
    }
}

static fac_status read_chunk(fac_session *s, int c, fac_error *err) {
    const int64_t vocabulary = s->m->c.vocabulary;
    FAC_TRY(fac_session_grow(s, rows_for(s, c), err));
    FAC_TRY(fill(s, c, err));
    FAC_TRY(run(s, c, s->in[c], &s->out, err));
    const float *y = fac_tensor_data(s->out);
    s->runs++;
    s->last = c;
    for (int b = 0; b < s->nslots; b++) {
        fac_sequence_slot *t = &s->slots[b];
        const int64_t n = taken(t, c);
        t->length += n;
        t->pending -= n;
        if (n && !t->pending) t->logits = y + b * vocabulary;
    }
    if (chunk_for(s) >= 0) keep_logits(s, y);
    return FAC_OK;
}

fac_status fac_session_step(fac_session *s, fac_error *err) {
    for (int b = 0; b < s->nslots; b++) s->slots[b].logits = NULL;
    for (int c; (c = chunk_for(s)) >= 0;) FAC_TRY(read_chunk(s, c, err));
    return FAC_OK;
}

/* ---- all logits of a few tokens ---- */

enum { CHECK = 1 }; /* the chunk of FAC_SESSION_CHECKED tokens */

static fac_status begin_check(fac_session *s, int at, fac_error *err) {
    const int64_t rows = s->slots[at].length + chunks[CHECK];
    void *data;
    if (!s->rows) FAC_TRY(fac_tensor_new(NULL, FAC_I64, fac_shape(chunks[CHECK]), &s->rows, err));
    if (!s->checked)
        FAC_TRY(fac_tensor_new(NULL, FAC_F32, fac_shape(chunks[CHECK], s->m->c.vocabulary),
                               &s->checked, err));
    FAC_TRY(fac_session_grow(s, rows, err));
    FAC_TRY(fill(s, CHECK, err));
    FAC_TRY(fac_tensor_begin_write(s->rows, &data, err));
    for (int64_t k = 0; k < chunks[CHECK]; k++) ((int64_t *)data)[k] = at * chunks[CHECK] + k;
    return FAC_OK;
}

/* Other slots must not wait: their tokens would be read, and their logits lost. */
static fac_status check_waiting(const fac_session *s, int at, fac_error *err) {
    FAC_TRY(check_slot(s, at, err));
    for (int b = 0; b < s->nslots; b++)
        if (b != at && s->slots[b].pending)
            return fac_raise(err, FAC_E_ARGUMENT, "slot %d waits to be read, too", b);
    const int64_t n = s->slots[at].pending;
    if (n >= 1 && n <= FAC_SESSION_CHECKED) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT, "%lld tokens to check: 1 to %d", (long long)n,
                     FAC_SESSION_CHECKED);
}

fac_status fac_session_check(fac_session *s, int at, const float **logits, int64_t *n,
                             fac_error *err) {
    FAC_TRY(check_waiting(s, at, err));
    for (int b = 0; b < s->nslots; b++) s->slots[b].logits = NULL;
    FAC_TRY(begin_check(s, at, err));
    fac_tensor *in[5] = { s->in[CHECK][IDS], s->in[CHECK][POSITIONS], s->in[CHECK][AT],
                          s->in[CHECK][LENGTHS], s->rows };
    FAC_TRY(run(s, FAC_SESSION_CHUNKS, in, &s->checked, err));
    *logits = fac_tensor_data(s->checked);
    fac_sequence_slot *t = &s->slots[at];
    s->runs++;
    *n = t->pending;
    t->length += t->pending;
    t->pending = 0;
    return FAC_OK;
}

const float *fac_session_logits(const fac_session *s, int at) {
    return at >= 0 && at < s->nslots ? s->slots[at].logits : NULL;
}

int64_t fac_session_length(const fac_session *s, int at) {
    return at >= 0 && at < s->nslots ? s->slots[at].length + s->slots[at].pending : 0;
}

fac_status fac_session_cut(fac_session *s, int at, int64_t length, fac_error *err) {
    FAC_TRY(check_slot(s, at, err));
    fac_sequence_slot *t = &s->slots[at];
    if (length < 0 || length > t->length + t->pending)
        return fac_raise(err, FAC_E_ARGUMENT, "cut to %lld tokens of %lld", (long long)length,
                         (long long)(t->length + t->pending));
    *t = (fac_sequence_slot){ length < t->length ? length : t->length,
                              length < t->length ? 0 : length - t->length, NULL };
    return FAC_OK;
}

fac_status fac_session_copy(fac_session *s, int from, int to, int64_t length, fac_error *err) {
    return fac_session_bring(s, from, s, to, length, err);
}

fac_status fac_session_bring(const fac_session *a, int from, fac_session *s, int to, int64_t length,
                             fac_error *err) {
    if (a->m != s->m) return fac_raise(err, FAC_E_ARGUMENT, "a slot of another model's session");
    FAC_TRY(check_slot(a, from, err));
    FAC_TRY(check_slot(s, to, err));
    if (length < 0 || length > a->slots[from].length)
        return fac_raise(err, FAC_E_ARGUMENT, "a prefix of %lld tokens, %lld were read",
                         (long long)length, (long long)a->slots[from].length);
    if (a == s && from == to) return fac_session_cut(s, to, length, err);
    FAC_TRY(fac_session_grow(s, length, err));
    for (int64_t k = 0; k < fac_session_caches(s); k++)
        FAC_TRY(fac_session_copy_rows(a, from, s, to, k, length, err));
    memmove(s->fed + to * s->m->context, a->fed + from * s->m->context,
            (size_t)length * sizeof *s->fed);
    s->slots[to] = (fac_sequence_slot){ length, 0, NULL };
    return FAC_OK;
}

fac_session_run fac_session_last(fac_session *s) {
    if (!s->runs) return (fac_session_run){ 0 };
    return (fac_session_run){ s->program, s->in[s->last], &s->out, 5, 1 };
}

fac_session_stat fac_session_about(const fac_session *s) {
    const size_t each =
        (size_t)(s->nslots * s->m->c.kv_heads * s->capacity * s->m->c.head) * sizeof(float);
    fac_plan_stat stat = { 0 };
    if (s->runs) fac_program_plan(s->program, s->in[0], &stat, NULL);
    return (fac_session_stat){ .runs = s->runs,
                               .cache_bytes = each * (size_t)fac_session_caches(s),
                               .copied = stat.copied };
}

fac_lm_facts fac_session_facts(const fac_session *s) {
    return (fac_lm_facts){ .vocabulary = s->m->c.vocabulary, .context = s->m->context };
}

int64_t fac_session_past(const fac_session *s, int at, int32_t *to) {
    const int64_t n = fac_session_length(s, at);
    if (n) memcpy(to, s->fed + at * s->m->context, (size_t)n * sizeof *to);
    return n;
}
