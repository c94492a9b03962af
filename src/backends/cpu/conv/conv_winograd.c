/* conv2d/winograd_2x2, _4x4, _5x5, _4x4_5x5: 3 x 3 and 5 x 5 convolution of stride 1 with fewer
 * multiplications, on blocked images; conv2d/winograd_2x2_strided and _4x4_strided: 3 x 3 of stride
 * 2, of whole blocks of channels; conv2d_max_pool likewise but for these, 2 x 2 windows being
 * pooled on the way out, and conv2d_grad_x likewise but for the last three (conv_common.h).  Groups
 * of whole channel blocks one after the other (simd/conv/winograd.c has the mathematics; Lavin and
 * Gray, "Fast algorithms for convolutional neural networks", CVPR 2016).
 *
 *   V[point][c][tile] = inputs transformed     M[point][k][tile] = sum over c of U[point][k][c]
 *       V[point][c][tile]     y = M back
 *
 * The sums are matrix products by the register tile of conv2d/direct, a tile of outputs being a
 * pixel.
 *   name                 outputs  kernel  points  products saved  error at most
 *   winograd_2x2         2 x 2    3       16      2.25            direct's
 *   winograd_4x4         4 x 4    3       36      4               4 times direct's
 *   winograd_5x5         2 x 2    5       36      2.8             2 times
 *   winograd_4x4_5x5     4 x 4    5       64      6.25            10 times
 *   winograd_2x2_strided 2 x 2    3       9       1.44            direct's
 *   winograd_4x4_strided 4 x 4    3       25      1.78            6 times
 * The rule of accuracy, which a test holds the solvers to: the largest difference from the result
 * in f64, relative to the largest output of the layer, against that of conv2d/direct on the same
 * data, adding up all channels at once.  (Measured on random layers: 0.5, 2.5, 1.0, 5.6, 0.8 and
 * 3.4 times at the most.) At the highest precision (--precision highest) there is the first one
 * alone.  Inputs that are not finite spread to the whole tile as NaN.  U is made in f64 when
 * weights are packed. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/shared_cache.h"
#include "backends/cpu/conv/conv_winograd.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

typedef fac_winograd_plan plan;
typedef struct job {
    const plan *p;
    const float *x, *u, *b, *r, *mask;
    float *y, *own, *v;   /* a thread's V and M, one thread after the other; V if it is shared */
    int64_t first, count; /* tiles of the block                                                  */
    bool past;            /* y goes past the caches                                              */
    int32_t *made;        /* by thread: the block whose V it has; -1: none                       */
} job;

static int64_t block_begin(const plan *p, int64_t block) {
    return p->tiles.count * block / p->blocks;
}

/* ---- run ---- */

/* Transforms the inputs of tile t in one channel block to v; the planes of a point lie v_plane
 * apart. */
static void input(const job *j, int64_t t, int64_t block, float *v, int64_t v_plane) {
    const plan *p = j->p;
    const fac_conv_geom *g = &p->g;
    int64_t image, row, column;
    fac_tile_copy copy;
    fac_tile_place(&p->tiles, t, &image, &row, &column);
    const float *from = j->x + image * p->x.stride[0] + block * p->x.stride[1];
    const fac_plane plane = { from, g->H, g->W, p->x.halo, p->x.stride[2], p->cpu->simd->lanes };
    row = row * g->stride[1] - g->pad[1];
    column = column * g->stride[2] - g->pad[2];
    const float *x = fac_tile_window(&plane, row, column, p->tiles.window, copy, &row);
    p->w->in_tile(x, row, v, p->v_point, v_plane);
}

/* Pixel `row`, `column` of a block of channels. */
static int64_t pixel_at(const plan *p, const fac_layout *l, int64_t image, int64_t block,
                        int64_t row, int64_t column) {
    return image * l->stride[0] + block * l->stride[1] + row * l->stride[2] +
           column * p->cpu->simd->lanes;
}

