/* conv2d_grad_w/gemm, conv3d_grad_w/gemm: gradients of convolution weights as a matrix product over
 * all pixels of all images.
 *
 * dw[k][tap] = sum over pixels of columns[tap][pixel] dy[k][pixel], made as its transpose, because
 * then the rows of the matrix of columns are read along memory and dy is packed only once, for all:
 * y[tap][k] = a[tap][pixel] b[pixel][k].  The columns are never whole: each item owns some rows of
 * y and makes the slab of them that it multiplies next.  Every number is summed in the order of the
 * pixels, so no number of threads changes a bit.  Any groups, stride, dilation, padding; f32. */
#include <limits.h>
#include <math.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/columns.h"
#include "backends/cpu/conv/conv_common.h"
#include "backends/cpu/product/gemm.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/conv_grad.h"

enum { TILES_OF_ITEM = 32 };

typedef struct plan {
    fac_conv_geom g;
    fac_layout x, dy, dw;
    const fac_cpu *cpu;
    fac_epilogue none;
    int64_t M, N, K, plane; /* of one group: taps of all channels, output channels, pixels; pixels
                               of one image */
    int64_t panels, tiles, items;      /* of a group */
    size_t packed, result, per_thread; /* floats: dy of a group; y of a group; scratch */
} plan;

typedef struct job {
    const plan *p;
    const float *x, *dy;
    float *dw, *b, *y, *scratch;
} job;

/* [group][panel][image] */
static void pack(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_simd *s = p->cpu->simd;
    int64_t image = i % p->g.N, panel = i / p->g.N % p->panels, group = i / p->g.N / p->panels;
    int64_t width = p->N - panel * 2 * s->lanes > s->lanes ? 2 * s->lanes : s->lanes;
    (void)thread;
    fac_gemm_pack_b(
        s, j->dy + (image * p->g.K + group * p->N) * p->plane, 1, p->plane, p->plane, p->N, panel,
        j->b + group * (int64_t)p->packed + panel * 2 * s->lanes * p->K + image * p->plane * width);
}

/* Pixels from..to-1 of one row of the columns; x: the first channel of the group in image 0. */
static void column_row(const plan *p, const float *x, int64_t tap, int64_t from, int64_t to,
                       float *row) {
    const fac_conv_geom *g = &p->g;
    int64_t s = tap % g->S, r = tap / g->S % g->R, t = tap / (g->S * g->R) % g->T,
            c = tap / (g->S * g->R * g->T);
    int64_t channel = g->D * g->H * g->W, first, last;
    fac_window w = fac_conv_window(g, 2);
    fac_window_inside(&w, s, &first, &last);
    /* division only to find the beginning: rows are short */
    int64_t q = from % g->Q, p0 = from / g->Q % g->P, o = from / (g->Q * g->P) % g->O,
            image = from / p->plane;
    for (int64_t i = from, n; i < to; i += n, q = 0) {
        n = g->Q - q < to - i ? g->Q - q : to - i;
        int64_t at = fac_input_row(g, o, p0, t, r);
        fac_tap_span(g, at < 0 ? NULL : x + (image * g->C + c) * channel + at, q, n, s, first, last,
                     row + (i - from));
        if (++p0 == g->P) p0 = 0, o++;
        if (o == g->O) o = 0, image++;
    }
}

