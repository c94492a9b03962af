/* conv2d_grad_x/doubled: gradients by the inputs of convolutions of 2 x 2 and stride 2, which
 * transposed convolutions of that kind are, of plain images.
 *
 * A pixel of dy makes four of dx, which no other pixel meets.  Some pixels of all channels of dy
 * are brought together; each channel of dx takes them with four weights, and the rows that come out
 * go to their places.  No padding, no groups; f32. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/conv/conv_common.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/conv_grad.h"

enum { TAPS = 4, SHARES = 8, MOST = FAC_DOUBLED_VECTORS * 16 };

typedef struct plan {
    fac_conv_geom g; /* of the convolution whose gradient this is */
    fac_epilogue e;
    fac_layout dy, dx, bias;
    const fac_cpu *cpu;
    int64_t width, tiles; /* pixels of a tile, tiles of an image */
} plan;

typedef struct job {
    const plan *p;
    const float *dy, *w, *bias;
    float *dx, *work;
} job;

/* Pixels of a tile that lie in one row of dy: where they begin in the tile, where in dx their upper
 * row begins. */
typedef struct piece {
    int64_t at, n, to;
} piece;

static int pieces_of(const plan *p, int64_t pixel, int64_t n, piece *to) {
    const int64_t width = p->g.Q;
    int count = 0;
    for (int64_t at = 0; at < n; count++) {
        const int64_t row = (pixel + at) / width, column = (pixel + at) % width;
        const int64_t rest = width - column < n - at ? width - column : n - at;
        to[count] = (piece){ at, rest, (2 * row * p->g.W) + 2 * column };
        at += rest;
    }
    return count;
}

/* All channels of dx of one tile. */
static void do_tile(const job *j, int64_t image, int64_t pixel, float *tile) {
    const plan *p = j->p;
    const int64_t pixels = p->g.P * p->g.Q, plane = p->g.H * p->g.W;
    const int64_t n = pixels - pixel < p->width ? pixels - pixel : p->width;
    const float *from = j->dy + image * p->g.K * pixels + pixel;
    float rows[2 * 2 * MOST];
    piece all[MOST];
    const int pieces = pieces_of(p, pixel, n, all);
    for (int64_t c = 0; c < p->g.K; c++) {
        float *to = tile + c * p->width;
        memcpy(to, from + c * pixels, (size_t)n * sizeof *to);
        memset(to + n, 0, (size_t)(p->width - n) * sizeof *to);
    }
    fac_doubled d = {
        .x = tile, .w = j->w, .channels = p->g.K, .lo = p->e.lo, .hi = p->e.hi, .y = rows
    };
    float *dx = j->dx + image * p->g.C * plane;
    for (int64_t k = 0; k < p->g.C; k++, d.w += TAPS * p->g.K, dx += plane) {
        d.bias = j->bias ? j->bias[k] : 0;
        p->cpu->simd->doubled(&d);
        if (p->e.loops) fac_epilogue_run(&p->e, rows, (size_t)(4 * p->width));
        for (int i = 0; i < pieces; i++) {
            const size_t bytes = 2 * (size_t)all[i].n * sizeof *dx;
            const float *upper = rows + 2 * all[i].at;
            memcpy(dx + all[i].to, upper, bytes);
            memcpy(dx + all[i].to + p->g.W, upper + 2 * p->width, bytes);
        }
    }
}

static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    float *tile = j->work + thread * p->g.K * p->width;
    for (int64_t u = first; u < last; u++) do_tile(j, u / p->tiles, u % p->tiles * p->width, tile);
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { .p = p,
              .dy = fac_span_floats(in[0], &p->dy),
              .w = fac_span_packed(in[1]),
              .dx = fac_span_floats(out[0], &p->dx),
              .work = fac_span_packed(work) };
    if (p->e.bias >= 0) j.bias = fac_span_floats(in[p->e.bias], &p->bias);
    (void)d, (void)err;
    fac_parallel_ranges(&p->cpu->pool, p->g.N * p->tiles, SHARES * p->cpu->pool.threads, run_units,
                        &j);
    return FAC_OK;
}

