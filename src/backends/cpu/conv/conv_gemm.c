/* conv2d/gemm, conv3d/gemm: every convolution, as a matrix product on plain images.
 *
 * y[k][pixel] = sum over (c, t, r, s) of w[k][c t r s] columns[c t r s][pixel],  in each group and
 * image.  The matrix of columns (im2col: Chellapilla et al. 2006) is never whole: a thread makes a
 * few panels of 2 vectors of pixels in the packed form of gemm.h and multiplies them with all rows
 * of the weights while they are in its cache.  Any groups, stride, dilation, padding; f32. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/columns.h"
#include "backends/cpu/conv/conv_common.h"
#include "backends/cpu/product/gemm.h"
#include "cpu_solvers.h"
#include "base/clamp.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

typedef struct plan {
    fac_conv_geom g;
    fac_epilogue e;
    fac_layout x, b, y, r; /* all plain, but they may begin anywhere */
    const fac_cpu *cpu;
    bool pointwise;  /* 1 x 1, stride 1, no padding: columns are pixels as they lie           */
    int64_t M, N, K; /* of one group and image: output channels, pixels, taps of all channels */
    int64_t panels, together; /* panels of an image; of an item */
    int64_t parts, splits;    /* items that the panels make; shares that the rows are dealt in    */
    size_t per_thread; /* floats of scratch                                                     */
} plan;

typedef struct job {
    const plan *p;
    const float *x, *w, *b, *r;
    float *y, *work;
} job;

/* The same for a kernel that sees the image as one long row. */
static void pixels(const fac_conv_geom *g, const float *x, int64_t from, int64_t to, int width,
                   float *panel) {
    for (int64_t c = 0; c < g->C / g->groups; c++, x += g->W, panel += width) {
        memcpy(panel, x + from, (size_t)(to - from) * sizeof *panel);
        memset(panel + (to - from), 0, (size_t)(width - (to - from)) * sizeof *panel);
    }
}

/* Pixels of a panel that lie in one row (o, p) of y: n of them from its column q on. */
typedef struct piece {
    int64_t at, n, q, o, p;
} piece;

enum { WIDEST = 64, TAPS = 32 }; /* pixels of a panel; taps of a row whose edges are kept */

static int pieces_of(const fac_conv_geom *g, int64_t from, int64_t to, piece *all) {
    int n = 0;
    for (int64_t i = from; i < to; i += all[n++].n) {
        const int64_t q = i % g->Q, row = i / g->Q, left = g->Q - q;
        all[n] = (piece){ i - from, left < to - i ? left : to - i, q, row / g->P, row % g->P };
    }
    return n;
}

/* The packed panel of pixels from..to-1: [c][t][r][s][width].  Where pieces begin and which pixels
 * of a row a tap sees is worked out once for all channels. */
static void columns(const fac_conv_geom *g, const float *x, int64_t from, int64_t to, int width,
                    float *panel) {
    const int64_t C = g->C / g->groups, end = to - from;
    const fac_window w = fac_conv_window(g, 2);
    int64_t inside[TAPS][2];
    piece all[WIDEST];
    const int n = pieces_of(g, from, to, all);
    for (int64_t s = 0; s < g->S && s < TAPS; s++)
        fac_window_inside(&w, s, &inside[s][0], &inside[s][1]);
    for (int64_t tap = 0; tap < C * g->T * g->R; tap++, panel += g->S * width) {
        const float *image = x + tap / (g->T * g->R) * g->D * g->H * g->W;
        const int64_t t = tap / g->R % g->T, r = tap % g->R;
        for (int k = 0; k < n; k++) {
            const piece *e = &all[k];
            const int64_t at = fac_input_row(g, e->o, e->p, t, r);
            const float *row = at < 0 ? NULL : image + at;
            for (int64_t s = 0; s < g->S; s++) {
                float *y = panel + s * width + e->at;
                if (s < TAPS)
                    fac_tap_span(g, row, e->q, e->n, s, inside[s][0], inside[s][1], y);
                else
                    fac_tap_row(g, row, e->q, e->n, s, y);
            }
        }
        for (int64_t s = 0; s < g->S && end < width; s++)
            memset(panel + s * width + end, 0, (size_t)(width - end) * sizeof *panel);
    }
}

