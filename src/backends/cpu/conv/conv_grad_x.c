/* conv2d_grad_x/gemm, conv3d_grad_x/gemm: gradients of the inputs of convolutions as matrix
 * products whose results are added to where the columns of the forward pass would have been read
 * (col2im).
 *
 * columns[tap][pixel] = sum over k of w[k][tap] dy[k][pixel];  dx[c][place of (tap, pixel)] +=
 * columns[tap][pixel] An item owns some channels of one image, so nothing is added by two threads,
 * and the order of the sums is that of the pixels whatever the number of threads.  Any groups,
 * stride, dilation, padding; f32. */
#include <limits.h>
#include <math.h>
#include <string.h>
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

enum { PANELS_OF_STEP = 2 };

typedef struct plan {
    fac_conv_geom g;
    fac_layout dy, w, dx;
    const fac_cpu *cpu;
    fac_epilogue none;
    int64_t K, N, taps; /* of one group: output channels; pixels of an image; taps of one channel */
    int64_t depth;      /* K in whole vectors */
    int64_t shares;     /* of the channels of a group */
    size_t packed, per_thread; /* floats: the weights of a group; scratch */
} plan;

typedef struct job {
    const plan *p;
    const float *dy, *w;
    float *dx, *a, *scratch;
} job;

/* Channels first..last-1 of share i. */
static void share_of(const plan *p, int64_t i, int64_t *first, int64_t *last) {
    int64_t C = p->g.C / p->g.groups;
    *first = C * i / p->shares;
    *last = C * (i + 1) / p->shares;
}

/* [group][share]: the weights transposed, one matrix for each share, as it is what an item
 * multiplies with. */
static void pack(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_simd *s = p->cpu->simd;
    int64_t group = i / p->shares, first, last, row = p->g.C / p->g.groups * p->taps;
    (void)thread;
    share_of(p, i % p->shares, &first, &last);
    int64_t M = (last - first) * p->taps;
    fac_gemm_pack_a(s, j->w + group * p->K * row + first * p->taps, 1, row, M, 0,
                    fac_gemm_tiles(s, M), 0, p->K, 1,
                    j->a + group * (int64_t)p->packed + first * p->taps * p->depth);
}

/* Adds rows of columns (`width` pixels each, of which from..to-1 are real) to the channels at dx.
 */
static void add_columns(const plan *p, const float *columns, int64_t width, int64_t from,
                        int64_t to, int64_t channels, float *dx) {
    const fac_conv_geom *g = &p->g;
    for (int64_t c = 0; c < channels; c++, dx += g->D * g->H * g->W)
        for (int64_t t = 0; t < g->T; t++)
            for (int64_t r = 0; r < g->R; r++)
                for (int64_t s = 0; s < g->S; s++, columns += width)
                    for (int64_t i = from, n; i < to; i += n) {
                        int64_t q = i % g->Q, line = i / g->Q,
                                at = fac_input_row(g, line / g->P, line % g->P, t, r);
                        n = g->Q - q < to - i ? g->Q - q : to - i;
                        fac_tap_row_add(g, at < 0 ? NULL : dx + at, q, n, s, columns + (i - from));
                    }
}

