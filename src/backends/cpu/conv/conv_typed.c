/* conv2d/typed, conv3d/typed: convolutions of f64 without a body, as matrix products on plain
 * images.
 *
 * y[k][pixel] = sum over (c, t, r, s) of w[k][c t r s] columns[c t r s][pixel],  in each group and
 * image.  A thread takes a few panels of two vectors of pixels.  It makes a slab of their columns
 * at a time, which stays in its cache, and multiplies it with all rows of the weights; sums are
 * made in y, slab after slab.  Any groups, stride, dilation and padding. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/columns.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum { CHUNK = FAC_TYPED_CHUNK, SLAB = 384, MOST = 16, SHARES = 4 };

typedef struct plan {
    fac_conv_geom g;
    const fac_problem *problem;
    const fac_cpu *cpu;
    int64_t M, N, K; /* of one group and image: output channels, pixels, taps of all channels */
    int64_t wide, tiles, panels; /* pixels of a panel; of M; of N */
    int64_t together, parts;     /* panels of an item; items that the panels make */
    int64_t depth;               /* taps of a slab */
    size_t each, packed;         /* doubles of scratch of a thread; of all weights */
} plan;

typedef struct job {
    const plan *p;
    const double *x, *w, *b;
    double *y, *work;
} job;

static double *doubles(fac_span s) { return (double *)(void *)((char *)s.memory + s.at); }
static int64_t padded(int64_t n) { return (n + CHUNK - 1) / CHUNK * CHUNK; }
static int64_t row_of(const plan *p, int64_t tile) { return p->M * tile / p->tiles; }

static int64_t between(int64_t x, int64_t least, int64_t most) {
    if (x < least) return least;
    return x < most ? x : most;
}

/* ---- columns ---- */

/* One tap of n pixels in one row of y, from its column q on; x: the row that the tap sees, or NULL
 * in the padding. */
static void tap_row(const fac_conv_geom *g, const double *x, int64_t q, int64_t n, int64_t s,
                    double *to) {
    const fac_window w = fac_conv_window(g, 2);
    int64_t first = q, last = q;
    if (x) {
        fac_window_inside(&w, s, &first, &last);
        first = between(first, q, q + n);
        last = between(last, first, q + n);
        x += s * w.dilation - w.pad;
    }
    for (int64_t i = q; i < first; i++) to[i - q] = 0;
    if (w.stride == 1)
        for (int64_t i = first; i < last; i++) to[i - q] = x[i];
    else
        for (int64_t i = first; i < last; i++) to[i - q] = x[i * w.stride];
    for (int64_t i = last; i < q + n; i++) to[i - q] = 0;
}

/* Taps k0..k1-1 of pixels from..to-1: [tap][wide], zeros after the last pixel. */
static void columns(const plan *p, const double *x, int64_t from, int64_t to, int64_t k0,
                    int64_t k1, double *panel) {
    const fac_conv_geom *g = &p->g;
    const int64_t plane = g->D * g->H * g->W;
    for (int64_t k = k0; k < k1; k++, panel += p->wide) {
        const int64_t s = k % g->S, r = k / g->S % g->R, t = k / g->S / g->R % g->T;
        const double *image = x + k / (g->S * g->R * g->T) * plane;
        for (int64_t i = from, n; i < to; i += n) {
            const int64_t q = i % g->Q, row = i / g->Q;
            n = g->Q - q < to - i ? g->Q - q : to - i;
            const int64_t at = fac_input_row(g, row / g->P, row % g->P, t, r);
            tap_row(g, at < 0 ? NULL : image + at, q, n, s, panel + (i - from));
        }
        memset(panel + (to - from), 0, (size_t)(p->wide - (to - from)) * sizeof *panel);
    }
}

/* ---- products ---- */

/* Rows of one tile in one panel of y (`at`: its first number): terms k0..k1-1 of its sums. A panel
 * that is not full is made in `sums` and copied. */
