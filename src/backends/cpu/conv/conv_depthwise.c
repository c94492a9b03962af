/* conv2d/depthwise, conv2d/grouped, conv2d_grad_x/depthwise: convolution in small groups of as many
 * outputs as inputs, on blocked images; the gradient of such a convolution is one (conv_common.h).
 *
 * y[k][p][q] = b[k] + sum over c in k's group, r, s of x[c][p stride + r dilation - pad][...]
 * w[k][c][r][s],  with groups of 1 (depthwise), or of 2, 4 or 8 channels, of which a vector holds
 * several.  Lanes are output channels; rows of outputs go through simd/conv/depthwise.c, padding is
 * the zero halo of x.  Any kernel, stride, dilation, padding; f32.  Depthwise is bound by memory:
 * an item is a band of rows, the share that the layer before left in this cache. */
#include <limits.h>
#include "backends/draft.h"
#include "backends/cpu/conv/conv_common.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

typedef struct plan {
    fac_conv_geom g;
    fac_epilogue e;
    fac_layout x, y, r;
    const fac_cpu *cpu;
    bool flipped, biased;  /* weights of the convolution whose gradient this is; there is a bias */
    int group;             /* channels of one */
    int64_t blocks, bands; /* of channels; of the rows of an image */
} plan;

typedef struct job {
    const plan *p;
    const float *x, *w, *b, *r;
    float *y;
} job;

/* [image][band][block] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_conv_geom *g = &p->g;
    int lanes = p->cpu->simd->lanes;
    int64_t block = i % p->blocks, band = i / p->blocks % p->bands,
            image = i / p->blocks / p->bands;
    const float *x = j->x + image * p->x.stride[0] + block * p->x.stride[1] -
                     g->pad[1] * p->x.stride[2] - g->pad[2] * lanes;
    float *y = j->y + image * p->y.stride[0] + block * p->y.stride[1];
    const float *r = j->r ? j->r + image * p->r.stride[0] + block * p->r.stride[1] : NULL;
    fac_depthwise t = { .x_pixel = g->stride[2] * lanes,
                        .x_row = g->dilation[1] * p->x.stride[2],
                        .x_column = g->dilation[2] * lanes,
                        .w = j->w + block * g->R * g->S * p->group * lanes,
                        .bias = j->b ? j->b + block * lanes : NULL,
                        .y_pixel = lanes,
                        .width = g->Q,
                        .R = (int)g->R,
                        .S = (int)g->S,
                        .group = p->group,
                        .lo = p->e.lo,
                        .hi = p->e.hi };
    (void)thread;
    const int64_t first = g->P * band / p->bands, end = g->P * (band + 1) / p->bands,
                  rows = p->e.loops ? 1 : end - first;
    t.rows = rows;
    t.x_next = g->stride[1] * p->x.stride[2];
    t.y_next = p->y.stride[2];
    t.r_next = p->r.stride[2];
    for (int64_t row = first; row < end; row += rows) {
        t.x = x + row * t.x_next;
        t.y = y + row * t.y_next;
        t.r = r ? r + row * t.r_next : NULL;
        p->cpu->simd->depthwise(&t);
        fac_epilogue_run(&p->e, t.y, (size_t)(g->Q * lanes));
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { p,
              fac_span_floats(in[0], &p->x),
              fac_span_packed(in[1]),
              p->biased ? fac_span_packed(in[2]) : NULL,
              p->e.residual >= 0 ? fac_span_floats(in[p->e.residual], &p->r) : NULL,
              fac_span_floats(out[0], &p->y) };
    (void)d, (void)work, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->g.N * p->bands * p->blocks), item, &j);
    return FAC_OK;
}

/* Small images are not cut: the halo rows would be read twice. */
static int64_t bands_of(const fac_conv_geom *g, int threads) {
    if (g->P < 14) return 1;
    return g->P / 4 < 2 * threads ? g->P / 4 : 2 * threads;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const bool grouped = *(const bool *)p->solver->how;
    const fac_cpu *c = fac_cpu_of(d);
    plan q = { .cpu = c };
    const fac_conv_geom *g = &q.g;
    if (!fac_cpu_conv(d, p, &q.g, &q.e) || g->rank != 2 || g->K != g->C ||
        (g->groups != g->C) != grouped)
        return false;
    q.group = (int)(g->C / g->groups);
    if (q.group >= c->simd->lanes || c->simd->lanes % q.group) return false;
    int64_t halo = fac_conv_halo(g);
    if (halo > FAC_HALO_MOST || g->N * g->C * g->P > INT_MAX) return false;
    q.flipped = fac_conv_flipped(p);
    q.biased = fac_conv_biased(p);
    q.blocks = (g->C + c->simd->lanes - 1) / c->simd->lanes;
    q.bands = bands_of(g, c->pool.threads);
    fac_want_blocked(c, &p->in[0], halo);
    fac_want_blocked_out(c, &p->out[0]);
    if (q.e.residual >= 0) fac_want_blocked(c, &p->in[q.e.residual], 0);
    o->packed[1] = fac_conv_depthwise_bytes(g, c->simd->lanes);
    if (q.biased) o->packed[2] = fac_bias_bytes(g->C, c->simd->lanes);
    double outputs = (double)g->N * (double)(g->C * g->P * g->Q);
    double inputs = (double)g->N * (double)(g->C * g->H * g->W);
    o->seconds = fac_cpu_seconds(c, 2 * outputs * (double)(g->R * g->S * q.group), 0.5,
                                 4 * (outputs + inputs));
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    q->x = p->in[0].layout;
    q->y = p->out[0].layout;
    if (q->e.residual >= 0) q->r = p->in[q->e.residual].layout;
    *out = q;
    return FAC_OK;
}
static uint64_t pack_key(const void *plan_, int input) {
    const plan *p = plan_;
    return (uint64_t)input | (uint64_t)p->flipped << 4 | (uint64_t)p->cpu->simd->lanes << 8 |
           (uint64_t)p->group << 16;
}

static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *p = plan_;
    (void)d, (void)err;
    if (input == 2)
        fac_pack_bias(fac_span_packed(from), p->g.C, p->cpu->simd->lanes, fac_span_packed(to));
    else
        fac_conv_pack_depthwise(&p->g, p->cpu->simd->lanes, p->flipped, fac_span_packed(from),
                                fac_span_packed(to));
    return FAC_OK;
}

#define SOLVER(of, name_, grouped)                                                                 \
    .name = #of "/" name_, .op = &fac_op_##of, .how = &(const bool){ grouped }, .offer = offer,    \
    .make = make, .done = fac_solver_done, .pack_key = pack_key, .pack = pack, .run = run
const fac_solver fac_cpu_conv_depthwise = { SOLVER(conv2d, "depthwise", false), .rank = 140 };
const fac_solver fac_cpu_conv_grad_x_depthwise = { SOLVER(conv2d_grad_x, "depthwise", false),
                                                   .rank = 500 };
const fac_solver fac_cpu_conv_grouped = { SOLVER(conv2d, "grouped", true), .rank = 150 };
