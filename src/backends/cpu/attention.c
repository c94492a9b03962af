/* Solver "attention": softmax(scale q k^T + mask) v of f32 in one pass, without the matrix of scores.
 *
 * An item is up to two vectors of queries of one head of k and v; with grouped queries the rows of all heads of q that share one
 * of k are one list of queries.  Block by block of keys
 *     s[key][query] = sum over d of k[key][d] q[query][d],  p = 2^(s - top),  o[e][query] += sum over keys of v[key][e] p[key]
 * Queries are the lanes of vectors all the way, so k and v are read where they lie, one number after the other; only q and y are
 * turned.
 * Scores are divided by ln 2, so that the weights are powers of 2.
 *
 * Takes what attention() takes but for the output `scores` and a softmax in f64.  k and v behind a past are joined first, in
 * the outputs present_key and present_value if these are asked for. */
#include <math.h>
#include <string.h>
#include "backends/cpu/attention.h"
#include "backends/cpu/attr.h"
#include "backends/cpu/blocked.h"
#include "backends/cpu/copy.h"
#include "backends/cpu/ranges.h"
#include "backends/cpu/solvers.h"
#include "base/error.h"
#include "base/memory.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };
enum { KEYS = 128, MOST_KEYS = 1 << 24, SHARES = 8 };   /* keys of a block; keys that a float counts exactly */

/* Elements from one sequence, head and row to the next; a row is contiguous. */
typedef struct place { int64_t batch, head, row; } place;

/* What stands before k or v, and where both are joined. */
typedef struct join { bool wanted, needed; fac_copy past, now; size_t at; } join;

typedef struct plan {
    const fac_problem *problem;
    const fac_cpu *cpu;
    int64_t B, H, G, Q, T, D, E;            /* sequences, heads of q, of k and v, queries, keys, sizes of a head */
    int64_t past, rows, blocks;             /* keys of the past; queries that share a head of k, blocks of them  */
    place   q, k, v, y;
    join    join[2];                        /* of k, of v */
    double  scale, softcap;
    float   factor;                         /* of what the masks are added to: in units of ln 2 */
    bool    causal;
    int64_t mask_step[3], mask_keys;        /* elements of the mask for a sequence, head, query; its last dim */
    size_t  share, joined;                  /* floats of scratch of one thread; bytes of the joined k and v */
} plan;

/* ---- shapes ---- */

static bool same_type(const fac_operand *o, fac_dtype t) { return o->type.dtype == FAC_NONE || o->type.dtype == t; }

/* An operand with three dims is B, rows, heads size. */
static place place_of(const fac_operand *o, int64_t heads) {
    const int64_t *s = o->layout.stride, *d = o->type.dims.d;
    if (o->type.dims.n == 4) return (place){ s[0], s[1], s[2] };
    return (place){ s[0], d[2] / heads, s[1] };
}

static fac_dims heads_of(const fac_operand *o, int64_t heads) {
    const int64_t *d = o->type.dims.d;
    return o->type.dims.n == 4 ? o->type.dims : fac_shape(d[0], heads, d[1], d[2] / heads);
}

/* Rows must lie contiguous; where they lie is free. */
static void want_rows(fac_operand *o) {
    const fac_layout *l = &o->layout;
    int last = o->type.dims.n - 1;
    if (l->block || (l->stride[last] != 1 && o->type.dims.d[last] != 1)) o->layout = fac_layout_plain(&o->type.dims);
}

static bool read_shapes(const fac_problem *p, plan *a) {
    int64_t q_heads = 0, kv_heads = 0;
    fac_attr_int(p->node, "q_heads", &q_heads);
    fac_attr_int(p->node, "kv_heads", &kv_heads);
    fac_attr_real(p->node, "scale", &a->scale);
    fac_attr_real(p->node, "softcap", &a->softcap);
    a->causal = fac_attr_flag(p->node, "causal");
    const fac_dims q = heads_of(&p->in[Q], q_heads), k = heads_of(&p->in[K], kv_heads), v = heads_of(&p->in[V], kv_heads);
    a->B = q.d[0], a->H = q.d[1], a->Q = q.d[2], a->D = q.d[3], a->G = k.d[1], a->E = v.d[3];
    a->past = p->in[PAST_KEY].type.dtype ? p->in[PAST_KEY].type.dims.d[2] : 0;
    a->T = a->past + k.d[2];
    if (fac_dims_count(&q) == 0 || a->T == 0 || a->E == 0 || a->T > MOST_KEYS) return false;
    if (a->scale == 0) a->scale = 1 / sqrt((double)a->D);
    a->factor = (float)(1.44269504088896340736 * (a->softcap > 0 ? a->softcap : a->scale));
    if (p->in[MASK].type.dtype) {
        const fac_dims *m = &p->in[MASK].type.dims;
        int64_t step = a->mask_keys = m->d[m->n - 1];
        for (int i = 2, k_ = m->n - 2; i >= 0; i--, k_--) {
            const int64_t n = k_ >= 0 ? m->d[k_] : 1;
            a->mask_step[i] = n == 1 ? 0 : step;
            step *= n;
        }
    }
    return true;
}

