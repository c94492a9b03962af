/* linear/thin, matmul/thin: few rows times a large matrix that changes with every run, as the
 * weights of a fully connected layer do in training; f32.
 *
 * Packing such a matrix would move four times the bytes that the product needs, so it is read where
 * it lies, once, in pieces that are brought into the form of the register tile inside the first
 * cache.  Time is that of reading it.
 *   linear   y[m][o] = sum over i of x[m][i] w[o][i]:  sums run along the rows of w: dot products
 *            (simd/product/dots.c); of more rows than MOST_DOTS, where arithmetic is what takes
 * time, w is the left side of a product:  y^T = w x^T matmul   y[m][n] = sum over k of a[m][k]
 * b[k][n]:  sums run across the rows of b, some of which are added to y at a time The order of a
 * sum does not depend on how the work is shared out. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/product/gemm.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum {
    MOST_ROWS = 64,
    MOST_DOTS = 16,
    LEAST_BYTES = 32 << 10,
    TILES_OF_ITEM = 4,
    SLAB = 16,
    AHEAD = 4,
    SHARES = 4
};

typedef struct plan {
    fac_epilogue e, none;
    fac_layout x, y, r;
    const fac_cpu *cpu;
    bool linear, biased, dots;
    int64_t M, N, K;           /* y is M x N */
    int64_t width, items;      /* linear: M in whole vectors, and groups of rows of w */
    size_t packed, per_thread; /* floats: of the small side, which is packed; scratch */
} plan;

typedef struct job {
    const plan *p;
    const float *x, *w, *b, *r;
    float *y, *packed, *scratch;
} job;

static float *scratch_of(const job *j, int thread) {
    return j->scratch + (size_t)thread * j->p->per_thread;
}

/* ---- linear ---- */

static void pack_x(void *arg, int panel, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    (void)thread;
    fac_gemm_pack_b(p->cpu->simd, j->x, 1, p->K, p->K, p->M, panel,
                    j->packed + panel * 2 * p->cpu->simd->lanes * p->K);
}

/* Some rows of w: their part of y^T, then transposed. */
static void rows_of_w(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_simd *s = p->cpu->simd;
    int64_t first = p->N * i / p->items, last = p->N * (i + 1) / p->items,
            tiles = fac_gemm_tiles(s, last - first);
    float *slab = scratch_of(j, thread), *sums = slab + TILES_OF_ITEM * s->rows * FAC_GEMM_DEPTH;
    float *edge = sums + TILES_OF_ITEM * s->rows * p->width;
    const fac_dots dots = { .w = j->w + first * p->K,
                            .x = j->x,
                            .w_row = p->K,
                            .x_row = p->K,
                            .n = p->K,
                            .rows = last - first,
                            .m = p->M,
                            .to = sums,
                            .to_row = p->width };
    const fac_gemm_job g = { .simd = s,
                             .M = last - first,
                             .N = p->width,
                             .K = p->K,
                             .y = sums,
                             .y_row = p->width,
                             .e = &p->none };
    if (p->dots) s->dots(&dots);
    for (int64_t k = 0, end; k < p->K && !p->dots; k = end) {
        end = k + FAC_GEMM_DEPTH < p->K ? k + FAC_GEMM_DEPTH : p->K;
        fac_gemm_pack_a(s, j->w + first * p->K, p->K, 1, g.M, 0, tiles, k, end, 1, slab);
        fac_gemm_slab(&g, (fac_gemm_block){ 0, tiles, 0, fac_gemm_panels(s, p->width), k, end },
                      slab, fac_gemm_padded(s, end - k), j->packed, edge);
    }
    for (int64_t m = 0; m < p->M; m++)
        for (int64_t o = first; o < last; o++) {
            float v = sums[(o - first) * p->width + m] + (j->b ? j->b[o] : 0);
            v = v < p->e.lo ? p->e.lo : v;
            j->y[m * p->N + o] = v > p->e.hi ? p->e.hi : v;
        }
}

/* ---- matmul ---- */

/* Rows k..end-1 of a panel of b to `to`; what comes after it is on its way meanwhile. */
static void bring(const plan *p, const float *b, int64_t n0, int64_t width, int64_t k, int64_t end,
                  float *to) {
    int64_t here = p->N - n0 < width ? p->N - n0 : width;
    for (; k < end; k++, to += width) {
        const float *from = b + k * p->N + n0;
        for (int64_t line = 0; line < width; line += 16)
            __builtin_prefetch(from + AHEAD * width + line, 0, 3);
        if (here == 32)
            memcpy(to, from, 32 * sizeof *to); /* without a call */
        else
            memcpy(to, from, (size_t)here * sizeof *to);
        if (here < width) memset(to + here, 0, (size_t)(width - here) * sizeof *to);
    }
}

