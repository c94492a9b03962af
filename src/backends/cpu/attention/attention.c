/* Solver "attention": softmax(scale q k^T + mask) v of f32 in one pass, without the matrix of
 * scores.
 *
 * An item is up to two vectors of queries of one head of k and v; with grouped queries the rows of
 * all heads of q that share one of k are one list of queries.  Block by block of keys
 *     s[key][query] = sum over d of k[key][d] q[query][d],  p = 2^(s - top)
 *     o[e][query] += sum over keys of v[key][e] p[key]
 * Queries are the lanes of vectors all the way, so k and v are read where they lie, one number
 * after the other; only q and y are transposed.  Where every key takes part, a score becomes a
 * weight in the registers that its sum was made in: a block's first keys say how large scores are,
 * and where others are far above them the block is done again, scores first. Scores are divided by
 * ln 2, so that the weights are powers of 2.
 *
 * Takes what attention() takes but for the output `scores` and a softmax in f64.  k and v after a
 * past are joined first, in the outputs present_key and present_value if these are asked for. */
#include <math.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/attention/attention_rows.h"
#include "graph/attr.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "backends/problem.h"
#include "base/clamp.h"
#include "base/memory.h"
#include "op_list.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };
enum { KEYS = 256, SHARES = 8 }; /* of a block; shares of the work for a thread */
static const double LOG2_E = 1.44269504088896340736;

/* What stands before k or v, and where both are joined. */
typedef struct join {
    bool wanted, needed;
    size_t at;
} join;
typedef struct copies {
    fac_copy past, now;
} copies;

typedef struct plan {
    const fac_problem *problem;
    const fac_cpu *cpu;
    fac_attention_shape shape;
    int64_t blocks; /* of queries, in one group */
    fac_attention_place q, k, v, y;
    join join[2]; /* of k, of v */
    double softcap;
    float factor, left; /* of q, and of scores after products, masks and a softcap: all of it of q,
                           but what a mask is added to is in its units, not in those of ln 2 */
    size_t share, joined; /* floats of scratch of one thread; bytes of the joined k and v */
    copies copy[];        /* of k, of v */
} plan;

/* ---- shapes ---- */

static bool same_type(const fac_operand *o, fac_dtype t) {
    return o->type.dtype == FAC_NONE || o->type.dtype == t;
}

static bool settle(plan *a, const fac_problem *p, fac_cpu const *cpu) {
    const int64_t wide = 2 * cpu->simd->lanes,
                  past = p->in[PAST_KEY].type.dtype ? p->in[PAST_KEY].type.dims.d[2] : 0;
    const fac_attention_shape *s = &a->shape;
    a->cpu = cpu;
    if (!fac_attention_shape_of(p, cpu, &p->in[MASK], past, &a->shape)) return false;
    fac_attr_get_real(p->node, "softcap", &a->softcap);
    const bool capped = a->softcap > 0, masked = s->mask_type != FAC_NONE;
    a->factor = (float)(s->scale * (masked ? 1 : LOG2_E));
    a->left = (float)(capped || masked ? LOG2_E : 1);
    if (capped) a->left *= (float)a->softcap;
    a->blocks = (s->rows + wide - 1) / wide;
    a->share = (size_t)(wide * (s->D + s->E + 3 * KEYS + 4) + KEYS);
    size_t bytes[2] = { 0, 0 };
    for (int i = 0; i < 2; i++) {
        a->join[i].wanted = p->out[1 + i].type.dtype != FAC_NONE;
        a->join[i].needed = s->past && !a->join[i].wanted;
        const int64_t size = i ? s->E : s->D;
        if (!fac_size_mul((size_t)(s->B * s->G * size), (size_t)s->T * sizeof(float), &bytes[i]))
            return false;
        a->join[i].at = a->joined;
        if (a->join[i].needed) a->joined += (bytes[i] + 63) / 64 * 64;
    }
    return true;
}

