/* Solver "attention_grad": gradients of attention in f32 without a matrix of scores.
 *
 * An item is a part of the queries of one head of k and v.  Queries are taken by blocks, and for
 * each of them the keys by blocks:
 *     s[key][query] = k q^T,          p = 2^(s - lse)                 as the forward pass had them
 *     d[key][query] = v dy^T,         ds = p (d - sum of dy y)
 *     dv[key] += p dy,                dk[key] += ds q,                dq[.][query] += k^T ds
 * five products of tiles in the second cache.  Queries are the lanes of s, d and dq, so k, v, p and
 * ds are read as they lie, one number after the other; q and dy are there transposed and, for dv
 * and dk, as rows of whole vectors.
 *
 * Sums over queries go block by block in order.  Heads are shared out over threads; where there are
 * too few of them the queries of a head are parts with sums of their own, which are added in order:
 * the same bits for the same number of threads. */
#include <math.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/attention/attention_rows.h"
#include "graph/attr.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "backends/cpu/device/streams.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum { Q, K, V, Y, DY, LSE, MASK };
enum { KEYS = 128, QUERIES = 128, SHARES = 4 }; /* of a block; shares of the work for a thread */
static const double LOG2_E = 1.44269504088896340736;

typedef struct plan {
    const fac_problem *problem;
    fac_attention_shape shape;
    fac_attention_place q, k, v, y, dy, lse, dq, dk, dv;
    int64_t blocks, parts; /* of the queries of a group: blocks, parts */
    int64_t D, E;          /* whole vectors of a head's numbers        */
    size_t share, sums;    /* floats of scratch of one thread; of sums over queries in all */
} plan;

static bool settle(const fac_problem *p, const fac_cpu *cpu, plan *a) {
    const int64_t lanes = cpu->simd->lanes, threads = cpu->pool.threads;
    *a = (plan){ .problem = p };
    if (!fac_attention_shape_of(p, cpu, &p->in[MASK], 0, &a->shape)) return false;
    const fac_attention_shape *s = &a->shape;
    const int64_t heads = s->B * s->G,
                  most = threads > 1 ? (SHARES * threads + heads - 1) / heads : 1;
    a->blocks = (s->rows + QUERIES - 1) / QUERIES;
    a->parts = most < a->blocks ? most : a->blocks;
    a->D = (s->D + lanes - 1) / lanes * lanes;
    a->E = (s->E + lanes - 1) / lanes * lanes;
    a->share = (size_t)(QUERIES * (2 * s->D + s->E + a->D + a->E + 4 * KEYS + 4) + KEYS);
    size_t rows;
    const int64_t units = a->parts > 1 ? heads * a->parts : threads;
    return fac_size_mul((size_t)units, (size_t)s->T, &rows) &&
           fac_size_mul(rows, (size_t)(a->D + a->E), &a->sums) &&
           a->sums < SIZE_MAX / 8 - a->share * (size_t)threads;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *cpu = fac_cpu_of(d);
    plan a;
    if (p->node->body[0]) return false;
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].type.dtype != FAC_F32 &&
            (i != MASK || (p->in[i].type.dtype != FAC_NONE && p->in[i].type.dtype != FAC_BOOL)))
            return false;
    if (!settle(p, cpu, &a)) return false;
    for (int i = Q; i <= DY; i++) fac_attention_want_rows(&p->in[i]);
    for (int i = LSE; i <= MASK; i++)
        if (p->in[i].type.dtype) fac_want_plain(&p->in[i]);
    for (int k = 0; k < 3; k++)
        if (p->out[k].type.dtype) fac_attention_want_rows(&p->out[k]);
    const fac_attention_shape *s = &a.shape;
    o->work = (a.sums + a.share * (size_t)cpu->pool.threads) * sizeof(float);
    const double pairs =
        (double)(s->B * s->H) * (double)s->Q * (double)s->T * (s->causal && s->Q == s->T ? 0.5 : 1);
    o->seconds = fac_cpu_seconds(cpu, pairs * (6 * (double)s->D + 4 * (double)s->E + 16), 0.75, 0);
    *FAC_DRAFT(o, plan) = a;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *a = fac_draft_copy(p, sizeof *a, err);
    (void)d;
    if (!a) return FAC_E_NOMEM;
    a->problem = p;
    const fac_attention_shape *s = &a->shape;
    a->q = fac_attention_place_of(&p->in[Q], s->H);
    a->y = fac_attention_place_of(&p->in[Y], s->H);
    a->dy = fac_attention_place_of(&p->in[DY], s->H),
    a->lse = (fac_attention_place){ s->H * s->Q, s->Q, 1 };
    a->k = fac_attention_place_of(&p->in[K], s->G);
    a->v = fac_attention_place_of(&p->in[V], s->G);
    if (p->out[Q].type.dtype) a->dq = fac_attention_place_of(&p->out[Q], s->H);
    if (p->out[K].type.dtype) a->dk = fac_attention_place_of(&p->out[K], s->G);
    if (p->out[V].type.dtype) a->dv = fac_attention_place_of(&p->out[V], s->G);
    *out = a;
    return FAC_OK;
}

