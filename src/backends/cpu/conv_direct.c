/* conv2d/direct, conv2d_grad_x/direct: the convolution as it is defined, on blocked images; its gradient is one, too
 * (conv_common.h).
 *
 * y[k][p][q] = b[k] + sum over c, r, s of x[c][p stride + r dilation - pad][...] w[k][c][r][s]:  a tile of pixels and 2 vectors
 * of output channels stays in registers over the whole sum (simd/tile.c); the padding is the zero halo of x, so there is no
 * border code.  Any kernel, stride, dilation and padding; groups of whole channel blocks.  f32, one rounding a term: as accurate
 * as the textbook loop.
 *
 * Three schedules (measured: layers of six networks):
 *   rows     a thread owns rows, and does all output channels of a row before the next: x is read once, weights stay in L2
 *   bands    a thread owns a band of rows, and does all of them with one chunk of weights before the next chunk
 *   chunks   a thread owns chunks of output channels: each weight is read once by one core; small images, large weights */
#include <limits.h>
#include "backends/cpu/conv_common.h"
#include "backends/cpu/solvers.h"
#include "base/error.h"
#include "base/memory.h"

typedef struct plan {
    fac_conv_geom  g;
    fac_epilogue   e;
    fac_layout     x, y, r;
    const fac_cpu *cpu;
    bool           turned, biased;      /* weights of the convolution whose gradient this is; there is a bias  */
    bool           by_chunk;            /* an item is one chunk of channels; else it is a band with all chunks */
    bool           rows_outside;        /* in an item: for each row all chunks; else for each chunk all rows   */
    bool           flat;                /* the image is one row: 1 x 1 kernel, no gaps between rows            */
    int            step;                /* rows that one tile takes                                            */
    int64_t        rows, bands;         /* tile rows of an image, and the parts they are dealt in              */
    int64_t        chunks;              /* of a group                                                          */
} plan;

/* ---- run ------------------------------------------------------------------------------------------------------------- */

typedef struct job { const plan *p; const float *x, *w, *b, *r; float *y; } job;

/* Row `row` of one image and group, with one chunk of weights. */
static void do_row(const job *j, const float *x, float *y, const float *r, int64_t group, int64_t chunk, int64_t row,
                   const float *ahead, int ahead_lines) {
    const plan *p = j->p;
    const fac_conv_geom *g = &p->g;
    const fac_simd *simd = p->cpu->simd;
    int lanes = simd->lanes, n = fac_chunk_vectors(g->K / g->groups, lanes, chunk);
    int64_t block = group * (g->K / g->groups) / lanes + 2 * chunk;             /* of output channels */
    int64_t width = g->Q, y0 = row * p->step, x_across = p->x.stride[2] * g->stride[1], y_across = p->y.stride[2];
    int64_t from = 0, to = width;
    if (p->flat) {                                  /* tiles of one long row */
        width = g->P * g->Q, y0 = 0;
        from = width * row / p->rows, to = width * (row + 1) / p->rows;
    }
    fac_conv_tile t = {
        .x_pixel = g->stride[2] * p->x.stride[3], .x_block = p->x.stride[1], .x_row = g->dilation[1] * p->x.stride[2],
        .x_column = g->dilation[2] * p->x.stride[3], .channels = (int)(g->C / g->groups), .R = (int)g->R, .S = (int)g->S,
        .w = fac_conv_chunk(g, lanes, j->w, group, chunk), .bias = j->b ? j->b + block * lanes : NULL,
        .y_pixel = lanes, .y_vector = p->y.stride[1], .r_pixel = lanes, .r_vector = p->r.stride[1],
        .lo = p->e.lo, .hi = p->e.hi, .ahead = ahead, .ahead_lines = ahead_lines };
    const fac_conv_tile_table *table = &simd->tile[t.x_pixel == lanes ? FAC_TILE_NEAR : FAC_TILE_ANY];
    x += group * (g->C / g->groups) / lanes * p->x.stride[1] + y0 * x_across - g->pad[1] * p->x.stride[2] -
         g->pad[2] * p->x.stride[3];
    y += block * p->y.stride[1] + y0 * y_across;
    if (r) r += block * p->r.stride[1] + y0 * p->r.stride[2];

    bool two = p->step == 2 && y0 + 1 < g->P;
    int64_t tiles = two ? 1 : (to - from + simd->rows - 1) / simd->rows;
    for (int64_t i = 0; i < tiles; i++) {
        int64_t q = from + (to - from) * i / tiles;
        int m = two ? 2 * (int)width : (int)(from + (to - from) * (i + 1) / tiles - q), half = (m + 1) / 2;
        t.x0 = x + q * t.x_pixel, t.x1 = two ? t.x0 + x_across : t.x0 + half * t.x_pixel;
        t.y0 = y + q * lanes, t.y1 = two ? t.y0 + y_across : t.y0 + half * lanes;
        if (r) t.r0 = r + q * lanes, t.r1 = two ? t.r0 + p->r.stride[2] : t.r0 + half * lanes;
        table->of[m][n - 1](&t);
        if (ahead) t.ahead += (int64_t)ahead_lines * 16 * ((t.channels + lanes - 1) / lanes);
        for (int k = 0; k < n && p->e.loops; k++) {
            fac_epilogue_run(&p->e, t.y0 + k * t.y_vector, (size_t)(half * lanes));
            fac_epilogue_run(&p->e, t.y1 + k * t.y_vector, (size_t)((m - half) * lanes));
        }
    }
}