/* Outputs of tile t in one block of output channels. */
static void output(const job *j, int64_t t, int64_t block, const float *m) {
    const plan *p = j->p;
    int64_t image, row, column, lanes = p->cpu->simd->lanes, out = p->w->out / p->pool;
    const int64_t rows = p->g.P / p->pool, columns = p->g.Q / p->pool;
    fac_tile_place(&p->tiles, t, &image, &row, &column);
    row /= p->pool;
    column /= p->pool;
    float *y = j->y + pixel_at(p, &p->y, image, block, row, column);
    fac_winograd_tile w = { .v = m,
                            .v_point = p->m_point,
                            .bias = j->b ? j->b + block * lanes : NULL,
                            .y = y,
                            .y_row = p->y.stride[2],
                            .lo = p->e.lo,
                            .hi = p->e.hi };
    w.rows = (int)(rows - row < out ? rows - row : out);
    w.columns = (int)(columns - column < out ? columns - column : out);
    w.past = j->past;
    if (j->r) {
        w.r = j->r + pixel_at(p, &p->r, image, block, row, column);
        w.r_row = p->r.stride[2];
    }
    if (j->mask) {
        w.mask = j->mask + pixel_at(p, &p->mask, image, block, row, column);
        w.mask_row = p->mask.stride[2];
        w.mask_lo = p->e.mask_lo;
    }
    if (p->pool == 1)
        p->w->out_tile(&w);
    else
        p->w->out_pool(&w);
    for (int i = 0; i < w.rows && p->e.loops; i++)
        fac_epilogue_run(&p->e, y + i * w.y_row, (size_t)(w.columns * lanes));
}

/* Brings in the lines of outputs number from .. to - 1 of a chunk, in the order in which output()
 * will write them. */
static void fetch_outputs(const job *j, int64_t block, int64_t first, int64_t count, int64_t from,
                          int64_t to) {
    const plan *p = j->p;
    const int64_t lanes = p->cpu->simd->lanes, out = p->w->out / p->pool, height = p->g.P / p->pool;
    for (int64_t i = from; i < to; i++) {
        int64_t image, row, column, k = block + i / count;
        fac_tile_place(&p->tiles, first + i % count, &image, &row, &column);
        row /= p->pool;
        column /= p->pool;
        const float *y = j->y + pixel_at(p, &p->y, image, k, row, column);
        const int64_t rows = height - row < out ? height - row : out, floats = out * lanes;
        for (int64_t a = 0; a < rows && !j->past; a++)
            for (int64_t b = 0; b < floats; b += 16)
                __builtin_prefetch(y + a * p->y.stride[2] + b, 1, 2);
        const float *r = j->r ? j->r + pixel_at(p, &p->r, image, k, row, column) : NULL;
        const float *mask = j->mask ? j->mask + pixel_at(p, &p->mask, image, k, row, column) : NULL;
        for (int64_t a = 0; a < rows && r; a++)
            for (int64_t b = 0; b < floats; b += 16)
                __builtin_prefetch(r + a * p->r.stride[2] + b, 0, 2);
        for (int64_t a = 0; a < rows && mask; a++)
            for (int64_t b = 0; b < floats; b += 16)
                __builtin_prefetch(mask + a * p->mask.stride[2] + b, 0, 2);
    }
}

/* One chunk of output channels of `count` tiles from `first` on, whose V is at v.  The weights of
 * the next point are fetched while those of this one are used, and the places of the outputs
 * meanwhile. */
