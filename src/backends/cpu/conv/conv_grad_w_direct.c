/* conv2d_grad_w/direct, conv2d_grad_w/first: gradients of convolution weights as they are defined.
 *
 * dw[k][c][r][s] = sum over images, p, q of x[c][p stride + r dilation - pad][...] dy[k][p][q]: for
 * each tap a tile of channels times 2 vectors of output channels stays in registers while the
 * pixels of a strip pass (simd/product/outer.c).  Strips of some rows of one block of x and two of
 * dy stay in the first cache while all taps use them; the padding is the zero halo of x.  A 1 x 1
 * kernel computes little with a strip, so an item takes as many blocks of x and chunks of dy as the
 * sums leave room for, and reads each strip of them from memory once:
 *
 *     bytes read = x K / (chunks 32) + dy C / (blocks 16)
 *
 * Strips are too short for the hardware prefetcher, so each call of the kernel prefetches a block
 * or a vector of the next strip.
 *
 *   direct   x in channel blocks; a tile is taken from the channels of a block
 *   first    x planar, few channels (an image as it was loaded), padded by a copy; a tile is taken
 *            from the taps along a row
 *
 * An item owns a group of blocks of x (first: all of x) and of chunks of output channels.  Where
 * these are few, the rows of all images are split into parts, whose number follows from the shape
 * alone, and added up afterwards: the number of threads changes no bit.  Any kernel, stride,
 * padding, dilation (first: not along a row); groups 1; f32. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/conv/conv_common.h"
#include "backends/cpu/device/padded.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/conv_grad.h"

enum {
    MOST_PLANAR = 4,
    ITEMS = 16,
    STRIP_BYTES = 40 << 10,
    PIXELS_OF_PART = 512,
    SUMS_BYTES = 128 << 10,
    LEAST_GROUP = 4,
    MOST_LANES = 16
};

typedef struct plan {
    fac_conv_geom g;
    fac_layout dy, dw;
    const fac_cpu *cpu;
    bool planar;
    fac_padded padded; /* planar */
    /* where a number of x lies: image, block, row, pixel; and the taps, in three dims: outer, rows
     * of the kernel, inner */
    int64_t x_offset, x_image, x_block, x_row, x_pixel, x_outer, outer, inner;
    int64_t blocks, chunks, parts,
        strip;                      /* of x; of output channels; of the rows; rows of a strip */
    int64_t few_blocks, few_chunks; /* the most of one item                                   */
    int64_t block_groups, chunk_groups;
    size_t tile, sums; /* floats of the sums of one block and chunk; of one item */
} plan;

typedef struct job {
    const plan *p;
    const float *x, *dy;
    float *dw, *sums;
} job;

static int64_t inner_of(const plan *p,
                        int64_t block) { /* channels of the last block may be fewer */
    int64_t left = p->g.C - block * p->inner;
    return p->planar || left > p->inner ? p->inner : left;
}

/* The strip that follows: of block 0 of x and chunk 0 of dy of an item, what is asked for in turn;
 * x NULL after the last. */
typedef struct ahead {
    const float *x, *dy;
    int64_t blocks, vectors, next;
} ahead;

static void bring(const plan *p, ahead *a, fac_outer_tile *t) {
    t->soon = NULL;
    if (!a->x || a->next == a->blocks + a->vectors) return;
    int64_t i = a->next++;
    if (i < a->blocks) {
        t->soon = a->x + i * p->x_block;
        t->soon_plane = t->x_plane;
        t->soon_row = t->x_row;
        t->soon_pixel = t->x_pixel;
    } else {
        t->soon = a->dy + (i - a->blocks) * p->dy.stride[1];
        t->soon_plane = t->y_plane;
        t->soon_row = t->y_row;
        t->soon_pixel = p->cpu->simd->lanes;
    }
}

