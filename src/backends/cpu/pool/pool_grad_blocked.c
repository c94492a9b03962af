/* max_pool2d_grad/blocked, avg_pool2d_grad/blocked: gradients of pooling on blocked images, a plane
 * of one channel block at a time (simd/conv/pool_grad.c); f32.  Windows overlap, so an item owns a
 * plane of dx, which it sets to zero first. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "cpu_solvers.h"
#include "op_list.h"
#include "ops/pool_grad.h"

typedef struct plan {
    fac_pool_geom g;
    fac_layout x, dy, dx;
    const fac_cpu *cpu;
    bool max;
    int64_t blocks;
    float across[]; /* average: columns to divide by, for each output of a row */
} plan;

typedef struct job {
    const plan *p;
    const float *x, *dy;
    float *dx;
} job;

/* [image][block] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_window *h = &p->g.window[1], *w = &p->g.window[2];
    int64_t block = i % p->blocks, image = i / p->blocks, lanes = p->cpu->simd->lanes;
    const float *x = p->max ? j->x + image * p->x.stride[0] + block * p->x.stride[1] : NULL;
    const float *dy = j->dy + image * p->dy.stride[0] + block * p->dy.stride[1];
    float *dx = j->dx + image * p->dx.stride[0] + block * p->dx.stride[1];
    fac_pool_grad_row t = { .x_row = h->dilation * p->x.stride[2],
                            .dx_row = h->dilation * p->dx.stride[2],
                            .in = w->in,
                            .S = (int)w->kernel,
                            .stride = w->stride,
                            .dilation = w->dilation,
                            .pad = w->pad,
                            .width = w->out,
                            .across = p->max ? NULL : p->across };
    (void)thread;
    for (int64_t row = 0; row < h->in; row++)
        memset(dx + row * p->dx.stride[2], 0, (size_t)(w->in * lanes) * sizeof *dx);
    for (int64_t row = 0; row < h->out; row++) {
        int64_t first, last;
        fac_window_taps(h, row, &first, &last);
        int64_t at = row * h->stride + first * h->dilation - h->pad;
        if (first == last) continue;
        t.rows = (int)(last - first);
        if (p->max) t.x = x + at * p->x.stride[2];
        t.dy = dy + row * p->dy.stride[2];
        t.dx = dx + at * p->dx.stride[2];
        t.down = fac_pool_divisor(&p->g, 1, row);
        p->cpu->simd->pool_grad(&t);
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { p, p->max ? fac_span_floats(in[0], &p->x) : NULL, fac_span_floats(in[1], &p->dy),
              fac_span_floats(out[0], &p->dx) };
    (void)d, (void)work, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->g.N * p->blocks), item, &j);
    return FAC_OK;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *c = fac_cpu_of(d);
    fac_pool_geom g;
    if (p->node->body[0] || !fac_pool_grad_geometry(p->node, &g) || g.rank != 2) return false;
    if (p->in[1].type.dtype != FAC_F32 || p->out[0].type.dtype != FAC_F32) return false;
    int64_t inputs = fac_dims_count(&p->out[0].type.dims),
            outputs = fac_dims_count(&p->in[1].type.dims);
    const fac_window *h = &g.window[1], *w = &g.window[2];
    if (inputs <= 0 || outputs <= 0 || outputs > INT_MAX || h->kernel > INT_MAX / w->kernel)
        return false;
    if (FAC_IS(p->node, max_pool2d_grad)) fac_want_blocked(c, &p->in[0], 0);
    fac_want_blocked(c, &p->in[1], 0);
    fac_want_blocked_out(c, &p->out[0]);
    double lanes =
        (double)((g.C + c->simd->lanes - 1) / c->simd->lanes * c->simd->lanes) / (double)g.C;
    o->seconds = fac_cpu_seconds(c, lanes * (double)outputs * (double)(8 * h->kernel * w->kernel),
                                 0.3, 4 * lanes * (double)(2 * inputs + outputs));
    *FAC_DRAFT(o, fac_pool_geom) = g;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    const fac_pool_geom g = *(const fac_pool_geom *)p->draft;
    plan *q = fac_solver_plan(p, sizeof *q + (size_t)g.window[2].out * sizeof *q->across, err);
    if (!q) return FAC_E_NOMEM;
    q->g = g;
    q->cpu = fac_cpu_of(d);
    q->max = FAC_IS(p->node, max_pool2d_grad);
    if (q->max) q->x = p->in[0].layout;
    q->dy = p->in[1].layout;
    q->dx = p->out[0].layout;
    q->blocks = (g.C + q->cpu->simd->lanes - 1) / q->cpu->simd->lanes;
    for (int64_t k = 0; k < g.window[2].out; k++) q->across[k] = fac_pool_divisor(&g, 2, k);
    *out = q;
    return FAC_OK;
}
const fac_solver fac_cpu_max_pool_grad_blocked = { .name = "max_pool2d_grad/blocked",
                                                   .op = &fac_op_max_pool2d_grad,
                                                   .rank = 610,
                                                   .offer = offer,
                                                   .make = make,
                                                   .done = fac_solver_done,
                                                   .run = run };
const fac_solver fac_cpu_avg_pool_grad_blocked = { .name = "avg_pool2d_grad/blocked",
                                                   .op = &fac_op_avg_pool2d_grad,
                                                   .rank = 620,
                                                   .offer = offer,
                                                   .make = make,
                                                   .done = fac_solver_done,
                                                   .run = run };