/* [group][share of the tiles] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_simd *s = p->cpu->simd;
    int64_t group = i / p->items, share = i % p->items, t0 = p->tiles * share / p->items,
            t1 = p->tiles * (share + 1) / p->items;
    int64_t first = p->M * t0 / p->tiles, last = p->M * t1 / p->tiles;
    const float *x = j->x + group * (p->g.C / p->g.groups) * p->g.D * p->g.H * p->g.W;
    float *slab = j->scratch + (size_t)thread * p->per_thread,
          *rows = slab + p->per_thread - fac_gemm_edge(s) - s->rows * FAC_GEMM_DEPTH,
          *edge = rows + s->rows * FAC_GEMM_DEPTH, *y = j->y + group * (int64_t)p->result;
    fac_gemm_job m = {
        .simd = s, .M = p->M, .N = p->N, .K = p->K, .y = y, .y_row = p->N, .e = &p->none
    };
    for (int64_t k = 0, end; k < p->K; k = end) {
        end = k + FAC_GEMM_DEPTH < p->K ? k + FAC_GEMM_DEPTH : p->K;
        int64_t depth = fac_gemm_padded(s, end - k);
        for (int64_t t = t0; t < t1; t++) {
            int64_t m0 = p->M * t / p->tiles, m1 = p->M * (t + 1) / p->tiles;
            for (int64_t tap = m0; tap < m1; tap++)
                column_row(p, x, tap, k, end, rows + (tap - m0) * FAC_GEMM_DEPTH);
            fac_gemm_pack_a(s, rows, FAC_GEMM_DEPTH, 1, m1 - m0, 0, 1, 0, end - k, 1,
                            slab + (m0 - first) * depth);
        }
        fac_gemm_slab(&m, (fac_gemm_block){ t0, t1, 0, p->panels, k, end }, slab, depth,
                      j->b + group * (int64_t)p->packed, edge);
    }
    enum { SIDE = 16 };
    float *dw = j->dw + group * p->N * p->M;
    for (int64_t k0 = 0; k0 < p->N;
         k0 += SIDE) /* transposed in strips, which are read and written by whole lines */
        for (int64_t tap = first; tap < last; tap++)
            for (int64_t k = k0; k < p->N && k < k0 + SIDE; k++)
                dw[k * p->M + tap] = y[tap * p->N + k];
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    float *b = fac_span_packed(work), *y = b + (size_t)p->g.groups * p->packed,
          *scratch = y + (size_t)p->g.groups * p->result;
    job j = { p,
              fac_span_floats(in[0], &p->x),
              fac_span_floats(in[1], &p->dy),
              fac_span_floats(out[0], &p->dw),
              b,
              y,
              scratch };
    (void)d, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->g.groups * p->panels * p->g.N), pack, &j);
    fac_parallel(&p->cpu->pool, (int)(p->g.groups * p->items), item, &j);
    return FAC_OK;
}

static bool settle(plan *p, const fac_problem *problem, size_t *work) {
    const fac_simd *s = p->cpu->simd;
    fac_conv_geom *g = &p->g;
    if (!fac_cpu_conv_grad(problem, g)) return false;
    fac_conv_flatten(g);
    p->none = (fac_epilogue){ .residual = -1, .lo = -INFINITY, .hi = INFINITY };
    p->plane = g->O * g->P * g->Q;
    p->M = g->C / g->groups * g->T * g->R * g->S;
    p->N = g->K / g->groups;
    p->K = g->N * p->plane;
    p->panels = fac_gemm_panels(s, p->N);
    p->tiles = fac_gemm_tiles(s, p->M);
    p->items = (2 * p->cpu->pool.threads + g->groups - 1) / g->groups;
    if (p->items * TILES_OF_ITEM < p->tiles)
        p->items = (p->tiles + TILES_OF_ITEM - 1) / TILES_OF_ITEM;
    if (p->items > p->tiles) p->items = p->tiles;
    if (g->N > INT_MAX / p->panels / g->groups || p->items > INT_MAX / g->groups) return false;
    int64_t most = (p->tiles + p->items - 1) / p->items * s->rows;
    p->per_thread = (size_t)((most + s->rows) * FAC_GEMM_DEPTH) + fac_gemm_edge(s);
    size_t all, each, threads;
    bool fits = fac_size_mul((size_t)fac_gemm_padded(s, p->N), (size_t)p->K, &p->packed) &&
                fac_size_mul((size_t)p->M, (size_t)fac_gemm_padded(s, p->N), &p->result) &&
                fac_size_add(p->packed, p->result, &each) &&
                fac_size_mul(each, (size_t)g->groups, &all) &&
                fac_size_mul(p->per_thread, (size_t)p->cpu->pool.threads, &threads) &&
                fac_size_add(all, threads, &all) && fac_size_mul(all, sizeof(float), work);
    return fits;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    if (!settle(&q, p, &o->work)) return false;
    fac_want_plain(&p->in[0]);
    fac_want_plain(&p->in[1]);
    fac_want_plain(&p->out[0]);
    double groups = (double)q.g.groups, columns = groups * (double)q.M * (double)q.K;
    double full = (double)q.N / (double)fac_gemm_padded(q.cpu->simd, q.N);
    /* rows of columns are short: gathering them costs more than the memory that it moves */
    o->seconds = fac_cpu_seconds(q.cpu, 2 * columns * (double)q.N, 0.6 * full,
                                 60 * columns + 8 * groups * (double)q.packed);
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
const fac_solver fac_cpu_conv2d_grad_w = { .name = "conv2d_grad_w/gemm",
                                           .op = &fac_op_conv2d_grad_w,
                                           .rank = 560,
                                           .offer = offer,
                                           .make = make,
                                           .done = fac_solver_done,
                                           .run = run };
const fac_solver fac_cpu_conv3d_grad_w = { .name = "conv3d_grad_w/gemm",
                                           .op = &fac_op_conv3d_grad_w,
                                           .rank = 580,
                                           .offer = offer,
                                           .make = make,
                                           .done = fac_solver_done,
                                           .run = run };