/* Lines of the next chunk's weights to bring in with every channel block of this one, so that all have come when it is done. */
static int lines_ahead(const plan *p, int64_t chunk) {
    const fac_conv_geom *g = &p->g;
    int lanes = p->cpu->simd->lanes;
    if (p->bands > 1 || !p->by_chunk || chunk + 1 >= p->chunks) return 0;
    int64_t lines = g->C / g->groups * g->R * g->S * 2 * lanes / 16, blocks = (g->C / g->groups + lanes - 1) / lanes;
    int64_t calls = p->rows * (p->step == 2 || p->flat ? 1 : (g->Q + p->cpu->simd->rows - 1) / p->cpu->simd->rows);
    return calls > 60 ? 0 : (int)((lines + calls * blocks - 1) / (calls * blocks));
}

static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    int64_t band = i % p->bands, image, group, first = 0, last = p->chunks;
    (void)thread;
    if (p->by_chunk) {                              /* [group][chunk][image][band] */
        image = i / p->bands % p->g.N;
        first = i / p->bands / p->g.N % p->chunks, last = first + 1;
        group = i / p->bands / p->g.N / p->chunks;
    } else {                                        /* [image][group][band] */
        group = i / p->bands % p->g.groups;
        image = i / p->bands / p->g.groups;
    }
    const float *x = j->x + image * p->x.stride[0], *r = j->r ? j->r + image * p->r.stride[0] : NULL;
    float *y = j->y + image * p->y.stride[0];
    int64_t from = p->rows * band / p->bands, to = p->rows * (band + 1) / p->bands;
    if (p->rows_outside) {
        for (int64_t row = from; row < to; row++)
            for (int64_t k = first; k < last; k++) do_row(j, x, y, r, group, k, row, NULL, 0);
        return;
    }
    for (int64_t k = first; k < last; k++) {
        int lanes = p->cpu->simd->lanes, lines = lines_ahead(p, k);
        const float *ahead = lines ? fac_conv_chunk(&p->g, lanes, j->w, group, k + 1) : NULL;
        int64_t tiles = p->step == 2 || p->flat ? 1 : (p->g.Q + p->cpu->simd->rows - 1) / p->cpu->simd->rows;
        int64_t blocks = (p->g.C / p->g.groups + lanes - 1) / lanes;
        for (int64_t row = from; row < to; row++) {
            do_row(j, x, y, r, group, k, row, ahead, lines);
            if (ahead) ahead += tiles * lines * 16 * blocks;
        }
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out, fac_span work, fac_error *err) {
    const plan *p = plan_;
    int residual = p->e.residual;
    job j = { p, fac_span_floats(in[0], &p->x), fac_span_packed(in[1]), p->biased ? fac_span_packed(in[2]) : NULL,
              residual >= 0 ? fac_span_floats(in[residual], &p->r) : NULL, fac_span_floats(out[0], &p->y) };
    (void)d, (void)work, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->g.N * p->g.groups * p->bands * (p->by_chunk ? p->chunks : 1)), item, &j);
    return FAC_OK;
}

/* ---- offer and make -------------------------------------------------------------------------------------------------- */

static bool flat(const fac_conv_geom *g, const fac_operand *o) {
    return o->layout.stride[2] == g->Q * o->layout.stride[3];
}