/* Panels first..last-1 of y. */
static void columns(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_simd *s = p->cpu->simd;
    int64_t tiles = fac_gemm_tiles(s, p->M), wide = 2 * s->lanes;
    float *piece = scratch_of(j, thread), *edge = piece + SLAB * wide;
    for (int64_t k = 0, end; k < p->K; k = end) {
        end = k + SLAB < p->K ? k + SLAB : p->K;
        for (int64_t panel = first; panel < last; panel++) {
            int64_t n0 = panel * wide, left = p->N - n0, width = left > s->lanes ? wide : s->lanes;
            bring(p, j->w, n0, width, k, end, piece);
            const fac_gemm_job g = { .simd = s,
                                     .M = p->M,
                                     .N = left < width ? left : width,
                                     .K = end - k,
                                     .y = j->y + n0,
                                     .y_row = p->N,
                                     .r = k      ? j->y + n0
                                          : j->r ? j->r + n0
                                                 : NULL,
                                     .r_row = p->N,
                                     .e = end == p->K ? &p->e : &p->none };
            fac_gemm_slab(&g, (fac_gemm_block){ 0, tiles, 0, 1, 0, end - k }, j->packed + p->M * k,
                          fac_gemm_padded(s, end - k), piece, edge);
        }
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    const fac_simd *s = p->cpu->simd;
    const fac_pool *pool = &p->cpu->pool;
    job j = { p,
              fac_span_floats(in[0], &p->x),
              fac_span_packed(in[1]),
              p->biased ? fac_span_packed(in[2]) : NULL,
              p->e.residual >= 0 ? fac_span_floats(in[p->e.residual], &p->r) : NULL,
              fac_span_floats(out[0], &p->y),
              fac_span_packed(work),
              NULL };
    j.scratch = j.packed + p->packed;
    (void)d, (void)err;
    if (p->linear) {
        if (!p->dots) fac_parallel(pool, (int)fac_gemm_panels(s, p->M), pack_x, &j);
        fac_parallel(pool, (int)p->items, rows_of_w, &j);
        return FAC_OK;
    }
    for (int64_t k = 0; k < p->K; k += SLAB)
        fac_gemm_pack_a(s, j.x, p->K, 1, p->M, 0, fac_gemm_tiles(s, p->M), k,
                        k + SLAB < p->K ? k + SLAB : p->K, 1, j.packed + p->M * k);
    fac_parallel_ranges(pool, fac_gemm_panels(s, p->N), SHARES * pool->threads, columns, &j);
    return FAC_OK;
}

/* ---- offer and make ---- */

/* All but the layouts. */
static bool settle(plan *p, const fac_problem *problem, size_t *work) {
    const fac_simd *s = p->cpu->simd;
    const fac_dims *x = &problem->in[0].type.dims, *w = &problem->in[1].type.dims;
    for (int i = 0; i < problem->nin; i++)
        if (problem->in[i].type.dtype != FAC_F32 && problem->in[i].type.dtype != FAC_NONE)
            return false;
    p->linear = FAC_IS(problem->node, linear);
    p->biased = p->linear && problem->nin > 2 && problem->in[2].type.dtype != FAC_NONE;
    if (w->n != 2 || x->n < 2 || fac_dims_count(x) <= 0 || fac_dims_count(w) <= 0) return false;
    if (problem->in[1].time != FAC_RUN || fac_type_bytes(&problem->in[1].type) < LEAST_BYTES)
        return false;
    p->K = x->d[x->n - 1];
    p->N = w->d[!p->linear];
    p->M = fac_dims_count(x) / p->K;
    if (p->M > MOST_ROWS || !fac_cpu_epilogue(problem, s, &p->e)) return false;
    if (p->linear && (p->e.residual >= 0 || p->e.loops)) return false;
    p->none = (fac_epilogue){ .residual = -1, .lo = -INFINITY, .hi = INFINITY };

    int64_t tiles = fac_gemm_tiles(s, p->N);
    p->width = fac_gemm_padded(s, p->M);
    p->dots = p->linear && p->M <= MOST_DOTS;
    p->items = (tiles + TILES_OF_ITEM - 1) / TILES_OF_ITEM;
    if (p->items > INT_MAX) return false;
    p->per_thread = fac_gemm_edge(s) + (p->linear ? (size_t)(TILES_OF_ITEM * s->rows) *
                                                        (size_t)(FAC_GEMM_DEPTH + p->width)
                                                  : (size_t)(SLAB * 2 * s->lanes));
    size_t scratch;
    return fac_size_mul((size_t)p->width, (size_t)(p->K + SLAB), &p->packed) &&
           fac_size_mul(p->per_thread, (size_t)p->cpu->pool.threads, &scratch) &&
           fac_size_add(p->packed, scratch, work) && fac_size_mul(*work, sizeof(float), work);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    if (!settle(&q, p, &o->work)) return false;
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].type.dtype != FAC_NONE) fac_want_plain(&p->in[i]);
    for (int i = 1; i < p->nin; i++) p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
    fac_want_plain(&p->out[0]);
    /* the arithmetic hides behind the memory, or the other way round */
    double rows = (double)(q.linear && !q.dots ? q.width : q.M),
           weights = (double)q.N * (double)q.K;
    double products = fac_cpu_seconds(q.cpu, 2 * rows * weights, 0.7, 0);
    o->seconds = fac_cpu_seconds(q.cpu, 0, 1, 4 * (weights + (double)q.M * (double)(q.N + q.K)));
    if (o->seconds < products) o->seconds = products;
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
const fac_solver fac_cpu_linear_thin = { .name = "linear/thin",
                                         .op = &fac_op_linear,
                                         .rank = 230,
                                         .offer = offer,
                                         .make = make,
                                         .done = fac_solver_done,
                                         .run = run };
const fac_solver fac_cpu_matmul_thin = { .name = "matmul/thin",
                                         .op = &fac_op_matmul,
                                         .rank = 240,
                                         .offer = offer,
                                         .make = make,
                                         .done = fac_solver_done,
                                         .run = run };