/* [image][group][share] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_conv_geom *g = &p->g;
    const fac_simd *s = p->cpu->simd;
    int64_t group = i / p->shares % g->groups, image = i / p->shares / g->groups, first, last;
    int64_t step = PANELS_OF_STEP * 2 * s->lanes;
    share_of(p, i % p->shares, &first, &last);
    int64_t M = (last - first) * p->taps, tiles = fac_gemm_tiles(s, M), plane = g->D * g->H * g->W;
    const float *dy = j->dy + (image * g->K + group * p->K) * p->N;
    const float *a = j->a + group * (int64_t)p->packed + first * p->taps * p->depth;
    float *dx = j->dx + (image * g->C + group * (g->C / g->groups) + first) * plane;
    float *b = j->scratch + (size_t)thread * p->per_thread, *edge = b + step * p->K,
          *columns = edge + fac_gemm_edge(s);
    memset(dx, 0, (size_t)((last - first) * plane) * sizeof *dx);
    for (int64_t from = 0; from < p->N; from += step) {
        int64_t n = p->N - from < step ? p->N - from : step, panels = fac_gemm_panels(s, n);
        for (int64_t k = 0; k < panels; k++)
            fac_gemm_pack_b(s, dy + from, p->N, 1, p->K, n, k, b + k * 2 * s->lanes * p->K);
        fac_gemm_job m = {
            .simd = s, .M = M, .N = n, .K = p->K, .y = columns, .y_row = step, .e = &p->none
        };
        for (int64_t k = 0; k < p->K; k += FAC_GEMM_DEPTH)
            for (int64_t t = 0; t < tiles; t++) {
                int64_t m0 = M * t / tiles, rows = M * (t + 1) / tiles - m0;
                int64_t end = k + FAC_GEMM_DEPTH < p->K ? k + FAC_GEMM_DEPTH : p->K;
                fac_gemm_slab(&m, (fac_gemm_block){ t, t + 1, 0, panels, k, end },
                              a + m0 * p->depth + k * rows, p->depth, b, edge);
            }
        add_columns(p, columns, step, from, from + n, last - first, dx);
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    float *a = fac_span_packed(work), *scratch = a + (size_t)p->g.groups * p->packed;
    job j = { p,
              fac_span_floats(in[0], &p->dy),
              fac_span_floats(in[1], &p->w),
              fac_span_floats(out[0], &p->dx),
              a,
              scratch };
    (void)d, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->g.groups * p->shares), pack, &j);
    fac_parallel(&p->cpu->pool, (int)(p->g.N * p->g.groups * p->shares), item, &j);
    return FAC_OK;
}

static bool settle(plan *p, const fac_problem *problem, size_t *work) {
    const fac_simd *s = p->cpu->simd;
    fac_conv_geom *g = &p->g;
    if (!fac_cpu_conv_grad(problem, g)) return false;
    fac_conv_flatten(g);
    p->none = (fac_epilogue){ .residual = -1, .lo = -INFINITY, .hi = INFINITY };
    p->K = g->K / g->groups;
    p->N = g->O * g->P * g->Q;
    p->taps = g->T * g->R * g->S;
    p->depth = fac_gemm_padded(s, p->K);
    int64_t C = g->C / g->groups, step = PANELS_OF_STEP * 2 * s->lanes, images = g->N * g->groups,
            threads = p->cpu->pool.threads;
    /* the columns of a share take half the cache of a core; and there is work for all threads */
    int64_t room = (int64_t)(p->cpu->l2 / 2 / sizeof(float)) / (step * p->taps);
    p->shares = room < 1 ? C : (C + room - 1) / room;
    if (images * p->shares < 2 * threads) p->shares = (2 * threads + images - 1) / images;
    if (p->shares > C) p->shares = C;
    if (images > INT_MAX / p->shares) return false;
    size_t columns, all, each;
    return fac_size_mul((size_t)((C + p->shares - 1) / p->shares * p->taps), (size_t)step,
                        &columns) &&
           fac_size_add(columns, (size_t)(step * p->K) + fac_gemm_edge(s), &p->per_thread) &&
           fac_size_mul((size_t)(C * p->taps), (size_t)p->depth, &p->packed) &&
           fac_size_mul(p->packed, (size_t)g->groups, &all) &&
           fac_size_mul(p->per_thread, (size_t)threads, &each) && fac_size_add(all, each, &all) &&
           fac_size_mul(all, sizeof(float), work);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    if (!settle(&q, p, &o->work)) return false;
    fac_want_plain(&p->in[0]);
    fac_want_plain(&p->in[1]);
    fac_want_plain(&p->out[0]);
    double columns = (double)q.g.N * (double)q.g.C * (double)q.taps * (double)q.N;
    /* rows of columns are short, so adding them costs more than the memory that it moves */
    o->seconds = fac_cpu_seconds(q.cpu, 2 * columns * (double)q.K, 0.6, 60 * columns);
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    q->dy = p->in[0].layout;
    q->w = p->in[1].layout;
    q->dx = p->out[0].layout;
    *out = q;
    return FAC_OK;
}
const fac_solver fac_cpu_conv2d_grad_x = { .name = "conv2d_grad_x/gemm",
                                           .op = &fac_op_conv2d_grad_x,
                                           .rank = 550,
                                           .offer = offer,
                                           .make = make,
                                           .done = fac_solver_done,
                                           .run = run };
const fac_solver fac_cpu_conv3d_grad_x = { .name = "conv3d_grad_x/gemm",
                                           .op = &fac_op_conv3d_grad_x,
                                           .rank = 570,
                                           .offer = offer,
                                           .make = make,
                                           .done = fac_solver_done,
                                           .run = run };
