/* Solver "lrn": local response normalization of f32 across neighbouring channels of N,C,...
 *   y_c = x_c base_c^-beta,  base_c = bias + alpha / size sum of x_j^2 over the window of c
 * Contiguous tensors: some hundred pixels of one channel at a time.  Channel blocks of one vector:
 * all channels of one pixel at a time.  The usual exponents 0.5, 0.75 and 1 are square roots and a
 * division, any other is exp(-beta log(base)); base is positive, as bias > 0 and alpha >= 0 are
 * asked for.  Within 1e-6 of y. */
#include "graph/attr.h"
#include "backends/draft.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "backends/cpu/device/streams.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum { SHARES = 8 };

typedef struct plan {
    int64_t images, channels, plane, tiles, size;
    bool blocked;
    double alpha, beta, bias;
    const fac_problem *problem;
} plan;

static bool build(const fac_problem *p, plan *r) {
    const fac_dims *d = &p->in[0].type.dims;
    *r = (plan){ .images = d->d[0],
                 .channels = d->d[1],
                 .plane = 1,
                 .blocked = p->in[0].layout.block > 0,
                 .problem = p };
    for (int k = 2; k < d->n; k++) r->plane *= d->d[k];
    r->tiles = (r->plane + FAC_LINES - 1) / FAC_LINES;
    return fac_attr_get_int(p->node, "size", &r->size) &&
           fac_attr_get_real(p->node, "alpha", &r->alpha) &&
           fac_attr_get_real(p->node, "beta", &r->beta) &&
           fac_attr_get_real(p->node, "bias", &r->bias) && r->bias > 0 && r->alpha >= 0;
}

/* The layouts of both sides are blocked alike, or both are plain. */
static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan r;
    const fac_cpu *c = fac_cpu_of(d);
    fac_operand *x = &p->in[0], *y = &p->out[0];
    if (x->type.dtype != FAC_F32 || p->node->body[0]) return false;
    bool small = x->type.dims.n == 4 && x->type.dims.d[1] <= FAC_LRN_CHANNELS;
    bool blocked =
        small && fac_lies_blocked(x, c->simd->lanes) && build(p, &r) && r.size <= FAC_LRN_WINDOW;
    if (blocked && fac_layout_is_plain(&y->layout, &y->type.dims))
        y->layout = fac_layout_blocked(&y->type.dims, 1, c->simd->lanes, y->layout.halo);
    blocked = blocked && fac_lies_blocked(y, c->simd->lanes);
    if (!blocked && !fac_layout_is_plain(&y->layout, &y->type.dims)) return false;
    if (!blocked && !fac_layout_is_plain(&x->layout, &x->type.dims))
        x->layout = fac_layout_plain(&x->type.dims);
    if (!build(p, &r)) return false;
    double count = (double)(r.images * r.channels * r.plane);
    o->seconds = fac_cpu_speeds.step +
                 count * (double)(r.size + 12) / (fac_cpu_speeds.window_sums * c->pool.threads);
    *FAC_DRAFT(o, plan) = r;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    plan *r = fac_draft_copy(p, sizeof *r, err);
    if (!r) return FAC_E_NOMEM;
    r->problem = p;
    *out = r;
    return FAC_OK;
}

typedef struct job {
    const plan *r;
    const fac_streams *f;
    fac_lrn_terms t;
    const float *x;
    float *y;
} job;

static void run_tile(const job *j, int64_t unit) {
    const plan *r = j->r;
    int64_t before = (r->size - 1) / 2, after = r->size - 1 - before;
    int64_t column = unit % r->tiles * FAC_LINES,
            image = unit / r->tiles * r->channels * r->plane + column;
    int64_t n = r->plane - column < FAC_LINES ? r->plane - column : FAC_LINES;
    for (int64_t c = 0; c < r->channels; c++) {
        int64_t from = c > before ? c - before : 0,
                to = after < r->channels - c ? c + after + 1 : r->channels;
        j->f->lrn_columns(j->x + image + from * r->plane, to - from, r->plane, n, &j->t,
                          j->x + image + c * r->plane, j->y + image + c * r->plane);
    }
}

/* A row of pixels. */
static void run_row(const job *j, int64_t unit) {
    const fac_layout *a = &j->r->problem->in[0].layout, *b = &j->r->problem->out[0].layout;
    const fac_dims *d = &j->r->problem->in[0].type.dims;
    int64_t image = unit / d->d[2], row = unit % d->d[2];
    const float *x = j->x + image * a->stride[0] + row * a->stride[2];
    float *y = j->y + image * b->stride[0] + row * b->stride[2];
    j->f->lrn_pixels(x, a->stride[1], y, b->stride[1], d->d[3], d->d[1], (j->r->size - 1) / 2,
                     j->r->size, &j->t);
}

static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    (void)thread;
    const job *j = arg;
    for (int64_t u = first; u < last; u++) {
        if (j->r->blocked)
            run_row(j, u);
        else
            run_tile(j, u);
    }
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)work, (void)err;
    const plan *r = arg;
    const fac_problem *p = r->problem;
    const fac_cpu *c = fac_cpu_of(d);
    fac_lrn_terms terms = { (float)(r->alpha / (double)r->size), (float)r->bias, (float)r->beta };
    job j = { r, c->simd->streams, terms, fac_span_floats(in[0], &p->in[0].layout),
              fac_span_floats(out[0], &p->out[0].layout) };
    if (r->images * r->channels * r->plane == 0) return FAC_OK;
    int64_t units = r->blocked ? r->images * p->in[0].type.dims.d[2] : r->images * r->tiles;
    fac_parallel_ranges(&c->pool, units, SHARES * c->pool.threads, run_units, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_lrn = { .name = "lrn",
                                 .op = &fac_op_lrn,
                                 .rank = 860,
                                 .offer = offer,
                                 .make = make,
                                 .done = fac_solver_done,
                                 .run = run };