static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_conv_geom *g = &p->g;
    const fac_simd *s = p->cpu->simd;
    int64_t split = i % p->splits, part = i / p->splits % p->parts,
            group = i / p->splits / p->parts % g->groups;
    int64_t image = i / p->splits / p->parts / g->groups, wide = 2 * s->lanes;
    int64_t p0 = part * p->together,
            p1 = p0 + p->together < p->panels ? p0 + p->together : p->panels;
    float *panels = j->work + (size_t)thread * p->per_thread,
          *edge = panels + p->together * wide * p->K;
    const float *x = j->x + (image * g->groups + group) * (g->C / g->groups) * g->D * g->H * g->W;
    for (int64_t k = p0; k < p1; k++) {
        int64_t from = k * wide, to = from + wide < p->N ? from + wide : p->N;
        int width = to - from > s->lanes ? 2 * s->lanes : s->lanes;
        (p->pointwise ? pixels : columns)(g, x, from, to, width, panels + (k - p0) * wide * p->K);
    }
    int64_t at = (image * g->groups + group) * p->M * p->N, tiles = fac_gemm_tiles(s, p->M),
            depth = fac_gemm_padded(s, p->K);
    fac_gemm_job m = { .simd = s,
                       .M = p->M,
                       .N = p->N,
                       .K = p->K,
                       .y = j->y + at,
                       .y_row = p->N,
                       .row_bias = j->b ? j->b + group * p->M : NULL,
                       .r = j->r ? j->r + at : NULL,
                       .r_row = p->N,
                       .e = &p->e };
    for (int64_t k = 0; k < p->K; k += FAC_GEMM_DEPTH)
        for (int64_t t = tiles * split / p->splits; t < tiles * (split + 1) / p->splits; t++) {
            int64_t first = p->M * t / tiles, rows = p->M * (t + 1) / tiles - first;
            const float *w =
                j->w + (group * p->M + first) * depth + k * rows; /* after the slabs before it */
            int64_t end = k + FAC_GEMM_DEPTH < p->K ? k + FAC_GEMM_DEPTH : p->K;
            fac_gemm_slab(&m, (fac_gemm_block){ t, t + 1, p0, p1, k, end }, w, depth, panels, edge);
        }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { p,
              fac_span_floats(in[0], &p->x),
              fac_span_packed(in[1]),
              in[2].memory ? fac_span_floats(in[2], &p->b) : NULL,
              p->e.residual >= 0 ? fac_span_floats(in[p->e.residual], &p->r) : NULL,
              fac_span_floats(out[0], &p->y),
              fac_span_packed(work) };
    (void)d, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->g.N * p->g.groups * p->parts * p->splits), item, &j);
    return FAC_OK;
}

static bool settle(plan *p) {
    const fac_conv_geom *g = &p->g;
    const fac_simd *s = p->cpu->simd;
    int64_t threads = p->cpu->pool.threads, wide = 2 * s->lanes;
    p->M = g->K / g->groups;
    p->N = g->O * g->P * g->Q;
    p->K = g->C / g->groups * g->T * g->R * g->S;
    p->panels = fac_gemm_panels(s, p->N);
    /* as many panels as half the cache of a core takes, but items for all threads */
    int64_t room = (int64_t)(p->cpu->l2 / 2 / sizeof(float)) / (wide * p->K),
            images = g->N * g->groups;
    p->together = fac_clamp(room, 1, 8);
    while (p->together > 1 && images * ((p->panels + p->together - 1) / p->together) < 4 * threads)
        p->together--;
    p->parts = (p->panels + p->together - 1) / p->together;
    p->splits =
        images * p->parts >= threads ? 1 : (threads + images * p->parts - 1) / (images * p->parts);
    if (p->splits > fac_gemm_tiles(s, p->M)) p->splits = fac_gemm_tiles(s, p->M);
    size_t floats;
    if (images > INT_MAX / p->parts / p->splits) return false;
    if (!fac_size_mul((size_t)(p->together * wide), (size_t)p->K, &floats)) return false;
    return fac_size_add(floats, fac_gemm_edge(s), &p->per_thread);
}