/* Adds the strip of `rows` rows of each of `planes` images to the sums of an item. */
static void add_strip(const plan *p, const float *x, const float *dy, int64_t planes, int64_t rows,
                      int64_t inner, int n, ahead *soon, float *to) {
    const fac_outer_table *outer = p->cpu->simd->outer;
    const fac_conv_geom *g = &p->g;
    int64_t width = n * p->cpu->simd->lanes, cuts = (inner + outer->most - 1) / outer->most;
    fac_outer_tile t = { .x_plane = p->x_image,
                         .x_row = g->stride[1] * p->x_row,
                         .x_pixel = p->x_pixel,
                         .y_plane = p->dy.stride[0],
                         .y_row = p->dy.stride[2],
                         .y_vector = p->dy.stride[1],
                         .y = dy,
                         .planes = planes,
                         .rows = rows,
                         .pixels = g->Q,
                         .to_row = width };
    for (int64_t o = 0; o < p->outer; o++)
        for (int64_t r = 0; r < g->R; r++, to += p->inner * width)
            for (int64_t i = 0; i < cuts; i++) {
                int64_t first = inner * i / cuts;
                t.x = x + o * p->x_outer + r * g->dilation[1] * p->x_row + first;
                t.to = to + first * width;
                bring(p, soon, &t);
                outer->of[inner * (i + 1) / cuts - first][n - 1](&t);
            }
}

/* The sums of one block and chunk into dw, without the lanes after the last channels:  lines of
 * output channels are laid in the order of dw's numbers, and transposed by squares. */
static void put(const plan *p, const float *sums, int64_t block, int64_t chunk, int n, float *dw) {
    const fac_conv_geom *g = &p->g;
    int64_t lanes = p->cpu->simd->lanes, width = n * lanes, k0 = chunk * 2 * lanes,
            taps = g->R * g->S;
    int64_t each = g->C * taps, last = g->K - k0 < width ? g->K - k0 : width;
    int64_t inner = inner_of(p, block), count = p->outer * g->R * inner;
    float lines[MOST_LANES * 2 * MOST_LANES], *to = dw + k0 * each + block * lanes * taps;
    for (int64_t from = 0; from < count; from += lanes) {
        const int64_t here = count - from < lanes ? count - from : lanes;
        for (int64_t k = 0; k < here; k++) {
            const int64_t at = from + k, high = at / taps, r = at % taps / g->S, low = at % g->S;
            const int64_t tile =
                p->planar ? (high * g->R + r) * p->inner + low : (low * g->R + r) * p->inner + high;
            memcpy(lines + k * width, sums + tile * width, (size_t)width * sizeof *sums);
        }
        p->cpu->simd->transpose(lines, width, to + from, each, here, last);
    }
}

/* The blocks and chunks of a group of them, as even shares. */
typedef struct group {
    int64_t block, blocks, chunk, chunks;
} group;

static group group_of(const plan *p, int64_t i) {
    int64_t b = i % p->block_groups, c = i / p->block_groups % p->chunk_groups;
    group g = { p->blocks * b / p->block_groups, 0, p->chunks * c / p->chunk_groups, 0 };
    g.blocks = p->blocks * (b + 1) / p->block_groups - g.block;
    g.chunks = p->chunks * (c + 1) / p->chunk_groups - g.chunk;
    return g;
}

static void put_group(const plan *p, const group *own, const float *sums, float *dw) {
    for (int64_t c = own->chunk; c < own->chunk + own->chunks; c++)
        for (int64_t b = own->block; b < own->block + own->blocks; b++, sums += p->tile)
            put(p, sums, b, c, fac_chunk_vectors(p->g.K, p->cpu->simd->lanes, c), dw);
}

