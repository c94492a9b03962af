/* conv2d_grad_w/winograd_2x2, winograd_4x4, winograd_5x5: gradients of the weights of 3 x 3 and 5 x
 * 5 convolutions of stride 1 with fewer multiplications: the adjoint of Winograd's convolution
 * (conv_winograd.c) by its filters.
 *
 *   y = A^T [(G g G^T) . (B^T x B)] A, so
 *   dg = G^T [ sum over tiles of (B^T x B) . (A dy A^T) ] G
 *   V[point][c][tile] = inputs transformed   D[point][k][tile] = gradients transformed
 *   U[point][c][k] = sum over tiles of V D
 *
 * The sums run through the register tile of conv2d_grad_w/direct, a tile being a pixel; what is
 * saved and what it costs in accuracy is as in conv_winograd.c.  Blocks of tiles are transformed by
 * all threads, then an item sums some channels of x against some chunks of output channels, all
 * points of them, which stay in the second cache until the transform back.  What limits that is
 * memory beyond the second cache:  V and D of a block are read once if they stay in it, else once
 * for each item that needs them, and U is read and written again for each block if there are
 * several; the size of the blocks is that of the least traffic.  Every sum is made by one thread in
 * the order of the tiles: no number of threads changes a bit. */
#include <limits.h>
#include <string.h>
#include "cpu_solvers.h"
#include "backends/draft.h"
#include "backends/cpu/conv/winograd.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/conv_grad.h"

enum { BLOCK_BYTES = 8 << 20, LEAST_TILES = 32, ITEMS = 8, RANGES = 4 };

typedef struct plan {
    fac_conv_geom g;
    fac_layout x, dy, dw;
    const fac_cpu *cpu;
    const fac_winograd *w;
    fac_tiles tiles;
    int64_t blocks, most;              /* of tiles; tiles of the largest                        */
    int64_t c_blocks, k_blocks;        /* vectors of channels                                   */
    int64_t chunks, group, groups;     /* chunks of dy; vectors of x in an item; items of x     */
    int64_t together, bundles;         /* chunks in an item; items of dy                        */
    int64_t v_point, d_point, u_point; /* floats from one point to the next             */
    size_t sums, put;                  /* floats: U of an item; scratch of one thread           */
} plan;

typedef struct job {
    const plan *p;
    const float *x, *dy;
    float *dw, *v, *d, *u, *put;
    int64_t block, first, count;
} job;

static int64_t points(const plan *p) { return fac_tiles_points(&p->tiles); }
static int64_t block_begin(const plan *p, int64_t block) {
    return p->tiles.count * block / p->blocks;
}

/* [block of channels of x, then of dy][range of tiles] */
static void transform(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_conv_geom *g = &p->g;
    int64_t lanes = p->cpu->simd->lanes, range = i % RANGES, block = i / RANGES, m = p->w->out, row,
            column, image, step;
    bool of_x = block < p->c_blocks;
    fac_tile_copy copy;
    (void)thread;
    if (!of_x) block -= p->c_blocks;
    for (int64_t t = j->count * range / RANGES; t < j->count * (range + 1) / RANGES; t++) {
        fac_tile_place(&p->tiles, j->first + t, &image, &row, &column);
        const fac_layout *l = of_x ? &p->x : &p->dy;
        const fac_plane plane = { (of_x ? j->x : j->dy) + image * l->stride[0] +
                                      block * l->stride[1],
                                  of_x ? g->H : g->P,
                                  of_x ? g->W : g->Q,
                                  l->halo,
                                  l->stride[2],
                                  (int)lanes };
        if (of_x) {
            const float *from = fac_tile_window(&plane, row - g->pad[1], column - g->pad[2],
                                                p->tiles.n, copy, &step);
            p->w->in_tile(from, step, j->v + (block * j->count + t) * lanes, p->v_point, 0);
        } else {
            const float *from = fac_tile_window(&plane, row, column, m, copy, &step);
            p->w->out_grad(from, step, j->d + (block * j->count + t) * lanes, p->d_point);
        }
    }
}

/* Back from the elements, one vector of x's channels after the other; transposed on the way to dw.
 */
static void put(const plan *p, const float *u, int64_t c_block, int64_t vectors, int64_t chunk,
                int n, float *scratch, float *dw) {
    const fac_conv_geom *g = &p->g;
    int64_t lanes = p->cpu->simd->lanes, width = n * lanes, taps = g->R * g->S,
            k0 = chunk * 2 * lanes;
    int64_t last = g->K - k0 < width ? g->K - k0 : width;
    fac_winograd_matrix G;
    fac_winograd_filters(p->w, &G);
    for (int64_t b = 0; b < vectors; b++) {
        int64_t c0 = (c_block + b) * lanes, channels = g->C - c0 < lanes ? g->C - c0 : lanes;
        for (int64_t c = 0; c < channels; c++)
            for (int64_t v = 0; v < n; v++)
                p->w->filter_grad(&G, u + ((b * lanes + c) * n + v) * lanes, p->u_point,
                                  scratch + (v * channels + c) * taps * lanes);
        for (int64_t k = 0; k < last; k += lanes)
            p->cpu->simd->transpose(scratch + k * channels * taps, lanes,
                                    dw + ((k0 + k) * g->C + c0) * taps, g->C * taps,
                                    channels * taps, last - k < lanes ? last - k : lanes);
    }
}