static bool settle(plan *a, const fac_problem *p, fac_cpu const *cpu) {
    const int64_t wide = 2 * cpu->simd->lanes;
    a->problem = p, a->cpu = cpu;
    if (!read_shapes(p, a)) return false;
    a->rows = a->H / a->G * a->Q;
    a->blocks = (a->rows + wide - 1) / wide;
    a->share = (size_t)(wide * (a->D + a->E + 3 * KEYS + 3) + KEYS);
    size_t bytes[2] = { 0, 0 };
    for (int i = 0; i < 2; i++) {
        a->join[i].wanted = p->out[1 + i].type.dtype != FAC_NONE;
        a->join[i].needed = a->past && !a->join[i].wanted;
        const int64_t size = i ? a->E : a->D;
        if (!fac_size_mul((size_t)(a->B * a->G * size), (size_t)a->T * sizeof(float), &bytes[i])) return false;
        a->join[i].at = a->joined;
        if (a->join[i].needed) a->joined += (bytes[i] + 63) / 64 * 64;
    }
    return a->D < 1 << 20 && a->E < 1 << 20 && a->B * a->G * a->blocks < INT32_MAX;
}

/* Copies of the past and of what is new into the rows of one matrix for each head. */
static void plan_join(const plan *a, const fac_problem *p, int i, join *j) {
    const int64_t heads = a->G, size = i ? a->E : a->D;
    const fac_dims all = fac_shape(a->B, heads, a->T, size), now = fac_shape(a->B, heads, a->T - a->past, size);
    const fac_operand *o = &p->in[K + i], *before = &p->in[PAST_KEY + i];
    fac_layout whole = j->wanted ? p->out[1 + i].layout : fac_layout_plain(&all), part = whole;
    place from = place_of(o, heads);
    fac_layout lies = { .offset = o->layout.offset, .stride = { from.batch, from.head, from.row, 1 } };
    part.offset += a->past * whole.stride[2];
    fac_copy_plan(&j->now, &now, &lies, &part, sizeof(float));
    if (a->past) fac_copy_plan(&j->past, &before->type.dims, &before->layout, &whole, sizeof(float));
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *cpu = fac_cpu_of(d);
    plan a = { .B = 0 };
    if (p->node->body[0] || p->out[3].type.dtype != FAC_NONE || p->out[0].type.dtype != FAC_F32) return false;
    for (int i = Q; i <= PAST_VALUE; i++) {
        const bool flags = i == MASK && p->in[i].type.dtype == FAC_BOOL;
        if (!flags && !same_type(&p->in[i], FAC_F32)) return false;
    }
    const fac_dtype *precision = fac_attr_at(p->node, "precision", FAC_A_DTYPE);
    if ((precision && *precision != FAC_NONE && *precision != FAC_F32) || !settle(&a, p, cpu)) return false;
    for (int i = Q; i <= V; i++) want_rows(&p->in[i]);
    for (int i = MASK; i <= LENGTHS; i++)
        if (p->in[i].type.dtype) fac_want_plain(&p->in[i]);
    for (int k = 1; k < p->nout; k++)
        if (p->out[k].type.dtype) fac_want_plain(&p->out[k]);
    want_rows(&p->out[0]);
    o->work = a.joined + a.share * sizeof(float) * (size_t)cpu->pool.threads;
    double pairs = (double)(a.B * a.H) * (double)a.Q * (double)a.T * (a.causal && a.Q == a.T ? 0.5 : 1);
    o->seconds = fac_cpu_seconds(cpu, pairs * (2 * (double)(a.D + a.E) + 12), 0.75, 0);
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *a = fac_alloc(1, sizeof *a);
    if (!a) return fac_raise(err, FAC_E_NOMEM, "attention: no memory for a plan");
    settle(a, p, fac_cpu_of(d));
    a->q = place_of(&p->in[Q], a->H), a->k = place_of(&p->in[K], a->G), a->v = place_of(&p->in[V], a->G);
    a->y = place_of(&p->out[0], a->H);
    for (int i = 0; i < 2; i++)
        if (a->join[i].wanted || a->join[i].needed) plan_join(a, p, i, &a->join[i]);
    *out = a;
    return FAC_OK;
}

