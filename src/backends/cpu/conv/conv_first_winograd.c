/* conv2d/first_winograd: the first layer of a network as conv2d/first has it, with about half its
 * multiplications, by Winograd's transforms along x (simd/conv/winograd_row.c): kernels of 3
 * columns at stride 1, of 7 at stride 2 and of 11 at stride 4.
 *
 *   V[c][row][point][tile] = rows of x transformed
 *   M[point][k][tile] = sum over c, r of U[k][point][c][r] V     y = M back
 *
 * A thread transforms the rows that a band of output rows looks at into its own V, which stays in
 * its second cache; M of one tile of registers stays in the first.  Any number of rows of the
 * kernel, any stride and dilation of them. The largest error, relative to the largest output, is at
 * most 3 times that of conv2d/first (measured: 0.4 to 2.1 times; a test holds it to the rule); at
 * the highest precision it makes no offer.  Inputs that are not finite spread to the whole tile of
 * 4 outputs as NaN.  U is made in f64. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/shared_cache.h"
#include "backends/cpu/conv/conv_common.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum { OUT = FAC_WINOGRAD_ROW_OUT, ROWS_OF_BAND = 8 };

typedef struct plan {
    fac_conv_geom g;
    fac_epilogue e;
    fac_layout x, y;
    const fac_cpu *cpu;
    const fac_winograd_row *kind;
    bool biased;
    int points;           /* of all phases                                                     */
    int64_t tiles, width; /* in a row; what they take, in whole vectors                        */
    int64_t bands, rows;  /* of an image; of x that a band looks at, at most                   */
    int64_t pixels;       /* of a row with its padding, of all tiles and one more              */
    int64_t v_plane, m_point, column; /* floats from one to the next                           */
    size_t per_thread; /* floats: V, M, a row, the same by columns                          */
} plan;

typedef struct job {
    const plan *p;
    const float *x, *w, *b;
    float *y, *work;
    bool past;
} job; /* past: y goes past the caches */

static int taps_of_phase(const fac_winograd_row *k, int phase) {
    return (k->taps - phase + k->stride - 1) / k->stride;
}

/* Floats of V, of M, of a padded row: they lie one after the other. */
static int64_t v_floats(const plan *p) { return p->g.C * p->v_plane; }
static int64_t m_floats(const plan *p) { return p->points * p->m_point; }
static int64_t row_floats(const plan *p) { return (p->pixels + 15) / 16 * 16; }

/* V of row `row` of x, which may lie outside of the image. */
static void transform(const job *j, int64_t plane, int64_t row, float *v, float *padded) {
    const plan *p = j->p;
    const fac_conv_geom *g = &p->g;
    float *columns = padded + row_floats(p);
    const int64_t left = g->pad[2] < p->pixels ? g->pad[2] : p->pixels,
                  n = g->W < p->pixels - left ? g->W : p->pixels - left;
    if (row < 0 || row >= g->H) {
        memset(v, 0, (size_t)(p->points * p->width) * sizeof *v);
        return;
    }
    memset(padded, 0, (size_t)left * sizeof *padded);
    memcpy(padded + left, j->x + (plane * g->H + row) * g->W, (size_t)n * sizeof *padded);
    memset(padded + left + n, 0, (size_t)(p->pixels - left - n) * sizeof *padded);
    p->cpu->simd->transpose(padded, OUT * g->stride[2], columns, p->column, p->tiles + 1,
                            OUT * g->stride[2]);
    p->kind->in(columns, p->column, v, p->width, p->tiles);
}