/* One chunk of output channels against `vectors` vectors of x from c_block on. */
static void add_chunk(const job *j, int64_t c_block, int64_t vectors, int64_t chunk, int n,
                      float *u) {
    const plan *p = j->p;
    const fac_outer_table *outer = p->cpu->simd->outer;
    int64_t lanes = p->cpu->simd->lanes, cuts = lanes / outer->most;
    for (int64_t point = 0; point < points(p); point++)
        for (int64_t b = 0; b < vectors * cuts; b++) {
            const fac_outer_tile t = { .x = j->v + point * p->v_point +
                                            (c_block + b / cuts) * j->count * lanes +
                                            b % cuts * outer->most,
                                       .y =
                                           j->d + point * p->d_point + 2 * chunk * j->count * lanes,
                                       .x_pixel = lanes,
                                       .y_vector = j->count * lanes,
                                       .planes = 1,
                                       .rows = 1,
                                       .pixels = j->count,
                                       .to = u + point * p->u_point + b * outer->most * n * lanes,
                                       .to_row = n * lanes };
            if (j->block == 0)
                memset(t.to, 0,
                       (size_t)(outer->most * n * lanes) *
                           sizeof *t.to); /* near when it is added to */
            outer->of[outer->most][n - 1](&t);
        }
}

/* [bundle of chunks][group of vectors of x] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    int64_t lanes = p->cpu->simd->lanes, bundle = i / p->groups, group = i % p->groups;
    int64_t c_block = p->c_blocks * group / p->groups,
            vectors = p->c_blocks * (group + 1) / p->groups - c_block;
    int64_t first = p->chunks * bundle / p->bundles, last = p->chunks * (bundle + 1) / p->bundles;
    float *u = j->u + (p->blocks > 1 ? (size_t)i : (size_t)thread) * p->sums;
    for (int64_t chunk = first; chunk < last; chunk++, u += points(p) * p->u_point) {
        int n = fac_chunk_vectors(p->g.K, (int)lanes, chunk);
        add_chunk(j, c_block, vectors, chunk, n, u);
        if (j->block == p->blocks - 1)
            put(p, u, c_block, vectors, chunk, n, j->put + (size_t)thread * p->put, j->dw);
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    const fac_pool *pool = &p->cpu->pool;
    job j = { .p = p,
              .x = fac_span_floats(in[0], &p->x),
              .dy = fac_span_floats(in[1], &p->dy),
              .dw = fac_span_floats(out[0], &p->dw),
              .v = fac_span_packed(work) };
    j.d = j.v + points(p) * p->v_point;
    j.u = j.d + points(p) * p->d_point;
    j.put = j.u + (size_t)(p->blocks > 1 ? p->groups * p->bundles : pool->threads) * p->sums;
    (void)d, (void)err;
    for (; j.block < p->blocks; j.block++) {
        j.first = block_begin(p, j.block);
        j.count = block_begin(p, j.block + 1) - j.first;
        fac_parallel(pool, (int)((p->c_blocks + p->k_blocks) * RANGES), transform, &j);
        fac_parallel(pool, (int)(p->groups * p->bundles), item, &j);
    }
    return FAC_OK;
}

/* ---- offer and make ---- */

/* Items whose sums take half of the second cache, but not fewer than ITEMS if there can be as many.
 */
static void share(plan *p) {
    int64_t lanes = p->cpu->simd->lanes,
            room = (int64_t)p->cpu->l2 / 2 / (4 * points(p) * 2 * lanes * lanes);
    p->group = p->c_blocks;
    p->together = p->chunks;
    for (;;) {
        p->groups = (p->c_blocks + p->group - 1) / p->group;
        p->bundles = (p->chunks + p->together - 1) / p->together;
        bool large = p->group * p->together > room && p->group * p->together > 1;
        if (!large && (p->groups * p->bundles >= ITEMS || p->group * p->together == 1)) break;
        if (p->together > 1 && 2 * p->together >= p->group)
            p->together = (p->together + 1) / 2;
        else
            p->group = (p->group + 1) / 2;
    }
    p->group = (p->c_blocks + p->groups - 1) / p->groups;
    p->together = (p->chunks + p->bundles - 1) / p->bundles;
}

/* Bytes that `blocks` blocks bring from beyond the second cache. */
static double traffic(const plan *p, int64_t blocks) {
    double vector = 4 * (double)(points(p) * p->cpu->simd->lanes), tiles = (double)p->tiles.count,
           l2 = (double)p->cpu->l2;
    double v = vector * tiles * (double)p->c_blocks, d = vector * tiles * (double)p->k_blocks;
    double u = vector * (double)(p->g.C * p->k_blocks);
    bool stay = (v + d) / (double)blocks < 0.6 * l2;
    double sums = blocks > 1 && u > 0.3 * l2 ? 2 * u * (double)blocks : 0;
    return sums + (stay ? v + d : v * (double)p->bundles + d * (double)p->groups);
}