/* Copies of the past and of what is new into the rows of one matrix for each head. */
static void plan_join(const plan *s, const fac_problem *p, int i, copies *to) {
    const fac_attention_shape *a = &s->shape;
    const int64_t heads = a->G, size = i ? a->E : a->D;
    const fac_dims all = fac_shape(a->B, heads, a->T, size),
                   now = fac_shape(a->B, heads, a->T - a->past, size);
    const fac_operand *o = &p->in[K + i], *before = &p->in[PAST_KEY + i];
    fac_layout whole = s->join[i].wanted ? p->out[1 + i].layout : fac_layout_plain(&all),
               part = whole;
    const fac_attention_place from = fac_attention_place_of(o, heads);
    fac_layout lies = { .offset = o->layout.offset,
                        .stride = { from.batch, from.head, from.row, 1 } };
    part.offset += a->past * whole.stride[2];
    fac_copy_plan(&to->now, &now, &lies, &part, sizeof(float));
    if (a->past)
        fac_copy_plan(&to->past, &before->type.dims, &before->layout, &whole, sizeof(float));
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *cpu = fac_cpu_of(d);
    plan a = { .joined = 0 };
    int64_t window = 0;
    fac_attr_get_int(p->node, "window", &window);
    if (window || p->node->body[0] || p->out[3].type.dtype != FAC_NONE ||
        p->out[0].type.dtype != FAC_F32)
        return false;
    for (int i = Q; i <= PAST_VALUE; i++) {
        const bool flags = i == MASK && p->in[i].type.dtype == FAC_BOOL;
        if (!flags && !same_type(&p->in[i], FAC_F32)) return false;
    }
    const fac_dtype *precision = fac_attr_at(p->node, "precision", FAC_A_DTYPE);
    if ((precision && *precision != FAC_NONE && *precision != FAC_F32) || !settle(&a, p, cpu))
        return false;
    for (int i = Q; i <= V; i++) fac_attention_want_rows(&p->in[i]);
    for (int i = MASK; i <= LENGTHS; i++)
        if (p->in[i].type.dtype) fac_want_plain(&p->in[i]);
    for (int k = 1; k < p->nout; k++)
        if (p->out[k].type.dtype) fac_want_plain(&p->out[k]);
    fac_lay_in_order(&p->in[Q], &p->out[0]);
    fac_attention_want_rows(&p->out[0]);
    o->work = a.joined + a.share * sizeof(float) * (size_t)cpu->pool.threads;
    const fac_attention_shape *s = &a.shape;
    double pairs =
        (double)(s->B * s->H) * (double)s->Q * (double)s->T * (s->causal && s->Q == s->T ? 0.5 : 1);
    o->seconds = fac_cpu_seconds(cpu, pairs * (2 * (double)(s->D + s->E) + 12), 0.75, 0);
    *FAC_DRAFT(o, plan) = a;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *a = fac_solver_plan(p, sizeof *a + 2 * sizeof *a->copy, err);
    (void)d;
    if (!a) return FAC_E_NOMEM;
    *a = *(const plan *)p->draft;
    a->problem = p;
    const fac_attention_shape *s = &a->shape;
    a->q = fac_attention_place_of(&p->in[Q], s->H);
    a->k = fac_attention_place_of(&p->in[K], s->G);
    a->v = fac_attention_place_of(&p->in[V], s->G);
    a->y = fac_attention_place_of(&p->out[0], s->H);
    for (int i = 0; i < 2; i++)
        if (a->join[i].wanted || a->join[i].needed) plan_join(a, p, i, &a->copy[i]);
    *out = a;
    return FAC_OK;
}

/* ---- running ---- */

typedef struct job {
    const plan *a;
    const float *q, *k, *v;
    float *y, *work;
    const void *mask;
    fac_attention_place k_at, v_at; /* of what is read: joined, or as it came */
    fac_dtype lengths;
    const void *length;
    float *lse; /* or NULL */
} job;

static int64_t length_of(const job *j, int64_t batch) {
    const int64_t all = j->a->shape.T;
    if (j->lengths == FAC_NONE) return all;
    int64_t n = 0;
    fac_convert(FAC_I64, &n, j->lengths,
                (const char *)j->length + (size_t)batch * fac_copy_size(j->lengths), 1);
    return fac_clamp(n, 0, all);
}

typedef struct sums {
    const float *top, *sum;
} sums;

static void put_lse(const fac_attention_queries *t, void *arg, float *row, int64_t step, int64_t n,
                    int64_t lane) {
    const sums *s = arg;
    (void)t;
    for (int64_t i = 0; i < n; i++) {
        const float sum = s->sum[lane + i];
        row[i * step] =
            sum > 0
                ? (float)(0.69314718055994530942 * ((double)s->top[lane + i] + log2((double)sum)))
                : 0;
    }
}

static void cap(const plan *a, float *s, int64_t n) {
    const float scale = (float)(a->shape.scale / a->softcap);
    for (int64_t i = 0; i < n; i++) s[i] = tanhf(scale * s[i]);
}

/* What an item has: a query each lane of one or two vectors. */
typedef struct item {
    fac_attention_queries t;
    int vectors;
    float *q, *o; /* [D], [E] rows */
    float *s, *mask, *stage,
        *bias; /* of a block: [KEYS] rows, [KEYS] rows, as many numbers, [KEYS] */
    float *last, *top, *sum, *block; /* rows; block: what a block adds to sum */
    bool begun, fresh;               /* o is there; k and v may still be far */
} item;

