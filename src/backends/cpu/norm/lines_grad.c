/* Solvers "softmax_grad", "log_softmax_grad", "layer_norm_grad" and "rms_norm_grad": gradients
 * along the last dims of contiguous f32, in two passes over each line while it is in the first
 * cache, so that memory is read and written once:
 *   dx = y (dy - sum of dy y)
 *   dx = dy - exp(y) sum of dy
 *   dx = (g - mean g - hat mean(g hat)) / deviation,   g = dy scale
 *   dscale = sum dy hat,   dbias = sum dy
 * (rms_norm leaves both means out).  Sums over all lines are made by parts, whose number follows
 * from the shape alone, in f32 each and put together in f64: no number of threads changes a bit. */
#include <math.h>
#include <string.h>
#include "graph/attr.h"
#include "backends/draft.h"
#include "backends/cpu/norm/parts.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "backends/cpu/device/streams.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

/* A part adds up MOST_LINES lines in f32 at most: its sums take a 128th of what x does then. */
enum {
    SERIAL = 8 << 10,
    SHARES = 8,
    COLUMNS = 128,
    PARTS = 32,
    FEWEST_LINES = 8,
    MOST_LINES = 256
};

typedef struct plan {
    bool norm, rms, log, scaled, params;
    int64_t lines, size, parts;
    double epsilon;
    bool past; /* dx goes past the caches */
    const fac_cpu *cpu;
    const fac_problem *problem;
} plan;

typedef struct job {
    const plan *p;
    const float *x, *dy, *scale;
    float *dx, *sums;
    bool past;
} job;

static int64_t parts_of(int64_t lines) {
    const int64_t few = (lines + FEWEST_LINES - 1) / FEWEST_LINES;
    const int64_t many = (lines + MOST_LINES - 1) / MOST_LINES;
    if (few < PARTS) return few;
    return many > PARTS ? many : PARTS;
}

static bool settle(const fac_problem *p, const fac_cpu *cpu, plan *r) {
    const fac_dims *d = &p->in[0].type.dims;
    int64_t axis;
    *r = (plan){ .rms = FAC_IS(p->node, rms_norm_grad),
                 .log = FAC_IS(p->node, log_softmax_grad),
                 .lines = 1,
                 .size = 1,
                 .cpu = cpu,
                 .problem = p };
    r->norm = r->rms || FAC_IS(p->node, layer_norm_grad);
    if ((!r->norm && !r->log && !FAC_IS(p->node, softmax_grad)) || p->node->body[0]) return false;
    if (d->n < 1 || !fac_attr_get_int(p->node, "axis", &axis)) return false;
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].type.dtype != FAC_NONE && p->in[i].type.dtype != FAC_F32) return false;
    const int at = fac_axis(axis, d->n);
    for (int k = 0; k < d->n; k++) *(k < at ? &r->lines : &r->size) *= d->d[k];
    if (at < 0 || (!r->norm && r->size != d->d[at]))
        return false; /* what lies after the axis is one element */
    if (r->lines * r->size == 0) return !r->norm;
    if (r->norm && !fac_attr_get_real(p->node, "epsilon", &r->epsilon)) return false;
    r->scaled = r->norm && p->in[2].type.dtype != FAC_NONE;
    for (int k = 1; k < p->nout; k++) r->params |= p->out[k].type.dtype != FAC_NONE;
    r->parts = parts_of(r->lines);
    r->past = fac_streams_past(cpu, (size_t)fac_type_bytes(&p->out[0].type));
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan r;
    size_t floats;
    if (!settle(p, fac_cpu_of(d), &r)) return false;
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].type.dtype) fac_want_plain(&p->in[i]);
    for (int k = 0; k < p->nout; k++)
        if (p->out[k].type.dtype) fac_want_plain(&p->out[k]);
    if (r.params) {
        if (!fac_size_mul((size_t)(2 * r.parts), (size_t)r.size, &floats)) return false;
        if (!fac_size_mul(floats, sizeof(float), &o->work)) return false;
    }
    o->seconds = fac_cpu_speeds.step + 16.0 * (double)r.lines * (double)r.size / r.cpu->bandwidth;
    *FAC_DRAFT(o, plan) = r;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *r = fac_draft_copy(p, sizeof *r, err);
    (void)d;
    if (!r) return FAC_E_NOMEM;
    r->problem = p;
    *out = r;
    return FAC_OK;
}

/* ---- running ---- */

static void softmax_line(const job *j, int64_t line) {
    const fac_streams *s = j->p->cpu->simd->streams;
    const int64_t n = j->p->size;
    const float *y = j->x + line * n, *dy = j->dy + line * n;
    float *dx = j->dx + line * n, part[FAC_STREAM_PART];
    const float sum =
        (float)(j->p->log ? s->f32.row(FAC_FOLD_SUM, 0, dy, n) : s->grads->dot(y, dy, n));
    fac_line_grad *const finish = j->p->log ? s->grads->log_softmax : s->grads->softmax;
    for (int64_t k = 0, size; k < n; k += size) {
        size = fac_line_part(j->past, n - k);
        finish(y + k, dy + k, j->past ? part : dx, size, sum);
        if (j->past) s->put(dx + k, part, (size_t)size * sizeof *part);
    }
}

