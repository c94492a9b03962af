/* max_pool2d/blocked, avg_pool2d/blocked: pooling of blocked images, a row of one channel block at
 * a time (simd/conv/pool.c).
 *
 * Taps outside of x are left out by their numbers, not by the halo, so the input needs none.  f32;
 * the maximum is exact, the mean is a sum of at most R rows and S columns and one division. */
#include <limits.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "cpu_solvers.h"
#include "op_list.h"
#include "ops/pool.h"

enum { WIDEST = 128 }; /* of a window: what the kernel's stack takes */

typedef struct plan {
    fac_pool_geom g;
    fac_layout x, y;
    const fac_cpu *cpu;
    bool average;
    int64_t blocks, bands; /* of channels; of the rows of an image */
    float across[];        /* columns to divide by, for each output of a row */
} plan;

typedef struct job {
    const plan *p;
    const float *x;
    float *y;
} job;

/* [image][band][block] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_window *h = &p->g.window[1], *w = &p->g.window[2];
    int64_t block = i % p->blocks, band = i / p->blocks % p->bands,
            image = i / p->blocks / p->bands;
    const float *x = j->x + image * p->x.stride[0] + block * p->x.stride[1];
    float *y = j->y + image * p->y.stride[0] + block * p->y.stride[1];
    fac_pool_row t = { .x_row = h->dilation * p->x.stride[2],
                       .in = w->in,
                       .S = (int)w->kernel,
                       .stride = w->stride,
                       .dilation = w->dilation,
                       .pad = w->pad,
                       .width = w->out,
                       .across = p->average ? p->across : NULL };
    (void)thread;
    for (int64_t row = h->out * band / p->bands; row < h->out * (band + 1) / p->bands; row++) {
        int64_t first, last;
        fac_window_taps(h, row, &first, &last);
        t.rows = (int)(last - first);
        t.x = x + (row * h->stride + first * h->dilation - h->pad) * p->x.stride[2];
        t.y = y + row * p->y.stride[2];
        t.down = fac_pool_divisor(&p->g, 1, row);
        p->cpu->simd->pool(&t);
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { p, fac_span_floats(in[0], &p->x), fac_span_floats(out[0], &p->y) };
    (void)d, (void)work, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->g.N * p->bands * p->blocks), item, &j);
    return FAC_OK;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *c = fac_cpu_of(d);
    fac_pool_geom g;
    if (p->in[0].type.dtype != FAC_F32 || (p->nout > 1 && p->out[1].type.dtype) || p->node->body[0])
        return false;
    if (!fac_pool_geometry(p->node, &g) || g.rank != 2) return false;
    int64_t inputs = fac_dims_count(&p->in[0].type.dims),
            outputs = fac_dims_count(&p->out[0].type.dims);
    const fac_window *h = &g.window[1], *w = &g.window[2];
    if (inputs <= 0 || outputs <= 0 || (w->kernel - 1) * w->dilation + 1 > WIDEST ||
        outputs > INT_MAX)
        return false;
    fac_want_blocked(c, &p->in[0], 0);
    fac_want_blocked_out(c, &p->out[0]);
    o->seconds = fac_cpu_seconds(c, (double)outputs * (double)(h->kernel + w->kernel), 0.2,
                                 4 * (double)(inputs + outputs));
    *FAC_DRAFT(o, fac_pool_geom) = g;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    const fac_pool_geom g = *(const fac_pool_geom *)p->draft;
    plan *q = fac_solver_plan(p, sizeof *q + (size_t)g.window[2].out * sizeof *q->across, err);
    if (!q) return FAC_E_NOMEM;
    q->g = g;
    q->cpu = fac_cpu_of(d);
    q->x = p->in[0].layout;
    q->y = p->out[0].layout;
    q->average = FAC_IS(p->node, avg_pool2d);
    q->blocks = (g.C + q->cpu->simd->lanes - 1) / q->cpu->simd->lanes;
    q->bands = g.window[1].out < 14                         ? 1
               : 2 * q->cpu->pool.threads < g.window[1].out ? 2 * q->cpu->pool.threads
                                                            : g.window[1].out;
    for (int64_t k = 0; k < g.window[2].out; k++) q->across[k] = fac_pool_divisor(&g, 2, k);
    *out = q;
    return FAC_OK;
}
const fac_solver fac_cpu_max_pool = { .name = "max_pool2d/blocked",
                                      .op = &fac_op_max_pool2d,
                                      .rank = 380,
                                      .offer = offer,
                                      .make = make,
                                      .done = fac_solver_done,
                                      .run = run };
const fac_solver fac_cpu_avg_pool = { .name = "avg_pool2d/blocked",
                                      .op = &fac_op_avg_pool2d,
                                      .rank = 390,
                                      .offer = offer,
                                      .make = make,
                                      .done = fac_solver_done,
                                      .run = run };
