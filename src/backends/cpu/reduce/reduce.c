/* Solver "reduce": sum, mean, reduce_max, reduce_min, reduce_prod of f32 and f64 over any axes, and
 * sum_like.
 *
 * Dims are kept or reduced; neighbours of one kind are merged.  When the contiguous dim is reduced,
 * a result is the fold of rows; when it is kept, results lie side by side and rows are folded into
 * them (columns).  A blocked channel axis that is kept gives columns of one block.  Few results of
 * many elements are computed in a fixed number of parts, so the result does not depend on the
 * number of threads. Folds run in f64: f32 results are rounded once, |error| <= 2^-24 |y| + n 2^-53
 * sum |x|. */
#include <string.h>
#include "backends/problem.h"
#include "backends/draft.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "backends/cpu/device/streams.h"
#include "op_list.h"

enum {
    SHORT = 64,
    BATCH = 4096,
    LINES = 512,
    FEW_LINES = 128, /* few: their sums stay in registers */
    COLUMNS = 2048,  /* 8 KB of a row: shorter pieces of rows come from memory more slowly */
    PARTS = 16,
    FEW_UNITS = 8,
    ENOUGH = 32,
    MANY = 32 << 10,
    SERIAL = 32 << 10,
    SHARES = 8
};

typedef struct axis {
    int64_t d, in, out;
} axis; /* strides in elements; out 0: reduced */

typedef struct plan {
    int fold, kept, reduced;
    bool rows; /* the contiguous dim is reduced[reduced - 1]; else columns of `column` */
    axis keep[FAC_DIMS + 1], reduce[FAC_DIMS + 1], column;
    int64_t tail; /* columns of the last channel block, when that is the last of keep[lanes] */
    int lanes;    /* which of keep counts channel blocks; -1: none */
    int64_t units, tiles, results, count;
    int parts, split; /* split: which of reduce is cut into parts */
    int64_t batch; /* short rows are summed across, or transposed and folded as columns, so many at
                      a time; 0: no */
    bool f64, mean;
    int64_t in_offset, out_offset;
} plan;

static int fold_of(const fac_op *op) {
    if (op == &fac_op_sum || op == &fac_op_mean || op == &fac_op_sum_like) return FAC_FOLD_SUM;
    if (op == &fac_op_reduce_prod) return FAC_FOLD_PROD;
    if (op == &fac_op_reduce_max) return FAC_FOLD_MAX;
    return op == &fac_op_reduce_min ? FAC_FOLD_MIN : -1;
}

static void put_axis(axis *to, int *n, axis a) {
    if (a.d == 1) return;
    axis *last = *n ? &to[*n - 1] : NULL;
    if (last && last->in == a.in * a.d && last->out == a.out * a.d)
        *last = (axis){ last->d * a.d, a.in, a.out };
    else
        to[(*n)++] = a;
}