static void chunk(const job *j, int64_t chunk_, int64_t first, int64_t count, const float *v,
                  float *m) {
    const plan *p = j->p;
    const fac_simd *s = p->cpu->simd;
    int64_t lanes = s->lanes, C = p->g.C, blocks = (C + lanes - 1) / lanes,
            n2 = fac_tiles_points(&p->tiles);
    /* `larger` tiles of rows + 1 pixels, then the rest of `rows` */
    int64_t tiles = (count + s->rows - 1) / s->rows, rows = count / tiles, larger = count % tiles;
    int n = fac_chunk_vectors(p->g.K, s->lanes, chunk_),
        lines = (int)((n * lanes * lanes / 16 + tiles - 1) / tiles);
    const float *u = j->u + chunk_ * 2 * lanes * C * fac_tiles_planes(&p->tiles);
    for (int64_t k = 0, depth; k < n2; k++, u += depth * C * n * lanes) {
        depth = fac_tiles_depth(&p->tiles, k);
        const float *x = v + k * p->v_point, *ahead = u + depth * C * n * lanes;
        float *y = m + k * p->m_point;
        fac_conv_tile t = { .x0 = x,
                            .x_block = count * lanes,
                            .channels = (int)(depth * C),
                            .R = 1,
                            .S = 1,
                            .w = u,
                            .y0 = y,
                            .y_vector = count * lanes,
                            .ahead = ahead,
                            .ahead_lines = lines,
                            .tiles = larger };
        fetch_outputs(j, 2 * chunk_, first, count, n * count * k / n2, n * count * (k + 1) / n2);
        if (larger) s->tile[FAC_TILE_PRODUCTS].of[rows + 1][n - 1](&t);
        int64_t done = larger * (rows + 1) * lanes;
        t.x0 += done;
        t.y0 += done;
        t.ahead += larger * lines * depth * blocks * 16;
        t.tiles = tiles - larger;
        s->tile[FAC_TILE_PRODUCTS].of[rows][n - 1](&t);
    }
    for (int k = 0; k < n; k++)
        for (int64_t t = 0; t < count; t++)
            output(j, first + t, 2 * chunk_ + k, m + (k * count + t) * lanes);
    if (j->past) fac_streams_end();
}

static float *own_of(const job *j, int thread) {
    return j->own + thread * fac_winograd_own_floats(j->p);
}
static int64_t blocks_of(const plan *p) {
    return (p->g.C + p->cpu->simd->lanes - 1) / p->cpu->simd->lanes;
}

/* V of `count` tiles from `first` on: channel block c, and all of them. */
static void inputs_of(const job *j, int64_t c, int64_t first, int64_t count, float *v) {
    const int64_t lanes = j->p->cpu->simd->lanes;
    for (int64_t t = 0; t < count; t++)
        input(j, first + t, c, v + (c * count + t) * lanes, blocks_of(j->p) * count * lanes);
}
static void inputs(const job *j, int64_t first, int64_t count, float *v) {
    for (int64_t c = 0; c < blocks_of(j->p); c++) inputs_of(j, c, first, count, v);
}

static void by_tiles(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const int64_t first = block_begin(p, i), count = block_begin(p, i + 1) - first;
    float *v = own_of(j, thread);
    inputs(j, first, count, v);
    for (int64_t k = 0; k < p->chunks; k++)
        chunk(j, k, first, count, v, v + fac_winograd_v_floats(p));
}

static void inputs_of_block(void *arg, int c, int thread) {
    const job *j = arg;
    (void)thread;
    inputs_of(j, c, j->first, j->count, j->v);
}
static void chunk_of_block(void *arg, int k, int thread) {
    const job *j = arg;
    chunk(j, k, j->first, j->count, j->v, own_of(j, thread));
}
/* Chunk by chunk, block by block; a thread has neighbours, which are mostly of one block. */
static void chunk_of_any(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const int32_t block = (int32_t)(i / p->chunks);
    const int64_t first = block_begin(p, block), count = block_begin(p, block + 1) - first;
    float *v = own_of(j, thread);
    if (j->made[thread] != block) inputs(j, first, count, v), j->made[thread] = block;
    chunk(j, i % p->chunks, first, count, v, v + fac_winograd_v_floats(p));
}

static void run_group(const plan *p, job *j) {
    const fac_pool *pool = &p->cpu->pool;
    if (!p->by_chunk) {
        fac_parallel(pool, (int)p->blocks, by_tiles, j);
        return;
    }
    if (p->shared) {
        for (int64_t b = 0; b < p->blocks; b++) {
            j->first = block_begin(p, b);
            j->count = block_begin(p, b + 1) - j->first;
            fac_parallel(pool, (int)blocks_of(p), inputs_of_block, j);
            fac_parallel(pool, (int)p->chunks, chunk_of_block, j);
        }
        return;
    }
    memset(j->made, -1, (size_t)pool->threads * sizeof *j->made);
    fac_parallel(pool, (int)(p->blocks * p->chunks), chunk_of_any, j);
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    const int64_t C = p->g.C / p->cpu->simd->lanes,
                  K = p->g.K / p->cpu->simd->lanes; /* blocks, where there are groups */
    job j = { .p = p,
              .x = fac_span_floats(in[0], &p->x),
              .u = fac_span_packed(in[1]),
              .y = fac_span_floats(out[0], &p->y),
              .own = fac_span_packed(work) };
    if (p->biased) j.b = fac_span_packed(in[2]);
    if (p->e.residual >= 0) j.r = fac_span_floats(in[p->e.residual], &p->r);
    if (p->e.mask >= 0) j.mask = fac_span_floats(in[p->e.mask], &p->mask);
    j.v = own_of(&j, p->cpu->pool.threads);
    j.made = (int32_t *)j.v;
    j.past = !p->e.loops && fac_cpu_writes_past(p->cpu, j.y);
    (void)d, (void)err;
    for (int64_t i = 0; i < p->whole.groups; i++) {
        run_group(p, &j);
        j.x += C * p->x.stride[1];
        j.y += K * p->y.stride[1];
        j.u += fac_winograd_u_floats(p);
        if (j.b) j.b += p->g.K;
        if (j.r) j.r += K * p->r.stride[1];
        if (j.mask) j.mask += K * p->mask.stride[1];
    }
    return FAC_OK;
}

