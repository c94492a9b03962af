/* batch_norm/blocked, batch_norm_grad/blocked and batch_norm_act_grad/blocked: batch normalization
 * by the statistics of the batch, its gradient, and that after an activation, on blocked images;
 * f32.
 *
 * Each lane is a channel.  Strips of rows are short enough for the first cache, where they are read
 * twice, so memory is read once for the statistics: the mean of the strip, then squares around it.
 * Strips are put together in f64 (Chan, Golub and LeVeque, 1979):  with n_a, m_a, s_a and n_b, m_b,
 * s_b
 *   m = m_a + (m_b - m_a) n_b / n,   s = s_a + s_b + (m_b - m_a)^2 n_a n_b / n
 * and sums of dy (x - m) follow the mean when it moves.  An item is a channel block, which it reads
 * again while it is near; where blocks are few, their rows are dealt out in parts, whose number
 * follows from the shape alone: no number of threads changes a bit.
 *
 * What bounds it is memory.  A result that is larger than the second caches goes past all of them:
 * its lines need not be read for being written, and its readers are convolutions, which compute
 * meanwhile (ResNet-50's step, batch 8: 68 ms instead of 80). */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "graph/attr.h"
#include "ops/batch_norm_ref.h"
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/elementwise/epilogue.h"
#include "cpu_solvers.h"
#include "backends/cpu/device/streams.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum { MOST_LANES = 16, FEW_BLOCKS = 8, PARTS = 16, STRIP_PIXELS = 192, WIDEST = 2048 };

typedef struct plan {
    fac_layout in[5], out[3], r;
    fac_epilogue e;
    const fac_cpu *cpu;
    bool gradient, masked; /* in[3] is what the activation made */
    bool past;             /* out[0] is written past the caches */
    int64_t images, channels, height, width, blocks, parts, strip;
    double epsilon, keep; /* keep: the share of the old running statistics */
    double lo, hi;        /* of the mask */
} plan;

static int inputs(const plan *p) {
    if (!p->gradient) return 5;
    return p->masked ? 4 : 3;
}

/* What is known of some of the pixels of a block; sum and along are of dy and dy (x - mean). */
typedef struct moments {
    double n, mean[MOST_LANES], spread[MOST_LANES], sum[MOST_LANES], along[MOST_LANES];
} moments;

typedef struct job {
    const plan *p;
    const float *in[5], *r;
    float *out[3];
    moments *part;
} job;

static void add(moments *a, double n, const moments *b, int lanes) {
    double all = a->n + n;
    for (int k = 0; k < lanes; k++) {
        double delta = b->mean[k] - a->mean[k], mean = a->mean[k] + delta * n / all;
        a->spread[k] += b->spread[k] + delta * delta * a->n * n / all;
        a->along[k] +=
            b->along[k] + (a->mean[k] - mean) * a->sum[k] + (b->mean[k] - mean) * b->sum[k];
        a->sum[k] += b->sum[k];
        a->mean[k] = mean;
    }
    a->n = all;
}

/* Pixel 0 of row `row` (counted through all images) of a block. */
static int64_t row_at(const plan *p, const fac_layout *l, int64_t block, int64_t row) {
    return row / p->height * l->stride[0] + block * l->stride[1] + row % p->height * l->stride[2];
}

/* Rows from..from + n - 1 lie in one image; n <= strip. */
static int64_t strip_rows(const plan *p, int64_t from, int64_t end) {
    int64_t n = p->height - from % p->height;
    if (n > p->strip) n = p->strip;
    return n < end - from ? n : end - from;
}

static void set_mask(const job *j, int64_t block, int64_t row, fac_lane_rows *t) {
    const plan *p = j->p;
    if (!p->masked) return;
    t->mask = j->in[3] + row_at(p, &p->in[3], block, row);
    t->mask_row = p->in[3].stride[2];
    t->mask_lo = (float)fac_norm_limit(p->lo);
    t->mask_hi = (float)fac_norm_limit(p->hi);
}

static void measure(const job *j, int64_t block, int64_t from, int64_t end, moments *m) {
    const plan *p = j->p;
    int lanes = p->cpu->simd->lanes;
    memset(m, 0, sizeof *m);
    for (int64_t n; from < end; from += n) {
        n = strip_rows(p, from, end);
        fac_lane_rows t = { .x = j->in[0] + row_at(p, &p->in[0], block, from),
                            .x_row = p->in[0].stride[2],
                            .rows = n,
                            .pixels = p->width };
        if (p->gradient) {
            t.d = j->in[1] + row_at(p, &p->in[1], block, from);
            t.d_row = p->in[1].stride[2];
        }
        set_mask(j, block, from, &t);
        fac_lane_sums s;
        moments strip;
        p->cpu->simd->lane->sums(&t, &s);
        for (int k = 0; k < lanes; k++) {
            strip.mean[k] = (double)s.mean[k];
            strip.spread[k] = (double)s.spread[k];
            strip.sum[k] = p->gradient ? (double)s.sum[k] : 0;
            strip.along[k] = p->gradient ? (double)s.along[k] : 0;
        }
        add(m, (double)(n * p->width), &strip, lanes);
    }
}

