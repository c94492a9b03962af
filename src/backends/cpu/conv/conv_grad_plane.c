/* conv2d_grad_x/plane, conv2d_grad_w/plane: gradients of convolutions whose groups have one input
 * channel (depthwise), directly on plain planes; f32.
 *
 * Row by row:  dx += w dy and dw = sum of x dy, where all three rows lie next to each other in
 * memory.  An item owns a plane of dx, or the kernel of one output channel, whose sum goes through
 * the images in order: no number of threads changes a bit. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/columns.h"
#include "backends/cpu/conv/conv_common.h"
#include "cpu_solvers.h"
#include "op_list.h"
#include "ops/conv_grad.h"

typedef struct plan {
    fac_conv_geom g;
    fac_layout a, b, y; /* in[0], in[1], out[0] */
    const fac_cpu *cpu;
} plan;

typedef struct job {
    const plan *p;
    const float *dy, *w, *x;
    float *to;
} job;

/* [image][channel] of dx */
static void item_x(void *arg, int i, int thread) {
    const job *j = arg;
    const fac_conv_geom *g = &j->p->g;
    const fac_window h = fac_conv_window(g, 1), v = fac_conv_window(g, 2);
    int64_t each = g->K / g->groups, image = i / g->C, c = i % g->C;
    float *dx = j->to + (int64_t)i * g->H * g->W;
    (void)thread;
    memset(dx, 0, (size_t)(g->H * g->W) * sizeof *dx);
    for (int64_t k = c * each; k < (c + 1) * each; k++)
        for (int64_t r = 0; r < g->R; r++)
            for (int64_t s = 0; s < g->S; s++) {
                int64_t p0, p1, q0, q1;
                float w = j->w[(k * g->R + r) * g->S + s];
                fac_window_inside(&h, r, &p0, &p1);
                fac_window_inside(&v, s, &q0, &q1);
                for (int64_t p = p0; p < p1; p++) {
                    const float *dy = j->dy + ((image * g->K + k) * g->P + p) * g->Q;
                    float *to = dx + (p * h.stride + r * h.dilation - h.pad) * g->W +
                                s * v.dilation - v.pad;
                    if (v.stride == 1)
                        for (int64_t q = q0; q < q1; q++) to[q] += w * dy[q];
                    else
                        for (int64_t q = q0; q < q1; q++) to[q * v.stride] += w * dy[q];
                }
            }
}

/* sum of x[q step] dy[q] in eight sums, which the compiler keeps in vectors. */
static double dot(const float *x, int64_t step, const float *dy, int64_t n) {
    float sum[8] = { 0 };
    double all = 0;
    int64_t q = 0;
    if (step == 1)
        for (; q + 8 <= n; q += 8)
            for (int k = 0; k < 8; k++) sum[k] += x[q + k] * dy[q + k];
    else
        for (; q + 8 <= n; q += 8)
            for (int k = 0; k < 8; k++) sum[k] += x[(q + k) * step] * dy[q + k];
    for (int k = 0; k < 8; k++) all += (double)sum[k];
    for (; q < n; q++) all += (double)(x[q * step] * dy[q]);
    return all;
}

/* [output channel] */
static void item_w(void *arg, int i, int thread) {
    const job *j = arg;
    const fac_conv_geom *g = &j->p->g;
    const fac_window h = fac_conv_window(g, 1), v = fac_conv_window(g, 2);
    int64_t k = i, c = k / (g->K / g->groups);
    (void)thread;
    for (int64_t r = 0; r < g->R; r++)
        for (int64_t s = 0; s < g->S; s++) {
            int64_t p0, p1, q0, q1;
            double sum = 0;
            fac_window_inside(&h, r, &p0, &p1);
            fac_window_inside(&v, s, &q0, &q1);
            for (int64_t image = 0; image < g->N; image++)
                for (int64_t p = p0; p < p1; p++) {
                    const float *dy = j->dy + ((image * g->K + k) * g->P + p) * g->Q;
                    const float *x =
                        j->x +
                        ((image * g->C + c) * g->H + p * h.stride + r * h.dilation - h.pad) * g->W;
                    sum +=
                        dot(x + q0 * v.stride + s * v.dilation - v.pad, v.stride, dy + q0, q1 - q0);
                }
            j->to[(k * g->R + r) * g->S + s] = (float)sum;
        }
}

static fac_status run_x(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                        fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { p, fac_span_floats(in[0], &p->a), fac_span_floats(in[1], &p->b), NULL,
              fac_span_floats(out[0], &p->y) };
    (void)d, (void)work, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->g.N * p->g.C), item_x, &j);
    return FAC_OK;
}

static fac_status run_w(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                        fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { p, fac_span_floats(in[1], &p->b), NULL, fac_span_floats(in[0], &p->a),
              fac_span_floats(out[0], &p->y) };
    (void)d, (void)work, (void)err;
    fac_parallel(&p->cpu->pool, (int)p->g.K, item_w, &j);
    return FAC_OK;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    fac_conv_geom g;
    if (!fac_cpu_conv_grad(p, &g) || g.rank != 2 || g.groups != g.C) return false;
    if (g.N > INT_MAX / g.C || g.K > INT_MAX) return false;
    fac_want_plain(&p->in[0]);
    fac_want_plain(&p->in[1]);
    fac_want_plain(&p->out[0]);
    double outputs = (double)(g.N * g.K) * (double)(g.P * g.Q);
    o->seconds = fac_cpu_seconds(fac_cpu_of(d), 2 * outputs * (double)(g.R * g.S),
                                 g.stride[2] == 1 ? 0.1 : 0.03, 12 * outputs);
    *FAC_DRAFT(o, fac_conv_geom) = g;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    q->cpu = fac_cpu_of(d);
    q->g = *(const fac_conv_geom *)p->draft;
    q->a = p->in[0].layout;
    q->b = p->in[1].layout;
    q->y = p->out[0].layout;
    *out = q;
    return FAC_OK;
}
const fac_solver fac_cpu_conv2d_grad_x_plane = { .name = "conv2d_grad_x/plane",
                                                 .op = &fac_op_conv2d_grad_x,
                                                 .rank = 530,
                                                 .offer = offer,
                                                 .make = make,
                                                 .done = fac_solver_done,
                                                 .run = run_x };
const fac_solver fac_cpu_conv2d_grad_w_plane = { .name = "conv2d_grad_w/plane",
                                                 .op = &fac_op_conv2d_grad_w,
                                                 .rank = 540,
                                                 .offer = offer,
                                                 .make = make,
                                                 .done = fac_solver_done,
                                                 .run = run_w };