static void forget(item *u) {
    for (int64_t i = 0; i < u->t.wide; i++) {
        u->top[i] = -INFINITY;
        u->sum[i] = 0;
    }
}

static void scores(const plan *a, const item *u, fac_attention_tile c, fac_attention_block *b) {
    fac_attention_product(a->cpu->simd, FAC_ATTENTION_ROWS, &c, b->keys, u->vectors);
    if (a->softcap > 0) cap(a, b->s, b->keys * u->t.wide);
    a->cpu->simd->attention->fold(b);
}

/* Scores and weights in one, where every key takes part.  false: some score is too large for that,
 * nothing has changed. */
static bool weights(const plan *a, item *u, fac_attention_tile c, fac_attention_block b) {
    const fac_simd *simd = a->cpu->simd;
    int64_t first = 0;
    if (!u->begun) first = b.keys < simd->rows ? b.keys : simd->rows;
    const int64_t left = b.keys - first;
    if (first) b.keys = first, scores(a, u, c, &b);
    memset(u->block, 0, (size_t)u->t.wide * sizeof(float));
    if (c.ahead) c.ahead += first * c.ahead_step;
    c.a += first * c.step;
    c.y += first * c.y_row;
    c.base = u->top;
    c.sum = u->block;
    if (left) fac_attention_product(simd, FAC_ATTENTION_WEIGHTS, &c, left, u->vectors);
    for (int64_t i = 0; i < u->t.wide && !c.unfit; i++) u->sum[i] += u->block[i];
    if (c.unfit && first) forget(u);
    return !c.unfit;
}

static void add_block(const job *j, item *u, const float *k, const float *v, int64_t first,
                      int64_t n, bool all) {
    const plan *a = j->a;
    const int64_t wide = u->t.wide, E = a->shape.E;
    const bool capped = a->softcap > 0;
    float *s = u->s;
    fac_attention_block b = { .s = s,
                              .row = wide,
                              .keys = n,
                              .vectors = u->vectors,
                              .first = (float)first,
                              .top = u->top,
                              .sum = u->sum,
                              .o = u->o,
                              .size = u->begun ? E : 0,
                              .scale = a->left,
                              .last = all ? NULL : u->last };
    if (!fac_attention_mask(&u->t, j->mask, first, n, u->bias, u->mask, u->stage, &b)) return;
    const bool onto = b.mask && all && !capped; /* scores are added to the mask where it lies */
    if (onto) {
        s = u->mask;
        b.s = s;
        b.mask = NULL;
    }
    const fac_attention_tile c = { .a = k + first * j->k_at.row,
                                   .step = j->k_at.row,
                                   .depth = a->shape.D,
                                   .w = u->q,
                                   .w_row = wide,
                                   .y = s,
                                   .y_row = wide,
                                   .add = onto,
                                   .ahead = u->fresh ? v + first * j->v_at.row : NULL,
                                   .ahead_step = j->v_at.row,
                                   .ahead_size = E };
    if (j->mask || !all || capped || !weights(a, u, c, b)) scores(a, u, c, &b);
    fac_attention_tile values = { .a = v + first * j->v_at.row,
                                  .step = j->v_at.row,
                                  .depth = n,
                                  .w = s,
                                  .w_row = wide,
                                  .y = u->o,
                                  .y_row = wide,
                                  .add = u->begun };
    fac_attention_product(a->cpu->simd, FAC_ATTENTION_COLUMNS, &values, E, u->vectors);
    u->begun = true;
}

static fac_attention_queries queries(const plan *a, int64_t unit) {
    const fac_attention_shape *s = &a->shape;
    const int64_t lanes = a->cpu->simd->lanes, first = unit % a->blocks * 2 * lanes,
                  left = s->rows - first;
    const int64_t n = left < 2 * lanes ? left : 2 * lanes;
    const int64_t head = unit / a->blocks;
    return (fac_attention_queries){ s,     head / s->G, head % s->G,
                                    first, n,           n > lanes ? 2 * lanes : lanes };
}