/* ---- offer and make ---- */

static bool doubles(const fac_conv_geom *g) {
    return g->rank == 2 && g->groups == 1 && g->R == 2 && g->S == 2 && g->stride[1] == 2 &&
           g->stride[2] == 2 && g->dilation[1] == 1 && g->dilation[2] == 1 && !g->pad[1] &&
           !g->pad[2] && g->H == 2 * g->P && g->W == 2 * g->Q;
}

static bool settle(plan *p, const fac_problem *problem) {
    if (!fac_conv_grad_geometry(problem->node, &p->g) || !doubles(&p->g)) return false;
    for (int i = 0; i < problem->nin; i++)
        if (problem->in[i].type.dtype != FAC_F32 || fac_dims_count(&problem->in[i].type.dims) <= 0)
            return false;
    if (!fac_cpu_epilogue_biased(problem, p->cpu->simd, &p->e) || p->e.residual >= 0 ||
        p->e.mask >= 0)
        return false;
    p->width = FAC_DOUBLED_VECTORS * p->cpu->simd->lanes;
    p->tiles = (p->g.P * p->g.Q + p->width - 1) / p->width;
    return p->g.P * p->g.Q >= p->width;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    const fac_conv_geom *g = &q.g;
    size_t work, packed;
    if (!settle(&q, p)) return false;
    if (!fac_size_mul((size_t)(g->K * q.width) * sizeof(float), (size_t)q.cpu->pool.threads,
                      &work) ||
        !fac_size_mul((size_t)g->K * (size_t)g->C, TAPS * sizeof(float), &packed))
        return false;
    fac_want_plain(&p->in[0]);
    fac_want_plain(&p->out[0]);
    if (q.e.bias >= 0) fac_want_plain(&p->in[q.e.bias]);
    o->work = work;
    o->packed[1] = packed;
    const double macs = (double)packed / sizeof(float) * (double)(g->N * q.tiles * q.width),
                 moved = 4 * (double)g->N * (double)(g->C * g->H * g->W + g->K * g->P * g->Q);
    o->seconds = fac_cpu_seconds(q.cpu, 2 * macs, 0.8, moved) +
                 fac_conv_pack_seconds(q.cpu, p, (double)packed / sizeof(float));
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    q->dy = p->in[0].layout;
    q->dx = p->out[0].layout;
    if (q->e.bias >= 0) q->bias = p->in[q->e.bias].layout;
    *out = q;
    return FAC_OK;
}

/* ---- weights: [channel of dx][channel of dy][taps] ---- */

static uint64_t pack_key(const void *plan_, int input) {
    (void)plan_;
    return (uint64_t)input;
}

typedef struct packing {
    const fac_conv_geom *g;
    const float *w;
    float *to;
} packing;

static void pack_channel(void *arg, int k, int thread) {
    const packing *a = arg;
    float *to = a->to + TAPS * a->g->K * k;
    (void)thread;
    for (int64_t c = 0; c < a->g->K; c++)
        memcpy(to + TAPS * c, a->w + TAPS * (c * a->g->C + k), TAPS * sizeof *to);
}

static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *p = plan_;
    packing a = { &p->g, fac_span_packed(from), fac_span_packed(to) };
    (void)d, (void)input, (void)err;
    fac_parallel(&p->cpu->pool, (int)p->g.C, pack_channel, &a);
    return FAC_OK;
}

const fac_solver fac_cpu_conv_grad_x_doubled = { .name = "conv2d_grad_x/doubled",
                                                 .op = &fac_op_conv2d_grad_x,
                                                 .rank = 465,
                                                 .offer = offer,
                                                 .make = make,
                                                 .done = fac_solver_done,
                                                 .pack_key = pack_key,
                                                 .pack = pack,
                                                 .run = run };