/* The numbers of a block's lanes, 0 after the last channel. */
typedef struct terms {
    float mean[MOST_LANES], factor[MOST_LANES], other[MOST_LANES], shift[MOST_LANES];
} terms;

/* y = (x - mean) scale / sqrt(var + epsilon) + bias */
static void train_terms(const job *j, int64_t c, int k, const moments *m, terms *t) {
    t->factor[k] = (float)((double)j->in[1][c] / sqrt(m->spread[k] / m->n + j->p->epsilon));
    t->shift[k] = j->in[2][c];
    t->other[k] = 1;
}

/* dx = f dy + a (x - mean) + b,  f = scale / sqrt(var + epsilon) */
static void gradient_terms(const job *j, int64_t c, int k, const moments *m, terms *t) {
    double inverse = 1 / sqrt(m->spread[k] / m->n + j->p->epsilon),
           f = (double)j->in[2][c] * inverse;
    t->other[k] = (float)f;
    t->factor[k] = (float)(-f * inverse * inverse * m->along[k] / m->n);
    t->shift[k] = (float)(-f * m->sum[k] / m->n);
}

static void map(const job *j, int64_t block, int64_t from, int64_t end, const moments *m) {
    const plan *p = j->p;
    int lanes = p->cpu->simd->lanes;
    int64_t c0 = block * lanes;
    terms t = { .mean = { 0 } };
    for (int k = 0; k < lanes && c0 + k < p->channels; k++) {
        t.mean[k] = (float)m->mean[k];
        if (p->gradient)
            gradient_terms(j, c0 + k, k, m, &t);
        else
            train_terms(j, c0 + k, k, m, &t);
    }
    const float *d = p->gradient ? j->in[1] : j->r;
    const fac_layout *d_at = p->gradient ? &p->in[1] : &p->r;
    for (int64_t n; from < end; from += n) {
        n = strip_rows(p, from, end);
        fac_lane_rows rows = { .x = j->in[0] + row_at(p, &p->in[0], block, from),
                               .x_row = p->in[0].stride[2],
                               .d = d ? d + row_at(p, d_at, block, from) : NULL,
                               .d_row = d_at->stride[2],
                               .y = j->out[0] + row_at(p, &p->out[0], block, from),
                               .y_row = p->out[0].stride[2],
                               .rows = n,
                               .pixels = p->width,
                               .mean = t.mean,
                               .factor = t.factor,
                               .other = t.other,
                               .shift = t.shift,
                               .lo = p->e.lo,
                               .hi = p->e.hi };
        rows.past = p->past && (uintptr_t)rows.y % (sizeof(float) * (size_t)lanes) == 0;
        set_mask(j, block, from, &rows);
        p->cpu->simd->lane->linear(&rows);
        for (int64_t r = 0; r < n && p->e.loops; r++)
            fac_epilogue_run(&p->e, rows.y + r * rows.y_row, (size_t)(p->width * lanes));
    }
    if (p->past) fac_streams_end();
}

/* Outputs 1 and 2: the running statistics, or the gradients of scale and bias. */
static void others(const job *j, int64_t block, const moments *m) {
    const plan *p = j->p;
    int lanes = p->cpu->simd->lanes;
    for (int k = 0; k < lanes && block * lanes + k < p->channels; k++) {
        int64_t c = block * lanes + k;
        double var = m->spread[k] / m->n;
        if (p->gradient) {
            if (j->out[1]) j->out[1][c] = (float)(m->along[k] / sqrt(var + p->epsilon));
            if (j->out[2]) j->out[2][c] = (float)m->sum[k];
        } else {
            if (j->out[1])
                j->out[1][c] = (float)((double)j->in[3][c] * p->keep + m->mean[k] * (1 - p->keep));
            if (j->out[2])
                j->out[2][c] = (float)((double)j->in[4][c] * p->keep + var * (1 - p->keep));
        }
    }
}

static int64_t part_begin(const plan *p, int64_t part) {
    return p->images * p->height * part / p->parts;
}

/* [block] */
static void whole(void *arg, int i, int thread) {
    const job *j = arg;
    moments m;
    (void)thread;
    measure(j, i, 0, part_begin(j->p, 1), &m);
    map(j, i, 0, part_begin(j->p, 1), &m);
    others(j, i, &m);
}