/* ---- running ---- */

typedef struct job {
    const plan *a;
    const float *q, *k, *v, *y, *dy, *lse;
    const void *mask;
    float *dq, *dk, *dv; /* NULL: nothing wants it */
    float *sums, *work;
} job;

/* A block of queries in the scratch of a thread. */
typedef struct block {
    fac_attention_queries t;
    const float *k, *v;          /* of the head */
    float *sums;                 /* [T] rows: dk, dv */
    float *qt, *dyt, *dq;        /* [D], [E], [D] rows of wide; qt is scaled as scores are */
    float *q, *dy;               /* wide rows of whole vectors */
    float *s, *d, *mask, *stage; /* [KEYS] rows of wide        */
    float *lse, *along, *sum, *last, *bias, least;
    int64_t keys;
} block;

/* Rows of queries side by side, what is missing of their last vector filled with zeros. */
typedef struct rows {
    float *to;
    int64_t n, wide;
} rows;
static void copy_rows(const fac_attention_queries *t, void *arg, float *row, int64_t step,
                      int64_t n, int64_t lane) {
    const rows *r = arg;
    (void)t;
    for (int64_t i = 0; i < n; i++) {
        float *to = r->to + (lane + i) * r->wide;
        memcpy(to, row + i * step, (size_t)r->n * sizeof *to);
        memset(to + r->n, 0, (size_t)(r->wide - r->n) * sizeof *to);
    }
}

static void load_lse(const fac_attention_queries *t, void *arg, float *row, int64_t step, int64_t n,
                     int64_t lane) {
    float *to = arg;
    (void)t;
    for (int64_t i = 0; i < n; i++) to[lane + i] = (float)LOG2_E * row[i * step];
}

/* The rows of dy are there already. */
typedef struct dots {
    const plan *a;
    const block *b;
} dots;
static void dot_rows(const fac_attention_queries *t, void *arg, float *row, int64_t step, int64_t n,
                     int64_t lane) {
    const dots *r = arg;
    const fac_attention_shape *s = t->a;
    for (int64_t i = 0; i < n; i++) {
        const float *dy = r->b->dy + (lane + i) * r->a->E;
        r->b->along[lane + i] = (float)s->cpu->simd->streams->grads->dot(row + i * step, dy, s->E);
    }
}

static void begin(const job *j, block *b) {
    const plan *a = j->a;
    const fac_attention_shape *s = &a->shape;
    fac_attention_queries *t = &b->t;
    b->keys = fac_attention_last(t, 0, s->T, b->last, &b->least);
    fac_attention_each(t, &a->q, (float *)(uintptr_t)j->q, copy_rows, &(rows){ b->q, s->D, a->D });
    fac_attention_each(t, &a->dy, (float *)(uintptr_t)j->dy, copy_rows,
                       &(rows){ b->dy, s->E, a->E });
    fac_attention_turn_in(t, &a->q, j->q, b->qt,
                          s->D); /* after the copies: by rows memory is faster */
    fac_attention_turn_in(t, &a->dy, j->dy, b->dyt, s->E);
    for (int64_t i = 0; i < t->wide * s->D; i++) b->qt[i] *= (float)(LOG2_E * s->scale);
    memset(b->lse, 0, (size_t)t->wide * sizeof *b->lse);
    memset(b->along, 0, (size_t)t->wide * sizeof *b->along);
    memset(b->sum, 0, (size_t)t->wide * sizeof *b->sum);
    fac_attention_each(t, &a->lse, (float *)(uintptr_t)j->lse, load_lse, b->lse);
    fac_attention_each(t, &a->y, (float *)(uintptr_t)j->y, dot_rows, &(dots){ a, b });
    memset(b->dq, 0, (size_t)(t->wide * s->D) * sizeof *b->dq);
}

/* A product whose w and y have `columns` whole vectors a row, by panels of two.  false: it is
 * unfit. */
static bool product(const fac_simd *s, int kind, fac_attention_tile c, int64_t m, int64_t columns) {
    bool fit = true;
    for (int64_t at = 0; at < columns; at += 2 * s->lanes) {
        fac_attention_tile panel = c;
        panel.w += at;
        panel.y += at;
        if (panel.base) panel.base += at;
        if (panel.sum) panel.sum += at;
        if (panel.p) panel.p += at;
        fac_attention_product(s, kind, &panel, m, columns - at > s->lanes ? 2 : 1);
        fit = fit && !panel.unfit;
    }
    return fit;
}