/* false: the layout has no contiguous dim to work along, or its blocked axis is reduced. */
static bool build(const fac_problem *p, unsigned mask, plan *r) {
    const fac_layout *x = &p->in[0].layout;
    const fac_dims *d = &p->in[0].type.dims;
    int64_t step = 1;
    int lanes = x->block > 0 ? x->axis : -1;
    *r = (plan){ .fold = fold_of(p->node->op),
                 .lanes = -1,
                 .f64 = p->in[0].type.dtype == FAC_F64,
                 .mean = FAC_IS(p->node, mean),
                 .in_offset = x->offset,
                 .out_offset = p->out[0].layout.offset,
                 .results = fac_dims_count(&p->out[0].type.dims),
                 .parts = 1 };
    if (lanes >= 0 && mask >> lanes & 1) return false;

    int64_t out[FAC_DIMS];
    for (int k = d->n - 1; k >= 0; k--) { /* the output is contiguous, reduced dims take no room */
        out[k] = mask >> k & 1 ? 0 : step;
        if (!(mask >> k & 1)) step *= d->d[k];
    }
    r->count = 1;
    for (int k = 0; k < d->n; k++) {
        if (mask >> k & 1) {
            r->count *= d->d[k];
            put_axis(r->reduce, &r->reduced, (axis){ d->d[k], x->stride[k], 0 });
        } else if (k == lanes) { /* never merged: its last block is short */
            r->lanes = r->kept;
            r->keep[r->kept++] =
                (axis){ (d->d[k] + x->block - 1) / x->block, x->stride[k], out[k] * x->block };
            r->column = (axis){ x->block, 1, out[k] };
            r->tail = d->d[k] - (d->d[k] - 1) / x->block * x->block;
        } else if (r->lanes >= 0 && r->lanes == r->kept - 1) {
            r->keep[r->kept++] = (axis){ d->d[k], x->stride[k], out[k] };
        } else
            put_axis(r->keep, &r->kept, (axis){ d->d[k], x->stride[k], out[k] });
    }
    if (r->results == 0) return true;
    if (r->count == 0) { /* nothing is read */
        if (lanes >= 0) return false;
        r->reduced = 0;
        r->column = (axis){ 1, 1, 1 };
    } else if (lanes < 0) {
        axis *k = r->kept ? &r->keep[r->kept - 1] : NULL,
             *s = r->reduced ? &r->reduce[r->reduced - 1] : NULL;
        r->rows = s && s->in == 1;
        if (!r->rows && k && k->in == 1)
            r->column = *k, r->kept--;
        else if (!r->rows && (k || s))
            return false;
        else if (!r->rows)
            r->column = (axis){ 1, 1, 1 };
    }
    if (r->rows) r->column = (axis){ 1, 1, 1 };
    r->tiles = (r->column.d + COLUMNS - 1) / COLUMNS;
    r->units = r->tiles;
    for (int k = 0; k < r->kept; k++) r->units *= r->keep[k].d;
    const bool lines = r->rows && !r->f64 && r->kept == 1 && r->reduced == 1 &&
                       r->keep[0].in == r->reduce[0].d && r->keep[0].out == 1;
    if (lines && r->reduce[0].d <= SHORT && r->results >= LINES) {
        r->batch = BATCH / r->reduce[0].d / 16 * 16;
        const int64_t most = r->reduce[0].d < 16 ? LINES : FEW_LINES;
        r->batch = r->batch > most ? most : r->batch;
        r->units = (r->results + r->batch - 1) / r->batch;
        return true;
    }
    for (int k = 1; k < r->reduced; k++)
        if (r->reduce[k].d > r->reduce[r->split].d) r->split = k;
    const bool divides =
        r->reduced && r->reduce[r->split].d >= PARTS && r->count * r->results >= MANY;
    if (r->units < ENOUGH && divides)
        r->parts = r->units < FEW_UNITS ? PARTS : (int)((ENOUGH + r->units - 1) / r->units);
    return true;
}

/* ---- running ---- */

typedef struct job {
    const plan *r;
    const fac_folds *f;
    const char *in;
    char *out;
    double *part;
    const fac_simd *simd;
} job;

static void put(const plan *r, char *out, int64_t at, double value) {
    if (r->mean) value /= (double)r->count;
    if (r->f64)
        ((double *)out)[at] = value;
    else
        ((float *)out)[at] = (float)value;
}

/* The fold of one unit over its part of the reduced dims. */
static void fold_unit(const job *j, const char *x, int64_t columns, int part, double *acc) {
    const plan *r = j->r;
    axis d[FAC_DIMS + 1];
    int64_t size = r->f64 ? 8 : 4, index[FAC_DIMS + 1] = { 0 };
    if (r->count == 0) return;
    memcpy(d, r->reduce, sizeof d);
    if (r->parts > 1) {
        int64_t first = d[r->split].d * part / r->parts;
        x += first * d[r->split].in * size;
        d[r->split].d = d[r->split].d * (part + 1) / r->parts - first;
    }
    int inner = r->reduced - 1;
    axis run = r->reduced ? d[inner] : (axis){ 1, 1, 0 };
    for (;;) {
        if (r->rows)
            acc[0] = j->f->row(r->fold, acc[0], x, run.d);
        else
            j->f->columns(r->fold, acc, x, run.d, run.in, columns);
        int k = inner - 1;
        for (; k >= 0; k--) {
            x += d[k].in * size;
            if (++index[k] < d[k].d) break;
            x -= d[k].in * d[k].d * size;
            index[k] = 0;
        }
        if (k < 0) return;
    }
}

static void run_unit(const job *j, int64_t item) {
    const plan *r = j->r;
    int64_t unit = item / r->parts, rest = unit / r->tiles, first = unit % r->tiles * COLUMNS,
            size = r->f64 ? 8 : 4;
    int64_t columns = r->column.d - first < COLUMNS ? r->column.d - first : COLUMNS,
            at = first * r->column.out;
    int part = (int)(item % r->parts);
    const char *x = j->in + first * r->column.in * size;
    for (int k = r->kept - 1; k >= 0; k--) {
        int64_t i = rest % r->keep[k].d;
        rest /= r->keep[k].d;
        x += i * r->keep[k].in * size;
        at += i * r->keep[k].out;
        if (k == r->lanes && i == r->keep[k].d - 1) columns = r->tail;
    }
    double acc[COLUMNS];
    for (int64_t c = 0; c < columns; c++) acc[c] = fac_fold_start(r->fold);
    fold_unit(j, x, columns, part, acc);
    for (int64_t c = 0; c < columns; c++) {
        int64_t to = at + c * r->column.out;
        if (r->parts > 1)
            j->part[part * r->results + to] = acc[c];
        else
            put(r, j->out, to, acc[c]);
    }
}