static void done(fac_device *d, void *arg) { (void)d, fac_release(arg); }

/* ---- running ---- */

typedef struct job {
    const plan *a;
    const float *q, *k, *v;
    float *y, *work;
    const void *mask;
    place k_at, v_at;                       /* of what is read: joined, or as it came */
    fac_dtype lengths;
    const void *length;
    float *lse;                             /* or NULL */
} job;

/* The queries of an item, and the scratch of its thread: rows of one or two vectors, a query each lane. */
typedef struct item {
    int64_t batch, group, first, n;         /* queries first .. first + n - 1 of the group         */
    int     vectors, wide;                  /* wide = vectors * lanes                              */
    float  *q, *o, *s, *mask, *stage;       /* [D], [E], [keys], [keys] rows; a matrix to be turned */
    float  *last, *top, *sum, *bias;        /* rows; one number for each key                       */
    int64_t keys, masked;                   /* that any of the queries sees; of the block at hand  */
} item;

/* Calls f for every run of queries of one head: their first row, how many, and the lane of the first. */
typedef void run_of_rows(const plan *a, const item *t, float *row, int64_t step, int64_t n, int64_t lane);
static void each_run(const plan *a, const item *t, const place *at, float *base, run_of_rows *f) {
    for (int64_t i = 0, n; i < t->n; i += n) {
        const int64_t row = t->first + i, q = row % a->Q, head = t->group * (a->H / a->G) + row / a->Q;
        n = at->head == a->Q * at->row || t->n - i < a->Q - q ? t->n - i : a->Q - q;
        f(a, t, base + t->batch * at->batch + head * at->head + q * at->row, at->row, n, i);
    }
}
static void turn_in(const plan *a, const item *t, float *row, int64_t step, int64_t n, int64_t lane) {
    a->cpu->simd->turn(row, step, t->q + lane, t->wide, n, a->D);
}
static void turn_out(const plan *a, const item *t, float *row, int64_t step, int64_t n, int64_t lane) {
    a->cpu->simd->turn(t->o + lane, t->wide, row, step, a->E, n);
}

static void put_lse(const plan *a, const item *t, float *row, int64_t step, int64_t n, int64_t lane) {
    (void)a;
    for (int64_t i = 0; i < n; i++) {
        const float sum = t->sum[lane + i];
        row[i * step] = sum > 0 ? (float)(0.69314718055994530942 * ((double)t->top[lane + i] + log2((double)sum))) : 0;
    }
}

static int64_t length_of(const job *j, int64_t batch) {
    if (j->lengths == FAC_NONE) return j->a->T;
    int64_t n = 0;
    fac_convert(FAC_I64, &n, j->lengths, (const char *)j->length + (size_t)batch * fac_copy_size(j->lengths), 1);
    return n < 0 ? 0 : n > j->a->T ? j->a->T : n;
}

static void begin(const job *j, item *t) {
    const plan *a = j->a;
    const int64_t length = length_of(j, t->batch);
    const int64_t before = j->lengths == FAC_NONE ? a->past : length - a->Q;    /* keys before the one at query 0 */
    t->keys = 0;
    for (int64_t i = 0; i < t->wide; i++) {
        const int64_t own = before + (t->first + i) % a->Q, last = a->causal && own < length - 1 ? own : length - 1;
        t->last[i] = i < t->n ? (float)last : 0;
        t->top[i] = -INFINITY, t->sum[i] = 0;
        if (i < t->n && last + 1 > t->keys) t->keys = last + 1;
    }
    if (t->n < t->wide) memset(t->q, 0, (size_t)(t->wide * a->D) * sizeof(float));
    each_run(a, t, &a->q, (float *)(uintptr_t)j->q, turn_in);
}

