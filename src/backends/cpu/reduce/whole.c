/* Solver "whole": sums, products, extremes and their places, of whole numbers in their own type,
 * over neighbouring axes of a contiguous tensor.  Sums and products wrap.  Exact. */
#include "backends/draft.h"
#include "backends/cpu/reduce/whole.h"
#include "op_list.h"
#include <string.h>
#include "graph/attr.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "ops/lines.h"
#include "ops/reduce.h"

enum {
    WIDTH = 1024,
    SERIAL = 64 << 10,
    SHARES = 8,
    STEP = 256
}; /* numbers of a row that are folded at once */

typedef struct plan {
    fac_lines l;
    const fac_whole_type *f;
    const fac_problem *problem;
    int fold; /* FAC_WHOLE_... */
    bool places, last;
    int64_t tiles, bytes; /* of each row of `inner`; of a number */
} plan;

static bool is_arg(const fac_node *n) { return FAC_IS(n, arg_max) || FAC_IS(n, arg_min); }

static int fold_of(const fac_op *op) {
    static const struct {
        const fac_op *op;
        int fold;
    } folds[] = { { &fac_op_sum, FAC_WHOLE_SUM },        { &fac_op_reduce_prod, FAC_WHOLE_PROD },
                  { &fac_op_reduce_max, FAC_WHOLE_MAX }, { &fac_op_reduce_min, FAC_WHOLE_MIN },
                  { &fac_op_arg_max, FAC_WHOLE_MAX },    { &fac_op_arg_min, FAC_WHOLE_MIN } };
    for (size_t k = 0; k < sizeof folds / sizeof *folds; k++)
        if (folds[k].op == op) return folds[k].fold;
    return -1;
}

/* The reduced axes as one; false: others lie between them. */
static bool lines_of(const fac_dims *d, unsigned mask, fac_lines *l) {
    int from = 0, to = d->n;
    *l = (fac_lines){ 1, 1, 1 };
    while (from < d->n && !(mask >> from & 1)) from++;
    while (to > from && !(mask >> (to - 1) & 1)) to--;
    for (int k = 0; k < d->n; k++) {
        if (k >= from && k < to && !(mask >> k & 1) && d->d[k] != 1) return false;
        if (k < from)
            l->outer *= d->d[k];
        else if (k < to)
            l->size *= d->d[k];
        else
            l->inner *= d->d[k];
    }
    return true;
}

static bool axes_of(const fac_problem *p, unsigned *mask) {
    int64_t axis;
    const int rank = p->in[0].type.dims.n;
    if (!is_arg(p->node)) return fac_reduce_axes(p->node, mask);
    if (!fac_attr_get_int(p->node, "axis", &axis) || !rank) return false;
    *mask = 1u << fac_axis(axis, rank);
    return true;
}

static bool build(const fac_problem *p, int isa, plan *t) {
    unsigned mask;
    *t = (plan){ .fold = fold_of(p->node->op) };
    t->f = fac_whole_kernels(p->in[0].type.dtype, isa);
    if (t->fold < 0 || !t->f || !axes_of(p, &mask) || !lines_of(&p->in[0].type.dims, mask, &t->l))
        return false;
    t->places = is_arg(p->node);
    t->last = t->places && fac_attr_flag(p->node, "select_last_index");
    t->bytes = (int64_t)fac_copy_size(p->in[0].type.dtype);
    t->tiles = (t->l.inner + WIDTH - 1) / WIDTH;
    return t->l.size > 0;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *c = fac_cpu_of(d);
    plan t;
    if (p->node->body[0] || !p->nin || !build(p, c->simd->isa, &t)) return false;
    if (t.places ? p->out[0].type.dtype != FAC_I64 : p->out[0].type.dtype != p->in[0].type.dtype)
        return false;
    if (p->in[0].type.dtype == FAC_BOOL && t.fold < FAC_WHOLE_MAX) return false;
    fac_want_plain(&p->in[0]);
    fac_want_plain(&p->out[0]);
    o->seconds =
        fac_cpu_speeds.step + (double)(t.l.outer * t.l.size * t.l.inner * t.bytes) / c->bandwidth;
    *FAC_DRAFT(o, plan) = t;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *t = fac_draft_copy(p, sizeof *t, err);
    (void)d;
    if (!t) return FAC_E_NOMEM;
    t->problem = p;
    *out = t;
    return FAC_OK;
}

typedef struct job {
    const plan *t;
    const char *x;
    char *y;
} job;

/* Rows first .. last - 1, a number each. */
static void run_rows(const job *j, int64_t first, int64_t last) {
    const plan *t = j->t;
    _Alignas(64) char best[STEP * 8];
    const char *x = j->x + first * t->l.size * t->bytes;
    if (!t->places) {
        t->f->rows[t->fold](x, t->l.size, last - first, j->y + first * t->bytes);
        return;
    }
    for (int64_t n; first < last; first += n) {
        n = last - first < STEP ? last - first : STEP;
        x = j->x + first * t->l.size * t->bytes;
        t->f->rows[t->fold](x, t->l.size, n, best);
        t->f->find(x, t->l.size, n, best, t->last, (int64_t *)j->y + first);
    }
}

static void run_tile(const job *j, int64_t unit) {
    const plan *t = j->t;
    _Alignas(64) char best[WIDTH * 8];
    const int64_t outer = unit / t->tiles, at = unit % t->tiles * WIDTH, inner = t->l.inner;
    const int64_t n = inner - at < WIDTH ? inner - at : WIDTH;
    const char *x = j->x + (outer * t->l.size * inner + at) * t->bytes;
    if (t->places)
        t->f->places[t->fold == FAC_WHOLE_MIN](x, t->l.size, inner, n, best, t->last,
                                               (int64_t *)j->y + outer * inner + at);
    else
        t->f->columns[t->fold](x, t->l.size, inner, n, j->y + (outer * inner + at) * t->bytes);
}

static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    (void)thread;
    if (j->t->l.inner == 1)
        run_rows(j, first, last);
    else
        for (int64_t u = first; u < last; u++) run_tile(j, u);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *t = arg;
    const fac_pool *pool = &fac_cpu_of(d)->pool;
    const int64_t y_bytes = t->places ? (int64_t)sizeof(int64_t) : t->bytes;
    job j = { t, fac_span_bytes(in[0]) + t->problem->in[0].layout.offset * t->bytes,
              fac_span_bytes(out[0]) + t->problem->out[0].layout.offset * y_bytes };
    const int64_t units = t->l.inner == 1 ? t->l.outer : t->l.outer * t->tiles;
    (void)work, (void)err;
    if (!t->l.inner || !units) return FAC_OK;
    const bool serial = t->l.outer * t->l.size * t->l.inner * t->bytes < SERIAL;
    fac_parallel_ranges(pool, units, serial ? 1 : SHARES * pool->threads, run_units, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_whole = {
    .name = "whole", .rank = 790, .offer = offer, .make = make, .done = fac_solver_done, .run = run
};
