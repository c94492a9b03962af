/* Sessions: sequences in the slots of one batch.  What was fed waits; a step reads it in chunks of
 * 256, 64, 8 or 1 tokens, for all slots at once.  Tokens of a chunk that a slot has not are
 * padding: they are written after its last row, where nothing sees them and the next chunk writes
 * over them; so caches have a chunk's rows more than the context. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "lm/lm.h"
#include "tensor/tensor_internal.h"

enum { CHUNKS = 4, FIRST_ROWS = 256 };
static const int64_t chunks[CHUNKS] = { 1, 8, 64, 256 };

typedef struct slot {
    int64_t length, pending;
    bool fresh;
} slot; /* read; fed; its logits are of the last step */

struct fac_session {
    fac_lm *m;
    fac_program *program;
    fac_tensor **caches; /* of each layer keys, values: [slots, G, capacity, D] */
    slot *slots;
    int32_t *fed;  /* [slots, context] */
    float *logits; /* [slots, vocabulary] */
    int nslots;
    int64_t capacity, runs;
    fac_tensor *in[CHUNKS][5], *out; /* inputs of each chunk; logits of a run */
    size_t copied;
    fac_tensor *rows, *checked; /* of fac_session_check, made when first asked for */
};
enum { IDS, POSITIONS, AT, LENGTHS, ROWS };

static int64_t ncaches(const fac_lm *m) { return 2 * m->c.layers; }

/* ---- caches that double ---- */

static void free_caches(fac_tensor **all, int64_t n) {
    for (int64_t k = 0; all && k < n; k++) fac_tensor_free(all[k]);
    fac_release(all);
}

static fac_status new_caches(const fac_session *s, int64_t capacity, fac_tensor ***out,
                             fac_error *err) {
    const fac_lm *m = s->m;
    const int64_t n = ncaches(m);
    fac_tensor **all = fac_alloc((size_t)n, sizeof *all);
    fac_status status = all ? FAC_OK : fac_raise_memory(err, "caches");
    for (int64_t k = 0; k < n && !status; k++)
        status = fac_tensor_new(
            NULL, FAC_F32, fac_shape(s->nslots, m->c.kv_heads, capacity, m->c.head), &all[k], err);
    if (status)
        free_caches(all, n);
    else
        *out = all;
    return status;
}

static fac_status writable(fac_tensor *t, float **x, fac_error *err) {
    void *data;
    if (!fac_tensor_data(t)) return fac_raise(err, FAC_E_DEVICE, "a cache cannot be read");
    FAC_TRY(fac_tensor_begin_write(t, &data, err));
    *x = data;
    return FAC_OK;
}

/* The first `rows` rows of every head of slot `from` into those of slot `to`, of caches of other
 * capacities. */
static fac_status copy_rows(const fac_session *s, const fac_tensor *a, int64_t a_rows, int from,
                            fac_tensor *b, int64_t b_rows, int to, int64_t rows, fac_error *err) {
    const int64_t G = s->m->c.kv_heads, D = s->m->c.head;
    float *y;
    FAC_TRY(writable(b, &y, err));
    const float *x = fac_tensor_data(a);
    for (int64_t g = 0; g < G; g++)
        memmove(y + ((int64_t)to * G + g) * b_rows * D, x + ((int64_t)from * G + g) * a_rows * D,
                (size_t)(rows * D) * sizeof *x);
    return FAC_OK;
}

static fac_status make_program(fac_session *s, fac_tensor **caches, int64_t capacity,
                               fac_program **out, fac_error *err) {
    fac_graph *g;
    const fac_program_opts o = { .precision = s->m->opts.precision };
    FAC_TRY(fac_lm_build(s->m, s->nslots, capacity, caches, &g, err));
    const fac_status status = fac_program_new(g, s->m->device, &o, out, err);
    fac_graph_free(g);
    return status;
}

static fac_status grow(fac_session *s, int64_t rows, fac_error *err) {
    int64_t capacity = s->capacity ? s->capacity : FIRST_ROWS;
    const int64_t most = s->m->context + chunks[CHUNKS - 1];
    while (capacity < rows) capacity *= 2;
    if (capacity > most) capacity = most;
    if (capacity == s->capacity) return FAC_OK;
    fac_tensor **caches;
    fac_program *program = NULL;
    FAC_TRY(new_caches(s, capacity, &caches, err));
    fac_status status = make_program(s, caches, capacity, &program, err);
    for (int64_t k = 0; k < ncaches(s->m) && s->caches && !status; k++)
        for (int b = 0; b < s->nslots && !status; b++)
            status = copy_rows(s, s->caches[k], s->capacity, b, caches[k], capacity, b,
                               s->slots[b].length, err);
    if (status) {
        fac_program_free(program);
        free_caches(caches, ncaches(s->m));
        return status;
    }
    fac_program_free(s->program);
    free_caches(s->caches, ncaches(s->m));
    s->program = program;
    s->caches = caches;
    s->capacity = capacity;
    return FAC_OK;
}

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
    if (!status) status = grow(s, FIRST_ROWS, err);
    if (status)
        fac_session_free(s);
    else
        *out = s;
    return status;
}