/* A chunk of output channels of one row of outputs. */
static void do_row(const job *j, const float *v, float *m, int64_t image, int64_t chunk,
                   int64_t row) {
    const plan *p = j->p;
    const fac_conv_geom *g = &p->g;
    const fac_simd *s = p->cpu->simd;
    const int64_t lanes = s->lanes, groups = (p->tiles + s->rows - 1) / s->rows;
    const int n = fac_chunk_vectors(g->K, s->lanes, chunk);
    float *y = j->y + image * p->y.stride[0] + 2 * chunk * p->y.stride[1] + row * p->y.stride[2];
    fac_winograd_row_sums t = { .w = j->w + chunk * 2 * lanes * p->points * g->C * g->R,
                                .v_point = p->width,
                                .v_plane = p->v_plane,
                                .v_row = g->dilation[1] * p->points * p->width,
                                .points = p->points,
                                .channels = (int)g->C,
                                .rows = (int)g->R,
                                .m = m,
                                .m_point = p->m_point,
                                .y_vector = j->past ? 0 : p->y.stride[1] };
    for (int64_t i = 0; i < groups; i++) {
        const int64_t first = p->tiles * i / groups, tiles = p->tiles * (i + 1) / groups - first,
                      q = first * OUT;
        const int64_t outputs = g->Q - q < tiles * OUT ? g->Q - q : tiles * OUT;
        t.v = v + first;
        t.y = j->past ? m : y + q * lanes;
        s->winograd_rows->sums[tiles][n - 1](&t);
        for (int k = 0; k < n; k++) {
            fac_winograd_row_out o = { .m = m + k * tiles * lanes,
                                       .m_point = p->m_point,
                                       .outputs = outputs,
                                       .past = j->past,
                                       .lo = p->e.lo,
                                       .hi = p->e.hi,
                                       .bias = j->b ? j->b + (2 * chunk + k) * lanes : NULL,
                                       .y = y + q * lanes + k * p->y.stride[1] };
            p->kind->out(&o);
            if (p->e.loops) fac_epilogue_run(&p->e, o.y, (size_t)(outputs * lanes));
        }
    }
}

static void band(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_conv_geom *g = &p->g;
    const int64_t image = i / p->bands, first = g->P * (i % p->bands) / p->bands,
                  last = g->P * (i % p->bands + 1) / p->bands;
    const int64_t rows = (last - first - 1) * g->stride[1] + (g->R - 1) * g->dilation[1] + 1;
    const int64_t row = p->points * p->width;
    float *v = j->work + (size_t)thread * p->per_thread, *m = v + v_floats(p),
          *padded = m + m_floats(p);
    for (int64_t c = 0; c < g->C; c++)
        for (int64_t k = 0; k < rows; k++)
            transform(j, image * g->C + c, first * g->stride[1] - g->pad[1] + k,
                      v + c * p->v_plane + k * row, padded);
    for (int64_t chunk = 0; chunk < fac_chunks(g->K, p->cpu->simd->lanes); chunk++)
        for (int64_t k = first; k < last; k++)
            do_row(j, v + (k - first) * g->stride[1] * row, m, image, chunk, k);
    if (j->past) fac_streams_end();
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { .p = p,
              .x = fac_span_floats(in[0], &p->x),
              .w = fac_span_packed(in[1]),
              .b = p->biased ? fac_span_packed(in[2]) : NULL,
              .y = fac_span_floats(out[0], &p->y),
              .work = fac_span_packed(work) };
    (void)d, (void)err;
    j.past = !p->e.loops && fac_cpu_writes_past(p->cpu, j.y);
    fac_parallel(&p->cpu->pool, (int)(p->g.N * p->bands), band, &j);
    return FAC_OK;
}

/* ---- offer and make ---- */