/* [part][group] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_conv_geom *g = &p->g;
    int64_t part = i / (p->block_groups * p->chunk_groups);
    int64_t from = g->N * g->P * part / p->parts, end = g->N * g->P * (part + 1) / p->parts,
            lanes = p->cpu->simd->lanes;
    const group own = group_of(p, i);
    float *sums = j->sums + (p->parts > 1 ? (size_t)i : (size_t)thread) * p->sums;
    memset(sums, 0, p->sums * sizeof *sums);
    for (int64_t rows, planes; from < end; from += rows * planes) {
        int64_t image = from / g->P, row = from % g->P;
        rows = g->P - row < p->strip ? g->P - row : p->strip;
        if (rows > end - from) rows = end - from;
        planes = rows == g->P && p->strip > g->P ? p->strip / g->P : 1;
        if (planes * rows > end - from) planes = (end - from) / rows;
        const float *x = j->x + image * p->x_image + row * g->stride[1] * p->x_row;
        const float *dy = j->dy + image * p->dy.stride[0] + row * p->dy.stride[2];
        ahead soon = { .blocks = own.blocks,
                       .vectors = (g->K + lanes - 1) / lanes - 2 * own.chunk };
        if (soon.vectors > 2 * own.chunks) soon.vectors = 2 * own.chunks;
        if (from + rows * planes < end) {
            int64_t then = (from + rows * planes) / g->P, at = (from + rows * planes) % g->P;
            soon.x =
                j->x + own.block * p->x_block + then * p->x_image + at * g->stride[1] * p->x_row;
            soon.dy = j->dy + 2 * own.chunk * p->dy.stride[1] + then * p->dy.stride[0] +
                      at * p->dy.stride[2];
        }
        float *to = sums;
        for (int64_t c = own.chunk; c < own.chunk + own.chunks; c++)
            for (int64_t b = own.block; b < own.block + own.blocks; b++, to += p->tile)
                add_strip(p, x + b * p->x_block, dy + 2 * c * p->dy.stride[1], planes, rows,
                          inner_of(p, b), fac_chunk_vectors(g->K, (int)lanes, c), &soon, to);
    }
    if (p->parts == 1) put_group(p, &own, sums, j->dw);
}

/* [group]: the parts of an item, in their order. */
static void join(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    int64_t items = p->block_groups * p->chunk_groups;
    float *sums = j->sums + (size_t)i * p->sums;
    const group own = group_of(p, i);
    (void)thread;
    for (int64_t part = 1; part < p->parts; part++) {
        const float *more = j->sums + (size_t)(part * items + i) * p->sums;
        for (size_t k = 0; k < p->sums; k++) sums[k] += more[k];
    }
    put_group(p, &own, sums, j->dw);
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    const fac_pool *pool = &p->cpu->pool;
    float *sums = fac_span_packed(work);
    job j = { p, (const float *)((const char *)in[0].memory + in[0].at) + p->x_offset,
              fac_span_floats(in[1], &p->dy), fac_span_floats(out[0], &p->dw), sums };
    (void)d, (void)err;
    if (p->padded.needed) {
        float *copy =
            sums + p->sums * (size_t)(p->parts > 1 ? p->parts * p->block_groups * p->chunk_groups
                                                   : pool->threads);
        fac_padded_copy(pool, &p->g, &p->padded, j.x, copy);
        j.x = copy;
    }
    fac_parallel(pool, (int)(p->parts * p->block_groups * p->chunk_groups), item, &j);
    if (p->parts > 1) fac_parallel(pool, (int)(p->block_groups * p->chunk_groups), join, &j);
    return FAC_OK;
}

/* ---- offer and make ---- */

/* Groups as large as the room for their sums, then as small as it takes to have ITEMS of them:
 * whichever side reads less for it is halved, down to where that would read more than the sums of
 * parts of the rows are. */
static void group_up(plan *p) {
    int64_t b = p->blocks, c = p->chunks;
    for (;;) {
        bool large = b * c > 1 && (double)(b * c) * (double)p->tile * sizeof(float) > SUMS_BYTES;
        bool few = (p->blocks + b - 1) / b * ((p->chunks + c - 1) / c) < ITEMS && b > LEAST_GROUP &&
                   2 * c > LEAST_GROUP;
        if (!large && !few) break;
        if (c > 1 && (2 * c >= b || b == 1))
            c = (c + 1) / 2;
        else
            b = (b + 1) / 2;
    }
    p->block_groups = (p->blocks + b - 1) / b;
    p->chunk_groups = (p->chunks + c - 1) / c;
    p->few_blocks = (p->blocks + p->block_groups - 1) / p->block_groups;
    p->few_chunks = (p->chunks + p->chunk_groups - 1) / p->chunk_groups;
}

