/* conv2d/first: the first layer of a network, 1 to 4 planar input channels (an image as it was
 * loaded) to blocked channels.
 *
 * Blocks of channels would be mostly empty here, so x stays planar: each (c, r, s) is one broadcast
 * of a pixel against 2 vectors of output channels, in the same register tile as conv2d/direct.
 * Unless there is no padding, a thread copies the rows that its outputs look at, with zeros around
 * them, into its own work memory: what another core has just written would come slowly. Any kernel,
 * stride, dilation, padding.  f32, as accurate as the textbook loop. */
#include <limits.h>
#include "backends/draft.h"
#include "backends/cpu/conv/conv_common.h"
#include "backends/cpu/device/padded.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum { ROWS_OF_ITEM = 4 };

typedef struct plan {
    fac_conv_geom g;
    fac_epilogue e;
    fac_layout x, y, r;
    const fac_cpu *cpu;
    fac_padded padded; /* what the tiles read                         */
    int64_t items;     /* groups of output rows in an image           */
    int64_t rows;      /* of x with its padding, that a group reads   */
    size_t per_thread; /* floats of such rows                         */
} plan;

typedef struct job {
    const plan *p;
    const float *x, *w, *b, *r;
    float *y, *work;
} job;

/* x: the first row that is looked at, of planes that are x_block apart. */
static void do_row(const job *j, const float *x, int64_t x_block, int64_t image, int64_t chunk,
                   int64_t row) {
    const plan *p = j->p;
    const fac_conv_geom *g = &p->g;
    const fac_simd *simd = p->cpu->simd;
    int lanes = simd->lanes, n = fac_chunk_vectors(g->K, lanes, chunk);
    fac_conv_tile t = { .x_pixel = g->stride[2],
                        .x_block = x_block,
                        .x_row = g->dilation[1] * p->padded.row,
                        .x_column = g->dilation[2],
                        .channels = (int)g->C,
                        .R = (int)g->R,
                        .S = (int)g->S,
                        .w = fac_conv_chunk(g, lanes, j->w, 0, chunk),
                        .bias = j->b ? j->b + chunk * 2 * lanes : NULL,
                        .y_pixel = lanes,
                        .y_vector = p->y.stride[1],
                        .r_pixel = lanes,
                        .r_vector = p->r.stride[1],
                        .lo = p->e.lo,
                        .hi = p->e.hi };
    float *y = j->y + image * p->y.stride[0] + 2 * chunk * p->y.stride[1] + row * p->y.stride[2];
    const float *r =
        j->r ? j->r + image * p->r.stride[0] + 2 * chunk * p->r.stride[1] + row * p->r.stride[2]
             : NULL;
    int64_t tiles = (g->Q + simd->rows - 1) / simd->rows;
    for (int64_t i = 0; i < tiles; i++) {
        int64_t q = g->Q * i / tiles;
        int m = (int)(g->Q * (i + 1) / tiles - q), half = (m + 1) / 2;
        t.x0 = x + q * t.x_pixel;
        t.x1 = t.x0 + half * t.x_pixel;
        t.y0 = y + q * lanes;
        t.y1 = t.y0 + half * lanes;
        if (r) {
            t.r0 = r + q * lanes;
            t.r1 = t.r0 + half * lanes;
        }
        simd->tile[FAC_TILE_PLANAR].of[m][n - 1](&t);
        for (int k = 0; k < n && p->e.loops; k++)
            fac_epilogue_run(&p->e, t.y0 + k * t.y_vector, (size_t)(m * lanes));
    }
}