/* Making the columns once: a run is a row of the image or a panel, whichever is shorter. */
static double columns_seconds(const plan *p) {
    const double element = p->g.stride[2] == 1 ? fac_cpu_speeds.column : fac_cpu_speeds.column_far;
    fac_conv_geom g = p->g;
    fac_conv_flatten(&g);
    const double wide = 2.0 * p->cpu->simd->lanes, width = (double)g.Q < wide ? (double)g.Q : wide;
    const double taps = (double)(g.N * g.groups) * (double)p->N * (double)p->K;
    return taps * (element + fac_cpu_speeds.column_run / width) / p->cpu->pool.threads;
}

static size_t packed_floats(const plan *p) {
    size_t n;
    bool fits = fac_size_mul((size_t)p->g.K, (size_t)fac_gemm_padded(p->cpu->simd, p->K), &n) &&
                n <= SIZE_MAX / sizeof(float);
    return fits ? n : 0;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    if (!fac_cpu_conv(d, p, &q.g, &q.e) || !settle(&q) || !packed_floats(&q)) return false;
    if (!fac_size_mul(q.per_thread * sizeof(float), (size_t)q.cpu->pool.threads, &o->work))
        return false;
    fac_want_plain(&p->in[0]);
    if (p->in[2].type.dtype) fac_want_plain(&p->in[2]);
    fac_want_plain(&p->out[0]);
    if (q.e.residual >= 0) fac_want_plain(&p->in[q.e.residual]);
    o->packed[1] = packed_floats(&q) * sizeof(float);
    double taps = (double)(q.g.N * q.g.groups) * (double)q.N * (double)q.K;
    double full = (double)q.M / (double)(fac_gemm_tiles(q.cpu->simd, q.M) *
                                         q.cpu->simd->rows); /* of the rows of tiles */
    o->seconds =
        fac_cpu_seconds(q.cpu, 2 * taps * (double)q.M, 0.6 * (0.3 + 0.7 * full), 16 * taps) +
        columns_seconds(&q);
    *FAC_DRAFT(o, plan) = q;
    return true;
}

/* Of an image that is one row: output q sees pixel q alone. */
static bool is_pointwise(const fac_conv_geom *g) {
    const bool one_tap = g->T * g->R * g->S == 1, one_row = g->D * g->H == 1 && g->O * g->P == 1;
    const bool padded = g->pad[0] || g->pad[1] || g->pad[2];
    return one_tap && one_row && !padded && g->W == g->Q && (g->stride[2] == 1 || g->W == 1);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    fac_conv_flatten(&q->g);
    q->pointwise = is_pointwise(&q->g);
    q->x = p->in[0].layout;
    q->b = p->in[2].layout;
    q->y = p->out[0].layout;
    if (q->e.residual >= 0) q->r = p->in[q->e.residual].layout;
    *out = q;
    return FAC_OK;
}
static uint64_t pack_key(const void *plan_, int input) {
    const plan *p = plan_;
    return (uint64_t)input | (uint64_t)p->cpu->simd->lanes << 8 | (uint64_t)p->g.groups << 16;
}
static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *p = plan_;
    const fac_simd *s = p->cpu->simd;
    const float *w = fac_span_packed(from);
    int64_t depth = fac_gemm_padded(s, p->K);
    (void)d, (void)input, (void)err;
    for (int64_t group = 0; group < p->g.groups; group++, w += p->M * p->K)
        fac_gemm_pack_a(s, w, p->K, 1, p->M, 0, fac_gemm_tiles(s, p->M), 0, p->K, 1,
                        fac_span_packed(to) + group * p->M * depth);
    return FAC_OK;
}

const fac_solver fac_cpu_conv2d_gemm = { .name = "conv2d/gemm",
                                         .op = &fac_op_conv2d,
                                         .rank = 180,
                                         .offer = offer,
                                         .make = make,
                                         .done = fac_solver_done,
                                         .pack_key = pack_key,
                                         .pack = pack,
                                         .run = run };
const fac_solver fac_cpu_conv3d_gemm = { .name = "conv3d/gemm",
                                         .op = &fac_op_conv3d,
                                         .rank = 190,
                                         .offer = offer,
                                         .make = make,
                                         .done = fac_solver_done,
                                         .pack_key = pack_key,
                                         .pack = pack,
                                         .run = run };