/* The kind and all sizes; false where there is none, or they do not fit. */
static bool settle(plan *p) {
    const fac_conv_geom *g = &p->g;
    const fac_simd *s = p->cpu->simd;
    const int64_t lanes = s->lanes, threads = p->cpu->pool.threads;
    for (int k = 0; k < FAC_WINOGRAD_ROW_KINDS; k++) {
        const fac_winograd_row *kind = &s->winograd_rows->kind[k];
        if (g->S == kind->taps && g->stride[2] == kind->stride) p->kind = kind;
    }
    if (!p->kind || g->dilation[2] != 1 || g->Q > INT_MAX / 64 || g->P > INT_MAX / g->N)
        return false;
    for (int k = 0; k < p->kind->stride; k++) p->points += taps_of_phase(p->kind, k) + OUT - 1;
    p->tiles = (g->Q + OUT - 1) / OUT;
    p->width = (p->tiles + lanes - 1) / lanes * lanes;
    p->column = p->width + lanes;
    p->pixels = OUT * g->stride[2] * (p->tiles + 1);
    p->bands = (g->P + ROWS_OF_BAND - 1) / ROWS_OF_BAND;
    if (g->N == 1 && p->bands % threads)
        p->bands += threads - p->bands % threads; /* as many for each thread */
    if (p->bands > g->P) p->bands = g->P;
    const int64_t most = (g->P + p->bands - 1) / p->bands;
    size_t v;
    p->rows = (most - 1) * g->stride[1] + (g->R - 1) * g->dilation[1] + 1;
    if (!fac_size_mul((size_t)p->rows, (size_t)(p->points * p->width), &v) ||
        v > SIZE_MAX / 64 / FAC_FEW_PLANES)
        return false;
    p->v_plane = (int64_t)v;
    p->m_point = (2 * s->rows | 1) *
                 lanes; /* an odd number of vectors: points on different sets of the cache */
    p->per_thread =
        (size_t)(v_floats(p) + m_floats(p) + row_floats(p) + OUT * g->stride[2] * p->column + 15) /
        16 * 16;
    return true;
}

static size_t packed_floats(const plan *p) {
    size_t n = fac_bias_bytes(p->g.K, p->cpu->simd->lanes) / sizeof(float);
    bool fits =
        fac_size_mul(n, (size_t)(p->g.C * p->points), &n) && fac_size_mul(n, (size_t)p->g.R, &n);
    return fits && n < SIZE_MAX / sizeof(float) ? n : 0;
}

/* Products; sums to and from the first cache, a tile and vector; the way in, a vector of tiles of a
 * row.  Cycles are measured. */
static double seconds_of(const plan *p, double packed) {
    const fac_conv_geom *g = &p->g;
    const fac_simd *s = p->cpu->simd;
    const int lanes = s->lanes, squares = (OUT * p->kind->stride + lanes - 1) / lanes;
    const double tiles = (double)(g->N * g->P) * (double)p->tiles,
                 vectors = (double)((g->K + lanes - 1) / lanes);
    const double in_rows =
        (double)(g->N * g->C) * (double)(p->bands * p->rows) * (double)(p->width / lanes);
    const double cycles =
        tiles * vectors * (2 * p->points + 8) + in_rows * (6 * lanes * squares + 8 * p->points);
    const int64_t groups = (p->tiles + s->rows - 1) / s->rows;
    const double sums = (double)p->tiles / (double)groups * fac_chunk_vectors(g->K, lanes, 0),
                 full = sums < 10 ? sums / 10 : 1;
    const double image = 4.0 * (double)(g->N * (g->C * g->H * g->W + g->K * g->P * g->Q));
    return fac_cpu_seconds(p->cpu, 2 * packed * tiles + 4 * lanes * 0.85 * full * cycles,
                           0.85 * full, image);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    const fac_conv_geom *g = &q.g;
    if (p->precision == FAC_PRECISION_HIGHEST || !fac_cpu_conv(d, p, &q.g, &q.e)) return false;
    if (g->rank != 2 || g->groups != 1 || g->C > FAC_FEW_PLANES || q.e.residual >= 0 || !settle(&q))
        return false;
    const size_t packed = packed_floats(&q);
    if (!packed ||
        !fac_size_mul(q.per_thread, (size_t)q.cpu->pool.threads * sizeof(float), &o->work))
        return false;
    fac_want_plain(&p->in[0]);
    fac_want_blocked_out(q.cpu, &p->out[0]);
    o->packed[1] = packed * sizeof(float);
    if (fac_conv_biased(p)) o->packed[2] = fac_bias_bytes(g->K, q.cpu->simd->lanes);
    o->seconds = seconds_of(&q, (double)packed) + fac_conv_pack_seconds(q.cpu, p, (double)packed);
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    q->biased = fac_conv_biased(p);
    q->x = p->in[0].layout;
    q->y = p->out[0].layout;
    *out = q;
    return FAC_OK;
}
/* ---- weights ---- */