/* [block][part], twice */
static void measure_part(void *arg, int i, int thread) {
    const job *j = arg;
    int64_t part = i % j->p->parts;
    (void)thread;
    measure(j, i / j->p->parts, part_begin(j->p, part), part_begin(j->p, part + 1), &j->part[i]);
}
static void map_part(void *arg, int i, int thread) {
    const job *j = arg;
    int64_t part = i % j->p->parts, block = i / j->p->parts;
    moments m;
    (void)thread;
    memset(&m, 0, sizeof m);
    for (int64_t k = 0; k < j->p->parts; k++) {
        const moments *more = &j->part[block * j->p->parts + k];
        add(&m, more->n, more, j->p->cpu->simd->lanes);
    }
    map(j, block, part_begin(j->p, part), part_begin(j->p, part + 1), &m);
    if (part == 0) others(j, block, &m);
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { .p = p, .r = p->e.residual >= 0 ? fac_span_floats(in[p->e.residual], &p->r) : NULL };
    (void)d, (void)err;
    for (int k = 0; k < inputs(p); k++) j.in[k] = fac_span_floats(in[k], &p->in[k]);
    for (int k = 0; k < 3; k++)
        j.out[k] = out[k].memory ? fac_span_floats(out[k], &p->out[k]) : NULL;
    if (p->parts == 1) {
        fac_parallel(&p->cpu->pool, (int)p->blocks, whole, &j);
        return FAC_OK;
    }
    j.part = (moments *)(void *)((char *)work.memory + work.at);
    fac_parallel(&p->cpu->pool, (int)(p->blocks * p->parts), measure_part, &j);
    fac_parallel(&p->cpu->pool, (int)(p->blocks * p->parts), map_part, &j);
    return FAC_OK;
}

/* ---- offer and make ---- */

/* All but the layouts. */
static bool settle(plan *p, const fac_problem *problem) {
    const fac_dims *x = &problem->in[0].type.dims;
    if (x->n != 4 || fac_dims_count(x) <= 0 || x->d[3] > WIDEST ||
        problem->out[0].type.dtype != FAC_F32)
        return false;
    p->masked = FAC_IS(problem->node, batch_norm_act_grad);
    p->gradient = p->masked || FAC_IS(problem->node, batch_norm_grad);
    if (!p->gradient && !fac_attr_flag(problem->node, "training_mode")) return false;
    for (int k = 0; k < problem->nin; k++)
        if (problem->in[k].type.dtype != FAC_F32) return false;
    if (!fac_cpu_epilogue(problem, p->cpu->simd, &p->e) || (p->gradient && problem->node->body[0]))
        return false;
    p->images = x->d[0];
    p->channels = x->d[1];
    p->height = x->d[2];
    p->width = x->d[3];
    p->blocks = (p->channels + p->cpu->simd->lanes - 1) / p->cpu->simd->lanes;
    p->strip = p->width < STRIP_PIXELS ? STRIP_PIXELS / p->width : 1;
    p->parts = p->blocks >= FEW_BLOCKS ? 1 : PARTS / p->blocks;
    if (p->parts > p->images * p->height) p->parts = p->images * p->height;
    return p->blocks <= INT_MAX / PARTS;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    if (!settle(&q, p)) return false;
    fac_want_blocked(q.cpu, &p->in[0], 0);
    if (q.gradient) fac_want_blocked(q.cpu, &p->in[1], 0);
    if (q.masked) fac_want_blocked(q.cpu, &p->in[3], 0);
    if (q.gradient)
        fac_want_plain(&p->in[2]);
    else
        for (int k = 1; k < 5; k++) fac_want_plain(&p->in[k]);
    if (q.e.residual >= 0) fac_want_blocked(q.cpu, &p->in[q.e.residual], 0);
    fac_want_blocked_out(q.cpu, &p->out[0]);
    for (int k = 1; k < p->nout; k++)
        if (p->out[k].type.dtype != FAC_NONE) fac_want_plain(&p->out[k]);
    if (q.parts > 1) o->work = (size_t)(q.blocks * q.parts) * sizeof(moments);
    double lanes =
        (double)(q.blocks * q.cpu->simd->lanes) * (double)(q.images * q.height) * (double)q.width;
    o->seconds = fac_cpu_seconds(q.cpu, 10 * lanes, 0.2,
                                 (q.masked     ? 28
                                  : q.gradient ? 20
                                               : 12) *
                                     lanes);
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    for (int k = 0; k < inputs(q); k++) q->in[k] = p->in[k].layout;
    for (int k = 0; k < p->nout; k++) q->out[k] = p->out[k].layout;
    if (q->e.residual >= 0) q->r = p->in[q->e.residual].layout;
    q->past = q->cpu->simd->streams->put && !q->e.loops &&
              fac_type_bytes(&p->out[0].type) > (size_t)q->cpu->pool.threads * q->cpu->l2;
    fac_attr_get_real(p->node, "epsilon", &q->epsilon);
    fac_attr_get_real(p->node, "momentum", &q->keep);
    fac_attr_get_real(p->node, "lo", &q->lo);
    fac_attr_get_real(p->node, "hi", &q->hi);
    *out = q;
    return FAC_OK;
}
#define SOLVER(of)                                                                                 \
    .name = #of "/blocked", .op = &fac_op_##of, .offer = offer, .make = make,                      \
    .done = fac_solver_done, .run = run
const fac_solver fac_cpu_batch_norm_blocked = { SOLVER(batch_norm), .rank = 630 };
const fac_solver fac_cpu_batch_norm_act_grad_blocked = { SOLVER(batch_norm_act_grad), .rank = 650 };
const fac_solver fac_cpu_batch_norm_grad_blocked = { SOLVER(batch_norm_grad), .rank = 640 };