static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_conv_geom *g = &p->g;
    const int64_t image = i / p->items, first = i % p->items * ROWS_OF_ITEM,
                  top = first * g->stride[1];
    const int64_t last = first + ROWS_OF_ITEM < g->P ? first + ROWS_OF_ITEM : g->P;
    const float *x = j->x + image * g->C * p->padded.plane + top * p->padded.row;
    int64_t x_block = p->padded.plane;
    if (p->padded.needed) {
        float *to = j->work + (size_t)thread * p->per_thread;
        const int64_t rows = p->rows < p->padded.height - top ? p->rows : p->padded.height - top;
        x_block = p->rows * p->padded.row;
        for (int64_t c = 0; c < g->C; c++)
            for (int64_t row = 0; row < rows; row++)
                fac_padded_row(g, &p->padded, j->x, image * g->C + c, top + row,
                               to + c * x_block + row * p->padded.row);
        x = to;
    }
    for (int64_t k = 0; k < fac_chunks(g->K, p->cpu->simd->lanes); k++)
        for (int64_t row = first; row < last; row++)
            do_row(j, x + (row - first) * g->stride[1] * p->padded.row, x_block, image, k, row);
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { p,
              fac_span_floats(in[0], &p->x),
              fac_span_packed(in[1]),
              fac_span_packed(in[2]),
              p->e.residual >= 0 ? fac_span_floats(in[p->e.residual], &p->r) : NULL,
              fac_span_floats(out[0], &p->y),
              fac_span_packed(work) };
    (void)d, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->g.N * p->items), item, &j);
    return FAC_OK;
}

/* The schedule, and bytes of work; false when they do not fit. */
static bool settle(plan *p, size_t *work) {
    const fac_conv_geom *g = &p->g;
    size_t copy;
    p->padded = fac_padded_of(g);
    p->items = (g->P + ROWS_OF_ITEM - 1) / ROWS_OF_ITEM;
    p->rows = (ROWS_OF_ITEM - 1) * g->stride[1] + (g->R - 1) * g->dilation[1] + 1;
    if (p->rows > p->padded.height) p->rows = p->padded.height;
    if (!fac_padded_bytes(g, &p->padded, &copy)) return false;
    p->per_thread = p->padded.needed ? (size_t)(g->C * p->rows * p->padded.row)
                                     : 0; /* no more than the whole copy */
    return fac_size_mul(p->per_thread, (size_t)p->cpu->pool.threads * sizeof(float), work);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    const fac_conv_geom *g = &q.g;
    int lanes = q.cpu->simd->lanes;
    if (!fac_cpu_conv(d, p, &q.g, &q.e) || g->rank != 2 || g->groups != 1 || g->C > FAC_FEW_PLANES)
        return false;
    size_t packed = fac_conv_packed(g, lanes);
    if (!packed || !settle(&q, &o->work)) return false;
    fac_want_plain(&p->in[0]);
    fac_want_blocked_out(q.cpu, &p->out[0]);
    if (q.e.residual >= 0) fac_want_blocked(q.cpu, &p->in[q.e.residual], 0);
    o->packed[1] = packed * sizeof(float);
    if (fac_conv_biased(p)) o->packed[2] = fac_bias_bytes(g->K, lanes);
    double macs = (double)packed * (double)(g->N * g->P * g->Q) * fac_conv_short(g);
    o->seconds = fac_cpu_seconds(q.cpu, 2 * macs, 0.85,
                                 4.0 * (double)(g->N * (g->C * g->H * g->W + g->K * g->P * g->Q)));
    o->seconds += fac_conv_pack_seconds(q.cpu, p, (double)packed);
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
    return fac_conv_pack_key(((const plan *)plan_)->cpu, 1, 1, false, input);
}
static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *p = plan_;
    (void)d, (void)err;
    fac_conv_pack_input(p->cpu, &p->g, 1, false, input, fac_span_packed(from), fac_span_packed(to));
    return FAC_OK;
}

const fac_solver fac_cpu_conv_first = { .name = "conv2d/first",
                                        .op = &fac_op_conv2d,
                                        .rank = 120,
                                        .offer = offer,
                                        .make = make,
                                        .done = fac_solver_done,
                                        .pack_key = pack_key,
                                        .pack = pack,
                                        .run = run };