/* The mask of some keys for one query. */
static void mask_row(const job *j, const item *t, int64_t i, int64_t first, int64_t keys, float *to) {
    const plan *a = j->a;
    const int64_t row = t->first + (i < t->n ? i : 0), heads = a->H / a->G;
    const int64_t head = t->group * heads + row / a->Q, *step = a->mask_step;
    const int64_t at = t->batch * step[0] + head * step[1] + row % a->Q * step[2];
    int64_t there = a->mask_keys - first;
    there = there < 0 ? 0 : there > keys ? keys : there;
    const bool flags = a->problem->in[MASK].type.dtype == FAC_BOOL;
    const float *numbers = (const float *)j->mask + at + first;
    const uint8_t *bits = (const uint8_t *)j->mask + at + first;
    if (flags) for (int64_t k = 0; k < there; k++) to[k] = bits[k] ? 0 : -INFINITY;
    else memcpy(to, numbers, (size_t)there * sizeof *to);
    for (int64_t k = there; k < keys; k++) to[k] = -INFINITY;
}

static bool sees_any(const float *mask, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        if (mask[k] != -INFINITY) return true;
    return false;
}

static void turn_mask(const plan *a, const item *t, float *row, int64_t step, int64_t n, int64_t lane) {
    a->cpu->simd->turn(row, step, t->mask + lane, t->wide, n, t->masked);
}

/* Fills t->bias or t->mask; false when it is found that the whole block takes no part. */
static bool mask_block(const job *j, item *t, int64_t first, int64_t keys, fac_attention_block *b) {
    const plan *a = j->a;
    const bool alike = a->mask_step[2] == 0 && (a->mask_step[1] == 0 || a->H == a->G);
    bool any = false;
    if (!j->mask) return true;
    if (alike) {
        mask_row(j, t, 0, first, keys, t->bias);
        b->bias = t->bias;
        return sees_any(t->bias, keys);
    }
    b->mask = t->mask;
    if (a->problem->in[MASK].type.dtype == FAC_F32 && first + keys <= a->mask_keys) {      /* as it lies */
        const place at = { a->mask_step[0], a->mask_step[1], a->mask_step[2] };
        t->masked = keys;
        if (t->n < t->wide) memset(t->mask, 0, (size_t)(t->wide * keys) * sizeof(float));
        each_run(a, t, &at, (float *)(uintptr_t)j->mask + first, turn_mask);
        return true;
    }
    for (int64_t i = 0; i < t->wide; i++) {
        float *row = t->stage + i * KEYS;
        mask_row(j, t, i, first, keys, row);
        any = any || sees_any(row, keys);
    }
    a->cpu->simd->turn(t->stage, KEYS, t->mask, t->wide, t->wide, keys);
    return any;
}

/* to[row] = sum over c of x[row][c] w[c], or that added to what is there. */
static void product(const plan *a, const item *t, int kind, const float *x, int64_t step, int64_t rows, int64_t depth,
                    const float *w, float *to, bool add) {
    const fac_simd *s = a->cpu->simd;
    const int64_t tiles = (rows + s->rows - 1) / s->rows;
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t first = rows * i / tiles, m = rows * (i + 1) / tiles - first;
        const int64_t at = kind == FAC_ATTENTION_ROWS ? first * step : first;
        const fac_attention_tile c = { .a = x + at, .step = step, .depth = depth, .w = w, .y = to + first * t->wide, .add = add };
        s->attention->tile[kind][m][t->vectors - 1](&c);
    }
}

static void cap(const plan *a, float *s, int64_t n) {
    const float scale = (float)(a->scale / a->softcap);
    for (int64_t i = 0; i < n; i++) s[i] = tanhf(scale * s[i]);
}

