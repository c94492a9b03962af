/* conv2d_grad_w/depthwise: gradients of the weights of depthwise convolutions on blocked images.
 *
 * dw[c][r][s] = sum over images, p, q of x[c][p stride + r dilation - pad][...] dy[c][p][q]:  lanes
 * are channels, each tap is a vector of sums (simd/conv/depthwise_grad.c); the padding is the zero
 * halo of x.  Bound by memory.  Where blocks of channels are few, the rows of all images are dealt
 * out in parts, whose number follows from the shape alone: no number of threads changes a bit. Any
 * kernel, stride, dilation, padding; f32. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/conv/conv_common.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum { ITEMS = 16, STRIP_PIXELS = 256 };

typedef struct plan {
    fac_conv_geom g;
    fac_layout x, dy, dw;
    const fac_cpu *cpu;
    int64_t blocks, parts, strip, taps;
} plan;

typedef struct job {
    const plan *p;
    const float *x, *dy;
    float *dw, *sums;
} job;

static float *sums_of(const job *j, int64_t block, int64_t part) {
    return j->sums + (block * j->p->parts + part) * j->p->taps * j->p->cpu->simd->lanes;
}

/* [block][part] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_conv_geom *g = &p->g;
    int64_t block = i / p->parts, part = i % p->parts, lanes = p->cpu->simd->lanes;
    int64_t from = g->N * g->P * part / p->parts, end = g->N * g->P * (part + 1) / p->parts;
    fac_depthwise_grad t = { .x_next = g->stride[1] * p->x.stride[2],
                             .x_pixel = g->stride[2] * lanes,
                             .x_row = g->dilation[1] * p->x.stride[2],
                             .x_column = g->dilation[2] * lanes,
                             .y_row = p->dy.stride[2],
                             .pixels = g->Q,
                             .R = (int)g->R,
                             .S = (int)g->S,
                             .to = sums_of(j, block, part) };
    (void)thread;
    memset(t.to, 0, (size_t)(p->taps * lanes) * sizeof *t.to);
    for (; from < end; from += t.rows) {
        int64_t image = from / g->P, row = from % g->P;
        t.rows = g->P - row < p->strip ? g->P - row : p->strip;
        if (t.rows > end - from) t.rows = end - from;
        t.x = j->x + image * p->x.stride[0] + block * p->x.stride[1] +
              (row * g->stride[1] - g->pad[1]) * p->x.stride[2] - g->pad[2] * lanes;
        t.y = j->dy + image * p->dy.stride[0] + block * p->dy.stride[1] + row * p->dy.stride[2];
        p->cpu->simd->depthwise_grad(&t);
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { p, fac_span_floats(in[0], &p->x), fac_span_floats(in[1], &p->dy),
              fac_span_floats(out[0], &p->dw), fac_span_packed(work) };
    int64_t lanes = p->cpu->simd->lanes;
    (void)d, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->blocks * p->parts), item, &j);
    for (int64_t c = 0; c < p->g.C; c++)
        for (int64_t tap = 0; tap < p->taps; tap++) {
            float sum = 0;
            for (int64_t part = 0; part < p->parts; part++)
                sum += sums_of(&j, c / lanes, part)[tap * lanes + c % lanes];
            j.dw[c * p->taps + tap] = sum;
        }
    return FAC_OK;
}

/* All but the layouts. */
static bool settle(plan *p, const fac_problem *problem, size_t *work) {
    const fac_conv_geom *g = &p->g;
    int64_t lanes = p->cpu->simd->lanes;
    if (!fac_cpu_conv_grad(problem, &p->g) || g->rank != 2 || g->groups != g->C || g->K != g->C)
        return false;
    p->blocks = (g->C + lanes - 1) / lanes;
    p->taps = g->R * g->S;
    p->strip = g->Q < STRIP_PIXELS ? STRIP_PIXELS / g->Q : 1;
    p->parts = p->blocks >= ITEMS ? 1 : (ITEMS + p->blocks - 1) / p->blocks;
    if (p->parts > g->N * g->P) p->parts = g->N * g->P;
    return p->blocks <= INT_MAX / p->parts &&
           fac_size_mul((size_t)(p->blocks * p->parts), (size_t)(p->taps * lanes), work) &&
           fac_size_mul(*work, sizeof(float), work);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    const fac_conv_geom *g = &q.g;
    if (!settle(&q, p, &o->work)) return false;
    int64_t halo = fac_conv_halo(g);
    if (halo > FAC_HALO_MOST) return false;
    fac_want_blocked(q.cpu, &p->in[0], halo);
    fac_want_blocked(q.cpu, &p->in[1], 0);
    fac_want_plain(&p->out[0]);
    double lanes = (double)g->N * (double)(q.blocks * q.cpu->simd->lanes),
           outputs = lanes * (double)(g->P * g->Q);
    o->seconds = fac_cpu_seconds(q.cpu, 2 * outputs * (double)q.taps, 0.2,
                                 4 * (outputs + lanes * (double)(g->H * g->W)));
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    q->x = p->in[0].layout;
    q->dy = p->in[1].layout;
    q->dw = p->out[0].layout;
    *out = q;
    return FAC_OK;
}
const fac_solver fac_cpu_conv_grad_w_depthwise = { .name = "conv2d_grad_w/depthwise",
                                                   .op = &fac_op_conv2d_grad_w,
                                                   .rank = 460,
                                                   .offer = offer,
                                                   .make = make,
                                                   .done = fac_solver_done,
                                                   .run = run };