/* `fresh`: this thread has not read k and v of that head lately. */
static void run_item(const job *j, int64_t unit, bool fresh, float *scratch) {
    const plan *a = j->a;
    const fac_attention_shape *shape = &a->shape;
    const fac_simd *simd = a->cpu->simd;
    const int64_t most = 2 * simd->lanes, D = shape->D, E = shape->E;
    item u = { .fresh = fresh || unit % a->blocks == 0,
               .t = queries(a, unit),
               .q = scratch,
               .o = scratch + most * D };
    fac_attention_queries *t = &u.t;
    u.vectors = (int)(t->wide / simd->lanes);
    u.s = u.o + most * E;
    u.mask = u.s + most * KEYS;
    u.stage = u.mask + most * KEYS;
    u.last = u.stage + most * KEYS;
    u.top = u.last + most;
    u.sum = u.top + most;
    u.block = u.sum + most;
    u.bias = u.block + most;
    float least;
    const int64_t length = length_of(j, t->batch),
                  before = j->lengths == FAC_NONE ? shape->past : length - shape->Q;
    const int64_t keys = fac_attention_last(t, before, length, u.last, &least),
                  seen_by_all = (int64_t)least + 1;
    forget(&u);
    fac_attention_turn_in(t, &a->q, j->q, u.q, D);
    for (int64_t i = 0; i < t->wide * D && !(a->softcap > 0); i++) u.q[i] *= a->factor;

    const float *k = j->k + t->batch * j->k_at.batch + t->group * j->k_at.head;
    const float *v = j->v + t->batch * j->v_at.batch + t->group * j->v_at.head;
    for (int64_t first = 0, n; first < keys; first += n) {
        const bool all = first < seen_by_all;
        const int64_t left = (all && seen_by_all < keys ? seen_by_all : keys) - first,
                      blocks = (left + KEYS - 1) / KEYS;
        n = (left + blocks - 1) / blocks;
        add_block(j, &u, k, v, first, n, all);
    }
    if (!u.begun) memset(u.o, 0, (size_t)(t->wide * E) * sizeof(float));
    const fac_attention_place lse = { shape->H * shape->Q, shape->Q, 1 };
    if (j->lse) fac_attention_each(t, &lse, j->lse, put_lse, &(sums){ u.top, u.sum });
    simd->attention->divide(u.o, E, u.vectors, u.sum); /* a query that saw no key gives zeros */
    fac_attention_turn_out(t, &a->y, j->y, u.o, E);
}

static void run_items(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    float *scratch = j->work + (size_t)thread * j->a->share;
    for (int64_t u = first; u < last; u++) run_item(j, u, u == first, scratch);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)err;
    const plan *a = arg;
    const fac_problem *p = a->problem;
    const fac_cpu *cpu = fac_cpu_of(d);
    const float *from[2] = { fac_span_floats(in[K], &p->in[K].layout),
                             fac_span_floats(in[V], &p->in[V].layout) };
    const fac_attention_shape *s = &a->shape;
    fac_attention_place at[2] = { a->k, a->v };
    for (int i = 0; i < 2; i++) {
        const join *t = &a->join[i];
        if (!t->wanted && !t->needed) continue;
        char *to = t->wanted ? fac_span_bytes(out[1 + i]) : fac_span_bytes(work) + t->at;
        if (s->past) fac_copy_run(&a->copy[i].past, cpu, fac_span_bytes(in[PAST_KEY + i]), to);
        fac_copy_run(&a->copy[i].now, cpu, fac_span_bytes(in[K + i]), to);
        if (!s->past) continue;
        const int64_t size = i ? s->E : s->D;
        from[i] = (const float *)to + (t->wanted ? p->out[1 + i].layout.offset : 0);
        at[i] = (fac_attention_place){ s->G * s->T * size, s->T * size, size };
    }
    const float *q = fac_span_floats(in[Q], &p->in[Q].layout);
    float *y = fac_span_floats(out[0], &p->out[0].layout);
    float *joined = (float *)(fac_span_bytes(work) + a->joined);
    float *lse = p->out[4].type.dtype ? fac_span_floats(out[4], &p->out[4].layout) : NULL;
    job j = { a, q, from[0], from[1], y, joined, NULL, at[0], at[1], FAC_NONE, NULL, lse };
    if (p->in[MASK].type.dtype)
        j.mask = fac_span_bytes(in[MASK]) +
                 p->in[MASK].layout.offset * (int64_t)fac_copy_size(p->in[MASK].type.dtype);
    if (p->in[LENGTHS].type.dtype) {
        j.lengths = p->in[LENGTHS].type.dtype;
        j.length = fac_span_bytes(in[LENGTHS]) +
                   p->in[LENGTHS].layout.offset * (int64_t)fac_copy_size(j.lengths);
    }
    fac_parallel_ranges(&cpu->pool, s->B * s->G * a->blocks, SHARES * cpu->pool.threads, run_items,
                        &j);
    return FAC_OK;
}

const fac_solver fac_cpu_attention = { .name = "attention",
                                       .op = &fac_op_attention,
                                       .rank = 360,
                                       .offer = offer,
                                       .make = make,
                                       .done = fac_solver_done,
                                       .run = run };