/* All but the layouts. */
static bool settle(plan *p, int kind, const fac_problem *problem, size_t *work) {
    const fac_conv_geom *g = &p->g;
    const fac_simd *s = p->cpu->simd;
    int64_t lanes = s->lanes;
    p->w = &s->winograd[kind];
    if (!fac_cpu_conv_grad(problem, &p->g) || g->rank != 2 || g->groups != 1) return false;
    if (g->R != p->w->kernel || g->S != p->w->kernel ||
        (problem->precision == FAC_PRECISION_HIGHEST && kind != FAC_WINOGRAD_2_3))
        return false;
    for (int k = 1; k < 3; k++)
        if (g->stride[k] != 1 || g->dilation[k] != 1) return false;
    if (g->N * g->P > INT_MAX / g->Q || g->C > INT_MAX / (2 * RANGES) ||
        g->K > INT_MAX / (2 * RANGES))
        return false;
    p->tiles = fac_tiles_of(p->w, g);
    p->c_blocks = (g->C + lanes - 1) / lanes;
    p->k_blocks = (g->K + lanes - 1) / lanes;
    p->chunks = fac_chunks(g->K, (int)lanes);
    share(p);
    if (p->groups > INT_MAX / p->bundles) return false;

    int64_t room = BLOCK_BYTES / (4 * points(p) * lanes * (p->c_blocks + p->k_blocks));
    if (room < LEAST_TILES) room = LEAST_TILES;
    p->blocks = (p->tiles.count + room - 1) / room;
    for (int64_t more = 2 * p->blocks; p->tiles.count / more >= LEAST_TILES; more *= 2)
        if (traffic(p, more) < traffic(p, p->blocks)) p->blocks = more;
    p->most = (p->tiles.count + p->blocks - 1) / p->blocks;
    /* odd numbers of vectors between the points keep them on different sets of the first cache */
    p->v_point = (p->c_blocks * p->most | 1) * lanes;
    p->d_point = (p->k_blocks * p->most | 1) * lanes;
    p->u_point = (p->group * lanes * 2 | 1) * lanes;
    p->sums = (size_t)(p->together * points(p) * p->u_point);
    p->put = (size_t)(2 * lanes * lanes * g->R * g->S);

    size_t v, u, scratch, threads = (size_t)p->cpu->pool.threads;
    return fac_size_mul((size_t)(p->v_point + p->d_point), (size_t)points(p), &v) &&
           fac_size_mul(p->sums, p->blocks > 1 ? (size_t)(p->groups * p->bundles) : threads, &u) &&
           fac_size_mul(p->put, threads, &scratch) && fac_size_add(v, u, &u) &&
           fac_size_add(u, scratch, &u) && fac_size_mul(u, sizeof(float), work);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const int kind = *(const int *)p->solver->how;
    plan q = { .cpu = fac_cpu_of(d) };
    const fac_conv_geom *g = &q.g;
    if (!settle(&q, kind, p, &o->work)) return false;
    int64_t halo = fac_conv_halo(g), lanes = q.cpu->simd->lanes;
    if (halo > FAC_HALO_MOST) return false;
    fac_want_blocked(q.cpu, &p->in[0], halo);
    fac_want_blocked(q.cpu, &p->in[1], 0);
    fac_want_plain(&p->out[0]);
    double all = (double)points(&q),
           vectors = (double)q.tiles.count * (double)(q.c_blocks + q.k_blocks);
    double products =
        all * (double)q.tiles.count * (double)(q.c_blocks * lanes) * (double)(q.k_blocks * lanes);
    double moved = 8 * all * vectors * (double)lanes + traffic(&q, q.blocks);
    double hertz = q.cpu->flops / (4.0 * (double)lanes); /* of all threads */
    double back = (double)(g->C * q.k_blocks) * 200;
    o->seconds = fac_cpu_seconds(q.cpu, 2 * products, 0.75, moved) +
                 (vectors * (q.tiles.n == 4 ? 70 : 130) + back) / hertz;
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
#define SOLVER(name_, kind)                                                                        \
    .name = "conv2d_grad_w/winograd_" name_, .op = &fac_op_conv2d_grad_w,                          \
    .how = &(const int){ kind }, .offer = offer, .make = make, .done = fac_solver_done, .run = run
const fac_solver fac_cpu_conv_grad_w_winograd_2x2 = { SOLVER("2x2", FAC_WINOGRAD_2_3),
                                                      .rank = 440 };
const fac_solver fac_cpu_conv_grad_w_winograd_4x4 = { SOLVER("4x4", FAC_WINOGRAD_4_3),
                                                      .rank = 430 };
const fac_solver fac_cpu_conv_grad_w_winograd_5x5 = { SOLVER("5x5", FAC_WINOGRAD_2_5),
                                                      .rank = 450 };