/* ---- offer and make ---- */

/* The geometry of the problem: of all, and of a group, which must be whole blocks of channels. */
static bool geometry(plan *q, fac_device *d, const fac_problem *p) {
    if (!fac_cpu_conv_masked(d, p, &q->whole, &q->e)) return false;
    q->pool = fac_conv_pooled(p) ? 2 : 1;
    if (q->pool > 1 && (q->e.residual >= 0 || q->e.mask >= 0)) return false;
    q->g = q->whole;
    q->g.C /= q->whole.groups;
    q->g.K /= q->whole.groups;
    q->g.groups = 1;
    return q->whole.groups == 1 ||
           (q->g.C % q->cpu->simd->lanes == 0 && q->g.K % q->cpu->simd->lanes == 0);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const int kind = *(const int *)p->solver->how;
    plan q = { .cpu = fac_cpu_of(d) };
    const fac_conv_geom *g = &q.g;
    q.w = &q.cpu->simd->winograd[kind];
    if (!geometry(&q, d, p) || g->rank != 2) return false;
    if (g->R != q.w->kernel || g->S != q.w->kernel ||
        (q.w->stride > 1 && g->C % q.cpu->simd->lanes))
        return false;
    for (int k = 1; k < 3; k++)
        if (g->stride[k] != q.w->stride || g->dilation[k] != 1) return false;
    if (p->precision == FAC_PRECISION_HIGHEST && kind != FAC_WINOGRAD_2_3) return false;
    int64_t halo = fac_conv_halo(g);
    size_t packed, threads = (size_t)q.cpu->pool.threads;
    if (halo > FAC_HALO_MOST || g->N * g->P > INT_MAX / g->Q) return false;
    if (p->variant > FAC_WINOGRAD_VARIANTS || !fac_winograd_schedule(&q, p->variant)) return false;
    o->variants = FAC_WINOGRAD_VARIANTS;
    o->version = FAC_WINOGRAD_VERSION;
    size_t filters =
        fac_bias_bytes(q.whole.K, q.cpu->simd->lanes) * (size_t)fac_tiles_planes(&q.tiles);
    if (!fac_size_mul(filters, (size_t)g->C, &packed)) return false;
    const size_t own = (size_t)fac_winograd_own_floats(&q) * sizeof(float);
    const size_t common =
        q.shared ? (size_t)fac_winograd_v_floats(&q) * sizeof(float) : threads * sizeof(int32_t);
    if (!fac_size_mul(own, threads, &o->work) || !fac_size_add(o->work, common, &o->work))
        return false;
    /* larger ones, as stride 2 has with gaps between the points, would come from memory, 30 ns a
     * line; where values were written last they come from a cache */
    o->own = !q.shared && own <= q.cpu->l2;
    fac_want_blocked(q.cpu, &p->in[0], halo);
    fac_want_blocked_out(q.cpu, &p->out[0]);
    if (q.e.residual >= 0) fac_want_blocked(q.cpu, &p->in[q.e.residual], 0);
    if (q.e.mask >= 0) fac_want_blocked(q.cpu, &p->in[q.e.mask], 0);
    o->packed[1] = packed;
    if (fac_conv_biased(p)) o->packed[2] = fac_bias_bytes(q.whole.K, q.cpu->simd->lanes);
    o->seconds = (double)q.whole.groups * q.seconds +
                 fac_conv_pack_seconds(q.cpu, p, (double)packed / sizeof(float));
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    q->flipped = fac_conv_flipped(p);
    q->biased = fac_conv_biased(p);
    q->x = p->in[0].layout;
    q->y = p->out[0].layout;
    if (q->e.residual >= 0) q->r = p->in[q->e.residual].layout;
    if (q->e.mask >= 0) q->mask = p->in[q->e.mask].layout;
    *out = q;
    return FAC_OK;
}
/* ---- weights ---- */