/* s: weights, d: what goes back to the scores, for `n` keys that all take part.  false: numbers are
 * too large for that. */
static bool free_weights(const block *b, const fac_simd *s, fac_attention_tile k,
                         fac_attention_tile v, int64_t n) {
    const int64_t wide = b->t.wide;
    k.base = b->lse;
    k.sum = b->sum;
    v.base = b->along;
    v.p = b->s;
    if (!product(s, FAC_ATTENTION_WEIGHTS, k, n, wide)) {
        memset(b->sum, 0, (size_t)wide * sizeof *b->sum);
        return false;
    }
    return product(s, FAC_ATTENTION_CHANGES, v, n, wide);
}

/* The same of any keys; false: none of them takes part. */
static bool weights(const job *j, const block *b, int64_t first, int64_t n) {
    const plan *a = j->a;
    const fac_simd *s = a->shape.cpu->simd;
    const int64_t wide = b->t.wide, lanes = s->lanes;
    const bool all = b->least >= (float)(first + n - 1);
    fac_attention_block f = { .row = wide, .keys = n, .first = (float)first, .scale = 1 };
    if (!fac_attention_mask(&b->t, j->mask, first, n, b->bias, b->mask, b->stage, &f)) return false;
    const fac_attention_tile k = { .a = b->k + first * a->k.row,
                                   .step = a->k.row,
                                   .depth = a->shape.D,
                                   .w = b->qt,
                                   .w_row = wide,
                                   .y = b->s,
                                   .y_row = wide };
    const fac_attention_tile v = { .a = b->v + first * a->v.row,
                                   .step = a->v.row,
                                   .depth = a->shape.E,
                                   .w = b->dyt,
                                   .w_row = wide,
                                   .y = b->d,
                                   .y_row = wide };
    if (all && !j->mask && free_weights(b, s, k, v, n)) return true;
    product(s, FAC_ATTENTION_ROWS, k, n, wide);
    product(s, FAC_ATTENTION_ROWS, v, n, wide);
    const float *mask = f.mask;
    for (int64_t at = 0; at < wide; at += 2 * lanes) {
        f.s = b->s + at;
        f.mask = mask ? mask + at : NULL;
        f.top = b->lse + at;
        f.vectors = wide - at > lanes ? 2 : 1;
        f.last = all ? NULL : b->last + at;
        s->attention->grad(&f, b->d + at, b->along + at);
    }
    return true;
}

static void run_block(const job *j, block *b) {
    const plan *a = j->a;
    const fac_attention_shape *shape = &a->shape;
    const fac_simd *s = shape->cpu->simd;
    const int64_t wide = b->t.wide, row = a->D + a->E;
    begin(j, b);
    for (int64_t first = 0, n; first < b->keys; first += n) {
        n = b->keys - first < KEYS ? b->keys - first : KEYS;
        if (!weights(j, b, first, n)) continue;
        float *dk = b->sums + first * row;
        product(s, FAC_ATTENTION_ROWS,
                (fac_attention_tile){ .a = b->s,
                                      .step = wide,
                                      .depth = b->t.n,
                                      .w = b->dy,
                                      .w_row = a->E,
                                      .y = dk + a->D,
                                      .y_row = row,
                                      .add = true },
                n, a->E);
        product(s, FAC_ATTENTION_ROWS,
                (fac_attention_tile){ .a = b->d,
                                      .step = wide,
                                      .depth = b->t.n,
                                      .w = b->q,
                                      .w_row = a->D,
                                      .y = dk,
                                      .y_row = row,
                                      .add = true },
                n, a->D);
        product(s, FAC_ATTENTION_COLUMNS,
                (fac_attention_tile){ .a = b->k + first * a->k.row,
                                      .step = a->k.row,
                                      .depth = n,
                                      .w = b->d,
                                      .w_row = wide,
                                      .y = b->dq,
                                      .y_row = wide,
                                      .add = true },
                shape->D, wide);
    }
    if (!j->dq) return;
    for (int64_t i = 0; i < wide * shape->D; i++) b->dq[i] *= (float)shape->scale;
    fac_attention_turn_out(&b->t, &a->dq, j->dq, b->dq, shape->D);
}