static void run_item(const job *j, int64_t unit, float *scratch) {
    const plan *a = j->a;
    const fac_simd *s = a->cpu->simd;
    const int64_t most = 2 * s->lanes;
    item t = { .group = unit / a->blocks % a->G, .batch = unit / a->blocks / a->G, .first = unit % a->blocks * most };
    t.n = a->rows - t.first < most ? a->rows - t.first : most;
    t.vectors = t.n > s->lanes ? 2 : 1, t.wide = t.vectors * s->lanes;
    t.q = scratch, t.o = t.q + most * a->D, t.s = t.o + most * a->E, t.mask = t.s + most * KEYS;
    t.stage = t.mask + most * KEYS, t.last = t.stage + most * KEYS, t.top = t.last + most, t.sum = t.top + most;
    t.bias = t.sum + most;
    begin(j, &t);
    const float *k = j->k + t.batch * j->k_at.batch + t.group * j->k_at.head;
    const float *v = j->v + t.batch * j->v_at.batch + t.group * j->v_at.head;
    float least = t.last[0];
    for (int64_t i = 1; i < t.n; i++) least = t.last[i] < least ? t.last[i] : least;
    bool begun = false;
    for (int64_t first = 0, n; first < t.keys; first += n) {
        n = t.keys - first < KEYS ? t.keys - first : KEYS;
        fac_attention_block b = { .s = t.s, .keys = n, .vectors = t.vectors, .first = (float)first, .top = t.top, .sum = t.sum,
                                  .o = t.o, .size = begun ? a->E : 0, .scale = a->factor,
                                  .last = least < (float)(first + n - 1) ? t.last : NULL };
        if (!mask_block(j, &t, first, n, &b)) continue;
        product(a, &t, FAC_ATTENTION_ROWS, k + first * j->k_at.row, j->k_at.row, n, a->D, t.q, t.s, false);
        if (a->softcap > 0) cap(a, t.s, n * t.wide);
        s->attention->fold(&b);
        product(a, &t, FAC_ATTENTION_COLUMNS, v + first * j->v_at.row, j->v_at.row, a->E, n, t.s, t.o, begun);
        begun = true;
    }
    if (!begun) memset(t.o, 0, (size_t)(t.wide * a->E) * sizeof(float));
    const place lse = { a->H * a->Q, a->Q, 1 };
    if (j->lse) each_run(a, &t, &lse, j->lse, put_lse);
    s->attention->divide(t.o, a->E, t.vectors, t.sum);      /* a query that saw no key gives zeros */
    each_run(a, &t, &a->y, j->y, turn_out);
}

static void run_items(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    for (int64_t u = first; u < last; u++) run_item(j, u, j->work + (size_t)thread * j->a->share);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out, fac_span work, fac_error *err) {
    (void)err;
    const plan *a = arg;
    const fac_problem *p = a->problem;
    const fac_cpu *cpu = fac_cpu_of(d);
    const float *from[2] = { fac_span_floats(in[K], &p->in[K].layout), fac_span_floats(in[V], &p->in[V].layout) };
    place at[2] = { a->k, a->v };
    for (int i = 0; i < 2; i++) {
        const join *t = &a->join[i];
        if (!t->wanted && !t->needed) continue;
        char *to = t->wanted ? fac_span_bytes(out[1 + i]) : fac_span_bytes(work) + t->at;
        if (a->past) fac_copy_run(&t->past, cpu, fac_span_bytes(in[PAST_KEY + i]), to);
        fac_copy_run(&t->now, cpu, fac_span_bytes(in[K + i]), to);
        if (!a->past) continue;
        const int64_t size = i ? a->E : a->D;
        from[i] = (const float *)to + (t->wanted ? p->out[1 + i].layout.offset : 0);
        at[i] = (place){ a->G * a->T * size, a->T * size, size };
    }
    job j = { a, fac_span_floats(in[Q], &p->in[Q].layout), from[0], from[1], fac_span_floats(out[0], &p->out[0].layout),
              (float *)(fac_span_bytes(work) + a->joined), NULL, at[0], at[1], FAC_NONE, NULL,
              p->out[4].type.dtype ? fac_span_floats(out[4], &p->out[4].layout) : NULL };
    if (p->in[MASK].type.dtype)
        j.mask = fac_span_bytes(in[MASK]) + p->in[MASK].layout.offset * (int64_t)fac_copy_size(p->in[MASK].type.dtype);
    if (p->in[LENGTHS].type.dtype) {
        j.lengths = p->in[LENGTHS].type.dtype;
        j.length = fac_span_bytes(in[LENGTHS]) + p->in[LENGTHS].layout.offset * (int64_t)fac_copy_size(j.lengths);
    }
    fac_parallel_ranges(&cpu->pool, a->B * a->G * a->blocks, SHARES * cpu->pool.threads, run_items, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_attention = {
    .name = "attention", .op = "attention", .offer = offer, .make = make, .done = done, .run = run };