static void run_batch(const job *j, int64_t unit) {
    const plan *r = j->r;
    const int64_t n = r->reduce[0].d, first = unit * r->batch, left = r->results - first;
    const int64_t rows = left < r->batch ? left : r->batch;
    const float *x = (const float *)(const void *)j->in + first * n;
    float transposed[BATCH];
    double acc[COLUMNS];
    if (r->fold == FAC_FOLD_SUM && n % FAC_SHORT == 0)
        j->simd->streams->short_sums(x, n, rows, acc);
    else {
        j->simd->transpose(x, n, transposed, rows, rows, n);
        for (int64_t c = 0; c < rows; c++) acc[c] = fac_fold_start(r->fold);
        j->f->columns(r->fold, acc, transposed, n, rows, rows);
    }
    for (int64_t c = 0; c < rows; c++) put(r, j->out, first + c, acc[c]);
}

static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    (void)thread;
    const job *j = arg;
    for (int64_t u = first; u < last; u++) {
        if (j->r->batch)
            run_batch(j, u);
        else
            run_unit(j, u);
    }
}

/* Some results from their parts, which lie one array after the other. */
static void join_parts(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *r = j->r;
    (void)thread;
    for (int64_t u = first; u < last; u++) {
        const int64_t at = u * COLUMNS, n = r->results - at < COLUMNS ? r->results - at : COLUMNS;
        double acc[COLUMNS];
        for (int64_t i = 0; i < n; i++) acc[i] = fac_fold_start(r->fold);
        j->simd->streams->f64.columns(r->fold, acc, j->part + at, r->parts, r->results, n);
        for (int64_t i = 0; i < n; i++) put(r, j->out, at + i, acc[i]);
    }
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)err;
    const plan *r = arg;
    const fac_cpu *cpu = fac_cpu_of(d);
    const fac_streams *s = cpu->simd->streams;
    int64_t size = r->f64 ? 8 : 4;
    job j = { r,
              r->f64 ? &s->f64 : &s->f32,
              (const char *)in[0].memory + in[0].at + r->in_offset * size,
              (char *)out[0].memory + out[0].at + r->out_offset * size,
              NULL,
              cpu->simd };
    if (r->results == 0) return FAC_OK;
    if (r->parts > 1) j.part = (double *)((char *)work.memory + work.at);
    bool small = r->count * r->results < SERIAL;
    fac_parallel_ranges(&cpu->pool, r->units * r->parts, small ? 1 : SHARES * cpu->pool.threads,
                        run_units, &j);
    const int64_t joined = r->parts > 1 ? (r->results + COLUMNS - 1) / COLUMNS : 0;
    if (joined)
        fac_parallel_ranges(&cpu->pool, joined, joined < 4 ? 1 : cpu->pool.threads, join_parts, &j);
    return FAC_OK;
}

/* ---- the solver ---- */

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    unsigned mask;
    plan r;
    if (fold_of(p->node->op) < 0) return false;
    fac_dtype type = p->in[0].type.dtype;
    if ((type != FAC_F32 && type != FAC_F64) || p->out[0].type.dtype != type || p->node->body[0])
        return false;
    if (!fac_layout_is_plain(&p->out[0].layout, &p->out[0].type.dims) ||
        !fac_problem_axes(p, &mask))
        return false;
    if (!build(p, mask, &r)) {
        p->in[0].layout = fac_layout_plain(&p->in[0].type.dims);
        if (!build(p, mask, &r)) return false;
    }
    o->work = r.parts > 1 ? (size_t)r.results * (size_t)r.parts * sizeof(double) : 0;
    o->seconds = fac_cpu_speeds.step +
                 (double)(r.count * r.results) * (r.f64 ? 8 : 4) / fac_cpu_of(d)->bandwidth;
    *FAC_DRAFT(o, plan) = r;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    return fac_draft_plan(p, sizeof(plan), out, err);
}

const fac_solver fac_cpu_reduce = {
    .name = "reduce", .rank = 750, .offer = offer, .make = make, .done = fac_solver_done, .run = run
};