/* Fills in all but the layouts, which it reads. */
static void schedule(plan *p, const fac_problem *problem) {
    const fac_conv_geom *g = &p->g;
    const fac_simd *simd = p->cpu->simd;
    int64_t threads = p->cpu->pool.threads;
    int residual = p->e.residual;
    p->chunks = fac_chunks(g->K / g->groups, simd->lanes);
    p->flat = g->R == 1 && g->S == 1 && g->stride[1] == 1 && g->stride[2] == 1 && fac_conv_halo(g) == 0 && g->pad_end[1] == 0 &&
              g->pad_end[2] == 0 && flat(g, &problem->in[0]) && flat(g, &problem->out[0]) &&
              (residual < 0 || flat(g, &problem->in[residual]));
    p->step = !p->flat && 2 * g->Q <= simd->rows ? 2 : 1;
    p->rows = p->flat ? (g->P * g->Q + simd->rows - 1) / simd->rows : (g->P + p->step - 1) / p->step;

    size_t weights = (size_t)(g->K / g->groups * (g->C / g->groups) * g->R * g->S) * sizeof(float);
    bool large = weights > p->cpu->l2 / 2;
    p->by_chunk = g->groups * p->chunks >= threads && (g->Q <= 14 || (large && g->Q < 28));
    p->rows_outside = !p->by_chunk && !large;
    int64_t others = p->by_chunk ? g->groups * p->chunks * g->N : g->groups * g->N;
    p->bands = 1;
    if (p->rows_outside) p->bands = p->rows / 2 > 0 ? p->rows / 2 : 1;
    else if (others < 4 * threads && others % threads) p->bands = (4 * threads + others - 1) / others;
    if (p->rows_outside && others * p->bands > 16 * threads) p->bands = (16 * threads + others - 1) / others;
    if (p->bands > p->rows) p->bands = p->rows;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *c = fac_cpu_of(d);
    fac_conv_geom g;
    fac_epilogue e;
    int lanes = c->simd->lanes;
    if (!fac_cpu_conv(d, p, &g, &e) || g.rank != 2) return false;
    if (g.groups > 1 && (g.C / g.groups % lanes || g.K / g.groups % lanes)) return false;
    int64_t halo = fac_conv_halo(&g);
    size_t packed = fac_conv_packed(&g, lanes);
    if (!packed || halo > FAC_HALO_MOST) return false;
    if ((double)g.N * (double)(g.P * g.Q) * (double)(g.groups * fac_chunks(g.K / g.groups, lanes)) > INT_MAX) return false;
    fac_want_blocked(c, &p->in[0], halo);
    fac_want_blocked_out(c, &p->out[0]);
    if (e.residual >= 0) fac_want_blocked(c, &p->in[e.residual], 0);
    o->packed[1] = packed * sizeof(float);
    if (fac_conv_biased(p)) o->packed[2] = fac_bias_bytes(g.K, lanes);
    double macs = (double)packed * (double)(g.N * g.P * g.Q);
    o->seconds = fac_cpu_seconds(c, 2 * macs, 0.8, 4.0 * ((double)packed + (double)(g.N * (g.C * g.H * g.W + g.K * g.P * g.Q))));
    o->seconds += fac_conv_pack_seconds(c, p, (double)packed);
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_alloc(1, sizeof *q);
    if (!q) return fac_raise(err, FAC_E_NOMEM, "conv2d/direct: no memory for a plan");
    q->cpu = fac_cpu_of(d);
    fac_cpu_conv(d, p, &q->g, &q->e);
    q->turned = fac_conv_turned(p), q->biased = fac_conv_biased(p);
    q->x = p->in[0].layout, q->y = p->out[0].layout;
    if (q->e.residual >= 0) q->r = p->in[q->e.residual].layout;
    schedule(q, p);
    *out = q;
    return FAC_OK;
}
static void done(fac_device *d, void *plan_) { (void)d, fac_release(plan_); }

static uint64_t pack_key(const void *plan_, int input) {
    const plan *p = plan_;
    return fac_conv_pack_key(p->cpu, p->g.groups, p->cpu->simd->lanes, p->turned, input);
}
static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to, fac_error *err) {
    const plan *p = plan_;
    (void)d, (void)err;
    fac_conv_pack_input(p->cpu, &p->g, p->cpu->simd->lanes, p->turned, input, fac_span_packed(from), fac_span_packed(to));
    return FAC_OK;
}

const fac_solver fac_cpu_conv_direct = { "conv2d/direct", "conv2d", offer, make, done, pack_key, pack, run };
const fac_solver fac_cpu_conv_grad_x_direct = {
    "conv2d_grad_x/direct", "conv2d_grad_x", offer, make, done, pack_key, pack, run };
