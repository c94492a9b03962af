/* batch_norm/train and batch_norm_grad/channel: batch normalization by the statistics of the batch,
 * and its gradient; f32.
 *
 * An item is a channel of all images, small enough to stay in the cache of its core while it is
 * read again: for the mean, for the variance, for the result.  Sums are in f64 (in f32 over a few
 * hundred neighbours at most) and in a fixed order.  Plain layouts. */
#include <limits.h>
#include <math.h>
#include "graph/attr.h"
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "cpu_solvers.h"
#include "backends/cpu/device/streams.h"
#include "op_list.h"

typedef struct plan {
    fac_layout in[5], out[3];
    const fac_cpu *cpu;
    int64_t images, channels, plane;
    double epsilon, keep; /* keep: the share of the old running statistics */
} plan;

typedef struct job {
    const plan *p;
    const float *in[5];
    float *out[3];
} job;

/* Mean and variance of one channel. */
static void moments(const plan *p, const float *x, double *mean, double *var) {
    const fac_streams *f = p->cpu->simd->streams;
    double n = (double)(p->images * p->plane), sum = 0, squares = 0;
    int64_t step = p->channels * p->plane;
    for (int64_t i = 0; i < p->images; i++)
        sum += f->f32.row(FAC_FOLD_SUM, 0, x + i * step, p->plane);
    for (int64_t i = 0; i < p->images; i++)
        squares += f->spread_row(x + i * step, p->plane, sum / n);
    *mean = sum / n;
    *var = squares / n;
}

static void train(void *arg, int c, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const float *x = j->in[0] + c * p->plane;
    double mean, var;
    (void)thread;
    moments(p, x, &mean, &var);
    if (j->out[1]) j->out[1][c] = (float)((double)j->in[3][c] * p->keep + mean * (1 - p->keep));
    if (j->out[2]) j->out[2][c] = (float)((double)j->in[4][c] * p->keep + var * (1 - p->keep));
    float factor = (float)((double)j->in[1][c] / sqrt(var + p->epsilon));
    for (int64_t i = 0; i < p->images; i++) {
        int64_t at = i * p->channels * p->plane;
        p->cpu->simd->streams->normalize(x + at, j->out[0] + c * p->plane + at, p->plane,
                                         (float)mean, factor, j->in[2][c]);
    }
}

/* Adds sum dy and sum dy (x - mean) of n neighbours. */
static void add_sums(const float *x, const float *dy, int64_t n, float mean, double *sum,
                     double *along) {
    enum { CHUNK = 512, WIDE = 8 };
    for (int64_t from = 0; from < n; from += CHUNK) {
        int64_t end = from + CHUNK < n ? from + CHUNK : n, i = from;
        float a[WIDE] = { 0 }, b[WIDE] = { 0 };
        for (; i + WIDE <= end; i += WIDE)
            for (int k = 0; k < WIDE; k++) {
                a[k] += dy[i + k];
                b[k] += dy[i + k] * (x[i + k] - mean);
            }
        for (int k = 0; k < WIDE; k++) {
            *sum += (double)a[k];
            *along += (double)b[k];
        }
        for (; i < end; i++) {
            *sum += (double)dy[i];
            *along += (double)(dy[i] * (x[i] - mean));
        }
    }
}

static void gradient(void *arg, int c, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const float *x = j->in[0] + c * p->plane, *dy = j->in[1] + c * p->plane;
    double mean, var, sum = 0, along = 0, n = (double)(p->images * p->plane);
    int64_t step = p->channels * p->plane;
    (void)thread;
    moments(p, x, &mean, &var);
    for (int64_t i = 0; i < p->images; i++)
        add_sums(x + i * step, dy + i * step, p->plane, (float)mean, &sum, &along);
    double inverse = 1 / sqrt(var + p->epsilon), factor = (double)j->in[2][c] * inverse;
    if (j->out[1]) j->out[1][c] = (float)(along * inverse);
    if (j->out[2]) j->out[2][c] = (float)sum;
    /* dx = f dy + a x + b */
    double slope = -factor * inverse * inverse * along / n;
    float f = (float)factor, a = (float)slope, m = (float)mean, b = (float)(-factor * sum / n);
    for (int64_t i = 0; i < p->images; i++) {
        const float *from = x + i * step, *d = dy + i * step;
        float *dx = j->out[0] + c * p->plane + i * step;
        for (int64_t k = 0; k < p->plane; k++) dx[k] = f * d[k] + (a * (from[k] - m) + b);
    }
}

static fac_status run(const plan *p, const fac_span *in, int nin, const fac_span *out,
                      fac_task *task) {
    job j = { .p = p };
    for (int k = 0; k < nin; k++) j.in[k] = fac_span_floats(in[k], &p->in[k]);
    for (int k = 0; k < 3; k++)
        j.out[k] = out[k].memory ? fac_span_floats(out[k], &p->out[k]) : NULL;
    fac_parallel(&p->cpu->pool, (int)p->channels, task, &j);
    return FAC_OK;
}
static fac_status run_train(const void *p, fac_device *d, const fac_span *in, const fac_span *out,
                            fac_span work, fac_error *err) {
    (void)d, (void)work, (void)err;
    return run(p, in, 5, out, train);
}
static fac_status run_gradient(const void *p, fac_device *d, const fac_span *in,
                               const fac_span *out, fac_span work, fac_error *err) {
    (void)d, (void)work, (void)err;
    return run(p, in, 3, out, gradient);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_dims *x = &p->in[0].type.dims;
    if (p->node->body[0] || x->n < 2 || fac_dims_count(x) <= 0 || x->d[1] > INT_MAX) return false;
    if (FAC_IS(p->node, batch_norm) && !fac_attr_flag(p->node, "training_mode")) return false;
    if (p->out[0].type.dtype != FAC_F32) return false;
    for (int k = 0; k < p->nin; k++) {
        if (p->in[k].type.dtype != FAC_F32) return false;
        fac_want_plain(&p->in[k]);
    }
    for (int k = 0; k < p->nout; k++)
        if (p->out[k].type.dtype != FAC_NONE) fac_want_plain(&p->out[k]);
    o->seconds = fac_cpu_seconds(fac_cpu_of(d), 10 * (double)fac_dims_count(x), 0.1,
                                 12 * (double)fac_dims_count(x));
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    const fac_dims *x = &p->in[0].type.dims;
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    *q = (plan){ .cpu = fac_cpu_of(d), .images = x->d[0], .channels = x->d[1], .plane = 1 };
    for (int k = 2; k < x->n; k++) q->plane *= x->d[k];
    for (int k = 0; k < p->nin; k++) q->in[k] = p->in[k].layout;
    for (int k = 0; k < p->nout; k++) q->out[k] = p->out[k].layout;
    fac_attr_get_real(p->node, "epsilon", &q->epsilon);
    fac_attr_get_real(p->node, "momentum", &q->keep);
    *out = q;
    return FAC_OK;
}
const fac_solver fac_cpu_batch_norm_train = { .name = "batch_norm/train",
                                              .op = &fac_op_batch_norm,
                                              .rank = 660,
                                              .offer = offer,
                                              .make = make,
                                              .done = fac_solver_done,
                                              .run = run_train };
const fac_solver fac_cpu_batch_norm_grad = { .name = "batch_norm_grad/channel",
                                             .op = &fac_op_batch_norm_grad,
                                             .rank = 670,
                                             .offer = offer,
                                             .make = make,
                                             .done = fac_solver_done,
                                             .run = run_gradient };