static void norm_line(const job *j, int64_t line, float *dscale, float *dbias) {
    const fac_streams *s = j->p->cpu->simd->streams;
    const int64_t n = j->p->size;
    float *dx = j->dx + line * n, part[FAC_STREAM_PART];
    double mean = 0, var, sum, along;
    fac_norm_line t = { .x = j->x + line * n, .dy = j->dy + line * n, .scale = j->scale, .n = n };
    t.dscale = dscale;
    t.dbias = dbias;
    if (j->p->rms)
        var = s->grads->dot(t.x, t.x, n) / (double)n;
    else
        s->moments_row(t.x, n, &mean, &var);
    t.mean = (float)mean;
    t.inverse = (float)(1 / sqrt(var + j->p->epsilon));
    s->grads->norm_sums(&t, &sum, &along);
    const float a = j->p->rms ? 0 : (float)(sum / (double)n), b = (float)(along / (double)n);
    for (int64_t k = 0, size; k < n; k += size) {
        size = fac_line_part(j->past, n - k);
        s->grads->norm(&t, k, size, a, b, j->past ? part : dx);
        if (j->past) s->put(dx + k, part, (size_t)size * sizeof *part);
    }
}

/* A softmax needs no parts; they serve it as shares of the work. */
static void run_parts(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    (void)thread;
    for (int64_t part = first; part < last; part++) {
        float *dscale = p->params ? j->sums + 2 * part * p->size : NULL,
              *dbias = p->params ? dscale + p->size : NULL;
        if (p->params) memset(dscale, 0, (size_t)(2 * p->size) * sizeof *dscale);
        for (int64_t line = p->lines * part / p->parts; line < p->lines * (part + 1) / p->parts;
             line++) {
            if (p->norm)
                norm_line(j, line, dscale, dbias);
            else
                softmax_line(j, line);
        }
    }
    if (j->past) fac_streams_end();
}

/* Columns of the sums of all parts, some at a time: two arrays of one part lie one after the other.
 */
typedef struct columns {
    const plan *p;
    const float *sums;
    float *to[2];
} columns;
static void add_parts(void *arg, int64_t first, int64_t last, int thread) {
    const columns *c = arg;
    const int64_t size = c->p->size;
    (void)thread;
    for (int64_t u = first; u < last; u++) {
        const int64_t at = u * COLUMNS, n = 2 * size - at < COLUMNS ? 2 * size - at : COLUMNS;
        double sum[COLUMNS] = { 0 };
        c->p->cpu->simd->streams->f32.columns(FAC_FOLD_SUM, sum, c->sums + at, c->p->parts,
                                              2 * size, n);
        for (int64_t i = 0; i < n; i++) {
            float *to = c->to[at + i >= size];
            if (to) to[(at + i) % size] = (float)sum[i];
        }
    }
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = arg;
    const fac_problem *q = p->problem;
    (void)d, (void)err;
    if (p->lines * p->size == 0) return FAC_OK;
    job j = { .p = p,
              .x = fac_span_floats(in[0], &q->in[0].layout),
              .dy = fac_span_floats(in[1], &q->in[1].layout),
              .dx = fac_span_floats(out[0], &q->out[0].layout) };
    if (p->scaled) j.scale = fac_span_floats(in[2], &q->in[2].layout);
    if (p->params) j.sums = fac_span_packed(work);
    j.past = p->past && j.dx != j.x && j.dx != j.dy;
    fac_parallel_ranges(&p->cpu->pool, p->parts,
                        p->lines * p->size < SERIAL ? 1 : SHARES * p->cpu->pool.threads, run_parts,
                        &j);
    if (!p->params) return FAC_OK;
    columns c = { p, j.sums, { NULL, NULL } };
    for (int k = 1; k < q->nout; k++)
        if (out[k].memory) c.to[k - 1] = fac_span_floats(out[k], &q->out[k].layout);
    const int64_t units = (2 * p->size + COLUMNS - 1) / COLUMNS;
    fac_parallel_ranges(&p->cpu->pool, units,
                        units * p->parts * COLUMNS < SERIAL ? 1 : p->cpu->pool.threads, add_parts,
                        &c);
    return FAC_OK;
}

const fac_solver fac_cpu_softmax_grad = { .name = "softmax_grad",
                                          .op = &fac_op_softmax_grad,
                                          .rank = 820,
                                          .offer = offer,
                                          .make = make,
                                          .done = fac_solver_done,
                                          .run = run };
const fac_solver fac_cpu_log_softmax_grad = { .name = "log_softmax_grad",
                                              .op = &fac_op_log_softmax_grad,
                                              .rank = 830,
                                              .offer = offer,
                                              .make = make,
                                              .done = fac_solver_done,
                                              .run = run };
const fac_solver fac_cpu_layer_norm_grad = { .name = "layer_norm_grad",
                                             .op = &fac_op_layer_norm_grad,
                                             .rank = 840,
                                             .offer = offer,
                                             .make = make,
                                             .done = fac_solver_done,
                                             .run = run };
const fac_solver fac_cpu_rms_norm_grad = { .name = "rms_norm_grad",
                                           .op = &fac_op_rms_norm_grad,
                                           .rank = 850,
                                           .offer = offer,
                                           .make = make,
                                           .done = fac_solver_done,
                                           .run = run };