/* dk and dv of some keys of a head: the sums of all its parts, in order. */
static void put_keys(const job *j, int64_t head, const float *sums, int64_t parts, int64_t first,
                     int64_t last) {
    const plan *a = j->a;
    const fac_attention_shape *s = &a->shape;
    const int64_t row = a->D + a->E, batch = head / s->G, group = head % s->G;
    for (int side = 0; side < 2; side++) {
        const fac_attention_place *at = side ? &a->dv : &a->dk;
        const int64_t n = side ? s->E : s->D;
        const float scale = side ? 1 : (float)s->scale;
        float *base = side ? j->dv : j->dk;
        for (int64_t t = first; base && t < last; t++) {
            float *to = base + batch * at->batch + group * at->head + t * at->row;
            const float *from = sums + t * row + (side ? a->D : 0);
            for (int64_t i = 0; i < n; i++) {
                float sum = from[i];
                for (int64_t p = 1; p < parts; p++) sum += from[p * s->T * row + i];
                to[i] = scale * sum;
            }
        }
    }
}

static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *a = j->a;
    const fac_attention_shape *s = &a->shape;
    const int64_t lanes = s->cpu->simd->lanes, size = s->T * (a->D + a->E);
    block b = { 0 };
    float **const places[] = { &b.qt,   &b.dyt,   &b.dq,  &b.q,     &b.dy,  &b.s,    &b.d,
                               &b.mask, &b.stage, &b.lse, &b.along, &b.sum, &b.last, &b.bias };
    const int64_t wide[] = { s->D, s->E, s->D, a->D, a->E, KEYS, KEYS, KEYS, KEYS, 1, 1, 1, 1, 1 };
    float *at = j->work + (size_t)thread * a->share;
    for (size_t k = 0; k < sizeof places / sizeof *places; at += QUERIES * wide[k++])
        *places[k] = at;
    for (int64_t unit = first; unit < last; unit++) {
        const int64_t head = unit / a->parts, part = unit % a->parts, batch = head / s->G,
                      group = head % s->G;
        b.sums = j->sums + (a->parts > 1 ? unit : thread) * size;
        b.k = j->k + batch * a->k.batch + group * a->k.head;
        b.v = j->v + batch * a->v.batch + group * a->v.head;
        memset(b.sums, 0, (size_t)size * sizeof *b.sums);
        for (int64_t i = a->blocks * part / a->parts; i < a->blocks * (part + 1) / a->parts; i++) {
            const int64_t left = s->rows - i * QUERIES, n = left < QUERIES ? left : QUERIES;
            b.t = (fac_attention_queries){ s,           batch, group,
                                           i * QUERIES, n,     (n + lanes - 1) / lanes * lanes };
            run_block(j, &b);
        }
        if (a->parts == 1) put_keys(j, head, b.sums, 1, 0, s->T);
    }
}

/* Blocks of keys of all heads. */
static void add_parts(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *a = j->a;
    const int64_t T = a->shape.T, blocks = (T + KEYS - 1) / KEYS;
    (void)thread;
    for (int64_t unit = first; unit < last; unit++) {
        const int64_t head = unit / blocks, from = unit % blocks * KEYS;
        put_keys(j, head, j->sums + head * a->parts * T * (a->D + a->E), a->parts, from,
                 from + KEYS < T ? from + KEYS : T);
    }
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *a = arg;
    const fac_attention_shape *s = &a->shape;
    const fac_problem *p = a->problem;
    const fac_cpu *cpu = fac_cpu_of(d);
    const float *x[LSE + 1];
    float *dx[3] = { NULL };
    (void)err;
    for (int i = 0; i <= LSE; i++) x[i] = fac_span_floats(in[i], &p->in[i].layout);
    for (int k = 0; k < 3; k++)
        if (p->out[k].type.dtype && out[k].memory)
            dx[k] = fac_span_floats(out[k], &p->out[k].layout);
    job j = { a,      x[Q], x[K],  x[V],  x[Y],  x[DY],
              x[LSE], NULL, dx[Q], dx[K], dx[V], fac_span_packed(work),
              NULL };
    j.work = j.sums + a->sums;
    if (p->in[MASK].type.dtype)
        j.mask = fac_span_bytes(in[MASK]) +
                 p->in[MASK].layout.offset * (int64_t)fac_copy_size(p->in[MASK].type.dtype);
    const int64_t heads = s->B * s->G, units = heads * a->parts;
    fac_parallel_ranges(&cpu->pool, units, (int)units, run_units, &j);
    const int64_t blocks = heads * ((s->T + KEYS - 1) / KEYS);
    if (a->parts > 1)
        fac_parallel_ranges(&cpu->pool, blocks, SHARES * cpu->pool.threads, add_parts, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_attention_grad = { .name = "attention_grad",
                                            .op = &fac_op_attention_grad,
                                            .rank = 370,
                                            .offer = offer,
                                            .make = make,
                                            .done = fac_solver_done,
                                            .run = run };