static uint64_t pack_key(const void *plan_, int input) {
    const plan *p = plan_;
    return (uint64_t)input | (uint64_t)p->flipped << 4 | (uint64_t)p->cpu->simd->lanes << 8 |
           (uint64_t)p->w->out << 16 | (uint64_t)p->w->stride << 24 |
           (uint64_t)p->whole.groups << 32;
}
static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *p = plan_;
    (void)d, (void)err;
    if (input == 2)
        fac_pack_bias(fac_span_packed(from), p->whole.K, p->cpu->simd->lanes, fac_span_packed(to));
    else
        fac_winograd_pack(p, fac_span_packed(from), fac_span_packed(to));
    return FAC_OK;
}

/* ---- the six of them ---- */

/* clang-format off */
#define SOLVER(of, name_, kind) \
    .name = #of "/winograd_" name_, .op = &fac_op_##of, .how = &(const int){ kind }, \
    .offer = offer, .make = make, .done = fac_solver_done, .pack_key = pack_key, \
    .pack = pack, .run = run
const fac_solver fac_cpu_conv_winograd_2x2 = { .rank = 20,
    SOLVER(conv2d, "2x2", FAC_WINOGRAD_2_3) };
const fac_solver fac_cpu_conv_winograd_4x4 = { .rank = 10,
    SOLVER(conv2d, "4x4", FAC_WINOGRAD_4_3) };
const fac_solver fac_cpu_conv_winograd_5x5 = { .rank = 40,
    SOLVER(conv2d, "5x5", FAC_WINOGRAD_2_5) };
const fac_solver fac_cpu_conv_winograd_4x4_5x5 = { .rank = 30,
    SOLVER(conv2d, "4x4_5x5", FAC_WINOGRAD_4_5) };
const fac_solver fac_cpu_conv_winograd_2x2_strided = { .rank = 60,
    SOLVER(conv2d, "2x2_strided", FAC_WINOGRAD_2_3_STRIDED) };
const fac_solver fac_cpu_conv_winograd_4x4_strided = { .rank = 50,
    SOLVER(conv2d, "4x4_strided", FAC_WINOGRAD_4_3_STRIDED) };
const fac_solver fac_cpu_conv_pool_winograd_2x2 = { .rank = 80,
    SOLVER(conv2d_max_pool, "2x2", FAC_WINOGRAD_2_3) };
const fac_solver fac_cpu_conv_pool_winograd_4x4 = { .rank = 70,
    SOLVER(conv2d_max_pool, "4x4", FAC_WINOGRAD_4_3) };
const fac_solver fac_cpu_conv_pool_winograd_5x5 = { .rank = 100,
    SOLVER(conv2d_max_pool, "5x5", FAC_WINOGRAD_2_5) };
const fac_solver fac_cpu_conv_pool_winograd_4x4_5x5 = { .rank = 90,
    SOLVER(conv2d_max_pool, "4x4_5x5", FAC_WINOGRAD_4_5) };
const fac_solver fac_cpu_conv_grad_x_winograd_2x2 = { .rank = 410,
    SOLVER(conv2d_grad_x, "2x2", FAC_WINOGRAD_2_3) };
const fac_solver fac_cpu_conv_grad_x_winograd_4x4 = { .rank = 400,
    SOLVER(conv2d_grad_x, "4x4", FAC_WINOGRAD_4_3) };
const fac_solver fac_cpu_conv_grad_x_winograd_5x5 = { .rank = 420,
    SOLVER(conv2d_grad_x, "5x5", FAC_WINOGRAD_2_5) };
/* clang-format on */