/* All but the layouts. */
static bool settle(plan *p, const fac_problem *problem, size_t *work) {
    const fac_conv_geom *g = &p->g;
    int64_t lanes = p->cpu->simd->lanes, threads = p->cpu->pool.threads;
    if (!fac_cpu_conv_grad(problem, &p->g) || g->rank != 2 || g->groups != 1) return false;
    if (p->planar && (g->C > MOST_PLANAR || g->dilation[2] != 1)) return false;
    p->blocks = p->planar ? 1 : (g->C + lanes - 1) / lanes;
    p->chunks = fac_chunks(g->K, (int)lanes);
    p->outer = p->planar ? g->C : g->S;
    p->inner = p->planar ? g->S : lanes;

    /* of x: what some tap sees */
    int64_t down = g->R < g->stride[1] ? g->R : g->stride[1],
            across = g->S < g->stride[2] ? g->S : g->stride[2];
    int64_t row_bytes =
        4 * g->Q * (p->planar ? g->C * g->stride[2] : lanes * down * across) + 4 * g->Q * 2 * lanes;
    p->strip = STRIP_BYTES / row_bytes > 0 ? STRIP_BYTES / row_bytes : 1;
    if (!fac_size_mul((size_t)(p->outer * g->R), (size_t)(p->inner * 2 * lanes), &p->tile))
        return false;
    group_up(p);
    int64_t rows = g->N * g->P, items = p->block_groups * p->chunk_groups,
            most = rows * g->Q / PIXELS_OF_PART;
    if (most > rows) most = rows;
    p->parts = items >= ITEMS ? 1 : (ITEMS + items - 1) / items;
    if (p->parts > most) p->parts = most > 0 ? most : 1;
    if (items > INT_MAX / p->parts) return false;

    size_t sums, copy = 0;
    bool fits = fac_size_mul(p->tile, (size_t)(p->few_blocks * p->few_chunks), &p->sums) &&
                fac_size_mul(p->sums, (size_t)(p->parts > 1 ? p->parts * items : threads), &sums) &&
                fac_size_mul(sums, sizeof(float), &sums);
    if (p->planar) {
        p->padded = fac_padded_of(g);
        fits = fits && fac_padded_bytes(g, &p->padded, &copy);
    }
    return fits && fac_size_add(sums, copy, work);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const bool planar = *(const bool *)p->solver->how;
    plan q = { .cpu = fac_cpu_of(d), .planar = planar };
    const fac_conv_geom *g = &q.g;
    if (!settle(&q, p, &o->work)) return false;
    int64_t halo = planar ? 0 : fac_conv_halo(g);
    if (halo > FAC_HALO_MOST) return false;
    if (planar)
        fac_want_plain(&p->in[0]);
    else
        fac_want_blocked(q.cpu, &p->in[0], halo);
    fac_want_blocked(q.cpu, &p->in[1], 0);
    fac_want_plain(&p->out[0]);
    int lanes = q.cpu->simd->lanes;
    double macs = (double)(g->N * g->P) * (double)(g->Q * g->R) *
                  (double)(q.outer * q.inner * q.blocks) * (double)fac_bias_bytes(g->K, lanes) / 4;
    double moved = 4 * (double)g->N * (double)(g->C * g->H * g->W + g->K * g->P * g->Q) +
                   8 * (double)(g->K * g->C * g->R * g->S);
    o->seconds = fac_cpu_seconds(q.cpu, 2 * macs, planar ? 0.6 : 0.8, moved);
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    const fac_conv_geom *g = &q->g;
    const fac_layout *x = &p->in[0].layout;
    q->dy = p->in[1].layout;
    q->dw = p->out[0].layout;
    if (q->planar) {
        q->x_offset = x->offset;
        q->x_image = g->C * q->padded.plane;
        q->x_row = q->padded.row;
        q->x_pixel = g->stride[2];
        q->x_outer = q->padded.plane;
    } else {
        q->x_offset = x->offset - g->pad[1] * x->stride[2] - g->pad[2] * x->stride[3];
        q->x_image = x->stride[0];
        q->x_block = x->stride[1];
        q->x_row = x->stride[2];
        q->x_pixel = g->stride[2] * x->stride[3];
        q->x_outer = g->dilation[2] * x->stride[3];
    }
    *out = q;
    return FAC_OK;
}
const fac_solver fac_cpu_conv_grad_w_direct = { .name = "conv2d_grad_w/direct",
                                                .op = &fac_op_conv2d_grad_w,
                                                .rank = 510,
                                                .how = &(const bool){ false },
                                                .offer = offer,
                                                .make = make,
                                                .done = fac_solver_done,
                                                .run = run };
const fac_solver fac_cpu_conv_grad_w_first = { .name = "conv2d_grad_w/first",
                                               .op = &fac_op_conv2d_grad_w,
                                               .rank = 520,
                                               .how = &(const bool){ true },
                                               .offer = offer,
                                               .make = make,
                                               .done = fac_solver_done,
                                               .run = run };