typedef double filters[FAC_WINOGRAD_ROW_POINTS][FAC_WINOGRAD_ROW_OUT];

/* G of the points of simd/conv/winograd_row.c: row i is 1, p_i, p_i^2 ... divided by prod over j !=
 * i of (p_i - p_j), the last one 0 ... 0 1. */
static void filters_of(int taps, filters G) {
    static const double two[] = { 0, 0.75, -0.75, 1.5 };
    static const double three[] = { 0, 0.70710678118654752, -0.70710678118654752,
                                    1.4142135623730951, -1.4142135623730951 };
    static const double four[] = { 0, 1, -1, 0.5, -0.5, -2 };
    const double *p = four;
    if (taps == 2) p = two;
    if (taps == 3) p = three;
    const int n = taps + OUT - 1;
    for (int i = 0; i < n; i++) {
        double below = 1, power = 1;
        for (int j = 0; j < n - 1 && i < n - 1; j++)
            if (j != i) below *= p[i] - p[j];
        for (int k = 0; k < taps; k++, power *= i < n - 1 ? p[i] : 0)
            G[i][k] = i < n - 1 ? power / below : k == taps - 1;
    }
}

typedef struct packing {
    const plan *p;
    const float *w;
    float *to;
} packing;

/* K, C, R, S -> [chunk][point][C][R][vectors x lanes]: one chunk. */
static void pack_chunk(void *arg, int chunk, int thread) {
    const packing *a = arg;
    const plan *p = a->p;
    const fac_conv_geom *g = &p->g;
    const int lanes = p->cpu->simd->lanes, stride = p->kind->stride,
              width = lanes * fac_chunk_vectors(g->K, lanes, chunk);
    const fac_conv_weights w = fac_conv_weights_of(g, false, a->w, 0);
    float *to = a->to + (int64_t)chunk * 2 * lanes * p->points * g->C * g->R;
    (void)thread;
    for (int phase = 0; phase < stride; phase++) {
        const int taps = taps_of_phase(p->kind, phase);
        filters G;
        filters_of(taps, G);
        for (int i = 0; i < taps + OUT - 1; i++)
            for (int64_t row = 0; row < g->C * g->R; row++, to += width)
                for (int k = 0; k < width; k++) {
                    const int64_t channel = (int64_t)chunk * 2 * lanes + k;
                    double sum = 0;
                    for (int t = 0; t < taps && channel < g->K; t++)
                        sum +=
                            G[i][t] * (double)w.w[channel * w.k + row * g->S + phase + t * stride];
                    to[k] = (float)sum;
                }
    }
}

static uint64_t pack_key(const void *plan_, int input) {
    const plan *p = plan_;
    return (uint64_t)input | (uint64_t)p->cpu->simd->lanes << 8 | (uint64_t)p->kind->stride << 16;
}
static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *p = plan_;
    packing a = { p, fac_span_packed(from), fac_span_packed(to) };
    (void)d, (void)err;
    if (input == 2)
        fac_pack_bias(a.w, p->g.K, p->cpu->simd->lanes, a.to);
    else
        fac_parallel(&p->cpu->pool, (int)fac_chunks(p->g.K, p->cpu->simd->lanes), pack_chunk, &a);
    return FAC_OK;
}

const fac_solver fac_cpu_conv_first_winograd = { .name = "conv2d/first_winograd",
                                                 .op = &fac_op_conv2d,
                                                 .rank = 130,
                                                 .offer = offer,
                                                 .make = make,
                                                 .done = fac_solver_done,
                                                 .pack_key = pack_key,
                                                 .pack = pack,
                                                 .run = run };