static void tile(const job *j, double *at, const double *bias, int64_t rows, int64_t pixels,
                 int64_t k0, int64_t k1, const double *a, const double *b, double *sums) {
    const plan *p = j->p;
    const bool direct = pixels == p->wide;
    for (int64_t r = 0; r < rows && !direct && k0; r++)
        memcpy(sums + r * p->wide, at + r * p->N, (size_t)pixels * sizeof *sums);
    const fac_typed_tile t = { .a = a,
                               .b = b,
                               .y = direct ? at : sums,
                               .y_row = direct ? p->N : p->wide,
                               .depth = k1 - k0,
                               .rows = (int)rows,
                               .add = k0 > 0 };
    p->cpu->simd->typed->f64(&t);
    for (int64_t r = 0; r < rows && !direct; r++)
        memcpy(at + r * p->N, sums + r * p->wide, (size_t)pixels * sizeof *sums);
    for (int64_t r = 0; r < rows && bias && k1 == p->K; r++)
        for (int64_t i = 0; i < pixels; i++) at[r * p->N + i] += bias[r];
}

/* [image][group][part of the panels] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_conv_geom *g = &p->g;
    const int64_t part = i % p->parts, of = i / p->parts, group = of % g->groups;
    const int64_t p0 = part * p->together,
                  p1 = p0 + p->together < p->panels ? p0 + p->together : p->panels;
    double *sums = j->work + (size_t)thread * p->each,
           *panels = sums + p->cpu->simd->rows * p->wide;
    const double *x = j->x + of * (g->C / g->groups) * g->D * g->H * g->W;
    for (int64_t k0 = 0, k1; k0 < p->K; k0 = k1) {
        k1 = k0 + p->depth < p->K ? k0 + p->depth : p->K;
        const int64_t size = (k1 - k0) * p->wide;
        for (int64_t n = p0; n < p1; n++) {
            const int64_t end = (n + 1) * p->wide < p->N ? (n + 1) * p->wide : p->N;
            columns(p, x, n * p->wide, end, k0, k1, panels + (n - p0) * size);
        }
        const double *slab = j->w + (group * padded(p->K) + k0) * p->M;
        for (int64_t t = 0; t < p->tiles; t++) {
            const int64_t first = row_of(p, t), rows = row_of(p, t + 1) - first;
            double *y = j->y + (of * p->M + first) * p->N;
            const double *bias = j->b ? j->b + group * p->M + first : NULL;
            for (int64_t n = p0; n < p1; n++) {
                const int64_t left = p->N - n * p->wide;
                tile(j, y + n * p->wide, bias, rows, left < p->wide ? left : p->wide, k0, k1,
                     slab + first * padded(k1 - k0), panels + (n - p0) * size, sums);
            }
        }
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    const fac_problem *q = p->problem;
    (void)d, (void)err;
    job j = { p,    doubles(in[0]) + q->in[0].layout.offset,   doubles(in[1]),
              NULL, doubles(out[0]) + q->out[0].layout.offset, doubles(work) };
    if (q->in[2].type.dtype) j.b = doubles(in[2]) + q->in[2].layout.offset;
    fac_parallel(&p->cpu->pool, (int)(p->g.N * p->g.groups * p->parts), item, &j);
    return FAC_OK;
}

/* ---- the plan ---- */

static bool takes(const fac_problem *p) {
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].type.dtype != FAC_F64 && p->in[i].type.dtype != FAC_NONE) return false;
    return !p->node->body[0] && p->out[0].type.dtype == FAC_F64 &&
           fac_dims_count(&p->in[0].type.dims) > 0 && fac_dims_count(&p->in[1].type.dims) > 0 &&
           fac_dims_count(&p->out[0].type.dims) > 0;
}