void fac_session_free(fac_session *s) {
    if (!s) return;
    fac_program_free(s->program);
    free_caches(s->caches, ncaches(s->m));
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
    slot *t = &s->slots[at];
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

static int64_t taken(const slot *t, int c) {
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
        const slot *t = &s->slots[b];
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

static fac_status read_chunk(fac_session *s, int c, fac_error *err) {
    int64_t rows = 0;
    const int64_t vocabulary = s->m->c.vocabulary;
    for (int b = 0; b < s->nslots; b++)
        rows = s->slots[b].length + chunks[c] > rows ? s->slots[b].length + chunks[c] : rows;
    FAC_TRY(grow(s, rows, err));
    FAC_TRY(fill(s, c, err));
    FAC_TRY(fac_program_run(s->program, s->in[c], &s->out, err));
    const float *y = fac_tensor_data(s->out);
    if (!y) return fac_raise(err, FAC_E_DEVICE, "the logits cannot be read");
    s->runs++;
    for (int b = 0; b < s->nslots; b++) {
        slot *t = &s->slots[b];
        const int64_t n = taken(t, c);
        t->length += n;
        t->pending -= n;
        if (!n || t->pending) continue;
        t->fresh = true;
        memcpy(s->logits + b * vocabulary, y + b * vocabulary, (size_t)vocabulary * sizeof *y);
    }
    return FAC_OK;
}

fac_status fac_session_step(fac_session *s, fac_error *err) {
    for (int b = 0; b < s->nslots; b++) s->slots[b].fresh = false;
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
    FAC_TRY(grow(s, rows, err));
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
    for (int b = 0; b < s->nslots; b++) s->slots[b].fresh = false;
    FAC_TRY(begin_check(s, at, err));
    fac_tensor *in[5] = { s->in[CHECK][IDS], s->in[CHECK][POSITIONS], s->in[CHECK][AT],
                          s->in[CHECK][LENGTHS], s->rows };
    FAC_TRY(fac_program_run(s->program, in, &s->checked, err));
    *logits = fac_tensor_data(s->checked);
    if (!*logits) return fac_raise(err, FAC_E_DEVICE, "the logits cannot be read");
    slot *t = &s->slots[at];
    s->runs++;
    *n = t->pending;
    t->length += t->pending;
    t->pending = 0;
    return FAC_OK;
}

const float *fac_session_logits(const fac_session *s, int at) {
    const bool have = at >= 0 && at < s->nslots && s->slots[at].fresh;
    return have ? s->logits + at * s->m->c.vocabulary : NULL;
}

int64_t fac_session_length(const fac_session *s, int at) {
    return at >= 0 && at < s->nslots ? s->slots[at].length + s->slots[at].pending : 0;
}

fac_status fac_session_cut(fac_session *s, int at, int64_t length, fac_error *err) {
    FAC_TRY(check_slot(s, at, err));
    slot *t = &s->slots[at];
    if (length < 0 || length > t->length + t->pending)
        return fac_raise(err, FAC_E_ARGUMENT, "cut to %lld tokens of %lld", (long long)length,
                         (long long)(t->length + t->pending));
    *t = (slot){ length < t->length ? length : t->length,
                 length < t->length ? 0 : length - t->length, false };
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
    FAC_TRY(grow(s, length, err));
    for (int64_t k = 0; k < ncaches(s->m); k++)
        FAC_TRY(copy_rows(s, a->caches[k], a->capacity, from, s->caches[k], s->capacity, to, length,
                          err));
    memmove(s->fed + to * s->m->context, a->fed + from * s->m->context,
            (size_t)length * sizeof *s->fed);
    s->slots[to] = (slot){ length, 0, false };
    return FAC_OK;
}

fac_session_stat fac_session_about(const fac_session *s) {
    const size_t each =
        (size_t)(s->nslots * s->m->c.kv_heads * s->capacity * s->m->c.head) * sizeof(float);
    fac_plan_stat stat = { 0 };
    if (s->runs) fac_program_plan(s->program, s->in[0], &stat, NULL);
    return (fac_session_stat){ .runs = s->runs,
                               .cache_bytes = each * (size_t)ncaches(s->m),
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