static bool settle(plan *p) {
    const fac_conv_geom *g = &p->g;
    const fac_simd *s = p->cpu->simd;
    const int64_t images = g->N * g->groups, threads = p->cpu->pool.threads;
    p->M = g->K / g->groups;
    p->N = g->O * g->P * g->Q;
    p->K = g->C / g->groups * g->T * g->R * g->S;
    p->wide = 2 * s->lanes * (int64_t)sizeof(float) / (int64_t)sizeof(double);
    p->tiles = (p->M + s->rows - 1) / s->rows;
    p->panels = (p->N + p->wide - 1) / p->wide;
    const int64_t slabs = (p->K + SLAB - 1) / SLAB;
    p->depth = padded((p->K + slabs - 1) / slabs);
    const int64_t room = (int64_t)(p->cpu->l2 / 2 / sizeof(double)) / (p->depth * p->wide);
    p->together = between(room, 1, MOST);
    while (p->together > 1 &&
           images * ((p->panels + p->together - 1) / p->together) < SHARES * threads)
        p->together--;
    p->parts = (p->panels + p->together - 1) / p->together;
    p->each = (size_t)((p->together * p->depth + s->rows) * p->wide);
    if (images > INT_MAX / p->parts) return false;
    return fac_size_mul((size_t)g->K, (size_t)padded(p->K), &p->packed) &&
           p->packed <= SIZE_MAX / sizeof(double);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    if (!takes(p) || !fac_conv_geometry(p->node, &q.g) || !settle(&q)) return false;
    if (!fac_size_mul(q.each * sizeof(double), (size_t)q.cpu->pool.threads, &o->work)) return false;
    fac_want_plain(&p->in[0]);
    if (p->in[2].type.dtype) fac_want_plain(&p->in[2]);
    fac_want_plain(&p->out[0]);
    o->packed[1] = q.packed * sizeof(double);
    const double taps = (double)(q.g.N * q.g.groups) * (double)q.N * (double)q.K;
    o->seconds = fac_cpu_seconds(q.cpu, 2 * taps * (double)q.M, 0.3, 32 * taps);
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    q->problem = p;
    fac_conv_flatten(&q->g);
    *out = q;
    return FAC_OK;
}
static uint64_t pack_key(const void *plan_, int input) {
    const plan *p = plan_;
    return (uint64_t)input | (uint64_t)p->tiles << 8 | (uint64_t)p->g.groups << 36;
}

/* [group][slab][tile][tap / CHUNK][row][CHUNK], zeros after the last tap of a slab. */
static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *p = plan_;
    const double *w = doubles(from);
    double *packed = doubles(to);
    (void)d, (void)input, (void)err;
    memset(packed, 0, p->packed * sizeof *packed);
    for (int64_t group = 0; group < p->g.groups; group++, w += p->M * p->K)
        for (int64_t t = 0; t < p->tiles; t++)
            for (int64_t k = 0; k < p->K; k += CHUNK) {
                const int64_t first = row_of(p, t), rows = row_of(p, t + 1) - first;
                const int64_t k0 = k / p->depth * p->depth,
                              end = k0 + p->depth < p->K ? k0 + p->depth : p->K;
                double *y = packed + (group * padded(p->K) + k0) * p->M + first * padded(end - k0) +
                            (k - k0) * rows;
                for (int64_t r = 0; r < rows; r++)
                    memcpy(y + r * CHUNK, w + (first + r) * p->K + k,
                           (size_t)(end - k < CHUNK ? end - k : CHUNK) * sizeof *y);
            }
    return FAC_OK;
}

#define SOLVER(which)                                                                              \
    .name = #which "/typed", .op = &fac_op_##which, .offer = offer, .make = make,                  \
    .done = fac_solver_done, .pack_key = pack_key, .pack = pack, .run = run
const fac_solver fac_cpu_conv2d_typed = { SOLVER(conv2d), .rank = 192 };
const fac_solver fac_cpu_conv3d_typed = { SOLVER(conv3d), .rank = 194 };
