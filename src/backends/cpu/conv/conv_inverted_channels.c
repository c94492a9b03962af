/* Inverted residuals, a share of the expanded channels for each thread: for small images, where
 * bands of rows would compute much of e twice and weights are most of what is read.
 *
 * A thread expands and convolves all rows of its channels, two vectors of them at a time in the
 * first cache, and projects what it has: a part of the sum over k for all outputs.  The first
 * share's part begins with bias and residual and lies in y; the others' are added to it after
 * that, in their order.  Every weight is read by one core, and between cores go x and parts of y
 * only: what one core has just written comes to another more slowly than from memory. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "backends/cpu/conv/conv_inverted.h"
#include "base/memory.h"

/* Chunks first .. end - 1 of e's channels, and the channels that these are. */
typedef struct share {
    int64_t first, end, channel, channels;
} share;

static share share_of(const fac_inverted *p, int64_t k) {
    const int64_t lanes = p->cpu->simd->lanes, chunks = fac_chunks(p->e.g.K, (int)lanes);
    share s = { .first = chunks * k / p->parts, .end = chunks * (k + 1) / p->parts };
    s.channel = 2 * s.first * lanes;
    s.channels =
        2 * s.end * lanes < p->e.g.K ? 2 * (s.end - s.first) * lanes : p->e.g.K - s.channel;
    return s;
}

/* Floats of one share's part of y of an image: [block][pixel][lane]. */
static int64_t part_floats(const fac_inverted *p) {
    const int64_t lanes = p->cpu->simd->lanes;
    return (p->p.g.K + lanes - 1) / lanes * p->p.g.P * p->p.g.Q * lanes;
}

/* Lines of `floats` weights to bring in with each of `places` channel blocks of tiles. */
static int lines_of(int64_t floats, int64_t places) {
    return (int)((floats / 16 + places - 1) / places);
}

/* All rows of e, for one chunk of channels, in few calls: two short rows are a tile; of rows of a
 * few tiles the first one of all rows is done before the second; long rows one by one. */
enum { FEW_TILES = 3 };
static void expand(const fac_inverted_job *j, const float *x, float *ring, int64_t chunk) {
    const fac_inverted *p = j->p;
    const fac_simd *s = p->cpu->simd;
    const fac_conv_geom *g = &p->e.g;
    const int64_t lanes = s->lanes, C = (g->C + lanes - 1) / lanes,
                  across = (g->W + s->rows - 1) / s->rows;
    const int64_t two = 2 * g->W <= s->rows && g->H > 1 ? 2 : 1,
                  tiles = across * ((g->H + two - 1) / two);
    const int n = fac_chunk_vectors(g->K, (int)lanes, chunk);
    fac_conv_tile t = fac_inverted_tile(j, 0, &p->e, chunk);
    t.x_block = p->x.stride[1];
    t.y_vector = p->plane;
    t.here = true;
    t.x_next = two * p->x.stride[2];
    t.y_next = two * p->row;
    t.tiles = g->H / two;
    t.ahead = t.w + g->C * n * lanes;
    if (chunk + 1 < fac_chunks(g->K, (int)lanes))
        t.ahead_lines = lines_of(g->C * n * lanes, C * tiles);
    t.x0 = x;
    t.y0 = ring + p->d.g.pad[1] * p->row + p->d.g.pad[2] * lanes;
    if (two == 2) {
        t.x1 = x + p->x.stride[2];
        t.y1 = t.y0 + p->row;
        s->tile[FAC_TILE_NEAR].of[2 * g->W][n - 1](&t);
        t.x0 += t.tiles * t.x_next;
        t.y0 += t.tiles * t.y_next;
        t.ahead += t.tiles * C * t.ahead_lines * 16;
        if (g->H % 2) fac_inverted_row(s, FAC_TILE_NEAR, t, g->W, n);
        return;
    }
    for (int64_t row = 0; row < g->H && across > FEW_TILES; row++) {
        fac_inverted_row(s, FAC_TILE_NEAR, t, g->W, n);
        t.x0 += t.x_next;
        t.y0 += t.y_next;
        t.ahead += C * across * t.ahead_lines * 16;
    }
    for (int64_t i = 0; i < across && across <= FEW_TILES; i++) {
        const int m = (int)(g->W / across + (i < g->W % across)), half = (m + 1) / 2;
        t.x1 = t.x0 + half * lanes;
        t.y1 = t.y0 + half * lanes;
        s->tile[FAC_TILE_NEAR].of[m][n - 1](&t);
        t.x0 += m * lanes;
        t.y0 += m * lanes;
        t.ahead += t.tiles * C * t.ahead_lines * 16;
    }
}

/* All rows of d, for one chunk of channels. */
static void convolve(const fac_inverted_job *j, const float *ring, float *strip, int64_t chunk) {
    const fac_inverted *p = j->p;
    const fac_conv_geom *g = &p->d.g;
    const int64_t lanes = p->cpu->simd->lanes, n = fac_chunk_vectors(g->K, (int)lanes, chunk);
    for (int64_t k = 0; k < n; k++) {
        fac_depthwise t = fac_inverted_depthwise(j, 2 * chunk + k);
        t.rows = g->P;
        t.x_next = g->stride[1] * p->row;
        t.y_next = g->Q * lanes;
        t.x = ring + k * p->plane;
        t.y = strip + k * p->d_plane;
        p->cpu->simd->depthwise(&t);
    }
}

/* The padding around the rows of the ring, which nothing writes. */
static void clear_sides(const fac_inverted *p, float *ring) {
    const fac_conv_geom *g = &p->e.g;
    const int64_t lanes = p->cpu->simd->lanes, side = p->d.g.pad[2] * lanes,
                  from = p->d.g.pad[1] * p->row + side;
    const int64_t inside = g->W * lanes, end = from + (g->H - 1) * p->row + inside;
    for (int k = 0; k < 2; k++, ring += p->plane) {
        memset(ring, 0, (size_t)from * sizeof *ring);
        for (int64_t row = 1; row < g->H; row++)
            memset(ring + from + row * p->row - (p->row - inside), 0,
                   (size_t)(p->row - inside) * sizeof *ring);
        memset(ring + end, 0, (size_t)(p->plane - end) * sizeof *ring);
    }
}

/* What `s` adds to y; at part, or, with the bias and the residual, in y. */
static void project(const fac_inverted_job *j, const float *strip, const share *s, float *y,
                    const float *r, float *part) {
    const fac_inverted *p = j->p;
    const fac_conv_geom *g = &p->p.g;
    const int64_t lanes = p->cpu->simd->lanes, pixels = g->P * g->Q,
                  chunks = fac_chunks(g->K, (int)lanes);
    const int64_t tiles = (pixels + p->cpu->simd->rows - 1) / p->cpu->simd->rows,
                  blocks = (s->channels + lanes - 1) / lanes;
    const bool flat =
        part || (p->y.stride[2] == g->Q * lanes && (!r || p->r.stride[2] == g->Q * lanes));
    for (int64_t k = 0; k < chunks; k++) {
        const int n = fac_chunk_vectors(g->K, (int)lanes, k), outputs = fac_inverted_outputs(p, k);
        fac_conv_tile t = fac_inverted_tile(j, 2, &p->p, k);
        t.lo = -INFINITY;
        t.hi = INFINITY;
        t.w += s->channel * n * lanes;
        t.channels = (int)s->channels;
        t.x_block = p->d_plane;
        t.x0 = strip;
        t.y_vector = part ? pixels * lanes : p->y.stride[1];
        t.y0 = (part ? part : y) + 2 * k * t.y_vector;
        if (part) t.bias = NULL;
        if (r) {
            t.r_vector = p->r.stride[1];
            t.r0 = r + 2 * k * t.r_vector;
        }
        if (k + 1 < chunks) {
            t.ahead =
                t.w +
                (g->C * n + s->channel * (fac_chunk_vectors(g->K, (int)lanes, k + 1) - n)) * lanes;
            t.ahead_lines = lines_of(s->channels * n * lanes, blocks * tiles);
        }
        if (flat) fac_inverted_row(p->cpu->simd, FAC_TILE_NEAR, t, pixels, outputs);
        for (int64_t row = 0; row < g->P && !flat; row++) {
            fac_inverted_row(p->cpu->simd, FAC_TILE_NEAR, t, g->Q, outputs);
            t.x0 += g->Q * lanes;
            t.y0 += p->y.stride[2];
            if (r) t.r0 += p->r.stride[2];
        }
    }
}

/* [image][share] */
static void item(void *arg, int i, int thread) {
    const fac_inverted_job *j = arg;
    const fac_inverted *p = j->p;
    const int64_t image = i / p->parts, k = i % p->parts;
    const share s = share_of(p, k);
    const float *x = j->x + image * p->x.stride[0],
                *r = j->r ? j->r + image * p->r.stride[0] : NULL;
    float *ring = j->work + (size_t)thread * p->per_thread, *strip = ring + 2 * p->plane;
    float *parts = j->work + (size_t)p->cpu->pool.threads * p->per_thread;
    clear_sides(p, ring);
    for (int64_t chunk = s.first; chunk < s.end; chunk++) {
        expand(j, x, ring, chunk);
        convolve(j, ring, strip + 2 * (chunk - s.first) * p->d_plane, chunk);
    }
    if (k)
        project(j, strip, &s, NULL, NULL,
                parts + (image * (p->parts - 1) + k - 1) * part_floats(p));
    else
        project(j, strip, &s, j->y + image * p->y.stride[0], r, NULL);
}

/* [image][block of y]: the other shares' parts, and the clip that follows all of the sum. */
static void join(void *arg, int i, int thread) {
    const fac_inverted_job *j = arg;
    const fac_inverted *p = j->p;
    const int64_t lanes = p->cpu->simd->lanes, blocks = (p->p.g.K + lanes - 1) / lanes,
                  width = p->p.g.Q * lanes;
    const int64_t image = i / blocks, block = i % blocks, all = part_floats(p);
    const float *parts =
        j->work + (size_t)p->cpu->pool.threads * p->per_thread + image * (p->parts - 1) * all;
    const float lo = p->p.lo, hi = p->p.hi;
    (void)thread;
    for (int64_t row = 0; row < p->p.g.P; row++) {
        float *y = j->y + image * p->y.stride[0] + block * p->y.stride[1] + row * p->y.stride[2];
        const float *part = parts + (block * p->p.g.P + row) * width;
        for (int64_t k = 1; k < p->parts; k++, part += all)
            for (int64_t q = 0; q < width; q++) y[q] += part[q];
        if (lo > -INFINITY || hi < INFINITY)
            for (int64_t q = 0; q < width; q++) {
                const float v = y[q] < lo ? lo : y[q];
                y[q] = v > hi ? hi : v;
            }
    }
}

void fac_inverted_channels(const fac_inverted_job *j) {
    const fac_inverted *p = j->p;
    const int64_t lanes = p->cpu->simd->lanes, blocks = (p->p.g.K + lanes - 1) / lanes;
    fac_parallel(&p->cpu->pool, (int)(p->e.g.N * p->parts), item, (void *)(uintptr_t)j);
    fac_parallel(&p->cpu->pool, (int)(p->e.g.N * blocks), join, (void *)(uintptr_t)j);
}

bool fac_inverted_channels_plan(fac_inverted *p, size_t *work) {
    const fac_conv_geom *e = &p->e.g, *d = &p->d.g;
    const int64_t lanes = p->cpu->simd->lanes, chunks = fac_chunks(e->K, (int)lanes),
                  threads = p->cpu->pool.threads;
    const int64_t across = (d->Q - 1) * d->stride[2] + d->S,
                  down = (d->P - 1) * d->stride[1] + d->R;
    size_t strip, parts;
    p->blocks = (d->C + lanes - 1) / lanes;
    p->parts = threads < chunks ? threads : chunks;
    p->row = (across > d->W + d->pad[2] ? across : d->W + d->pad[2]) * lanes;
    p->plane = ((down > d->H + d->pad[1] ? down : d->H + d->pad[1]) * p->row / lanes | 1) * lanes;
    p->d_plane = (d->P * d->Q | 1) * lanes;
    if (e->N > INT_MAX / (p->parts + p->blocks)) return false;
    if (!fac_size_mul((size_t)(2 * ((chunks + p->parts - 1) / p->parts)), (size_t)p->d_plane,
                      &strip))
        return false;
    if (!fac_size_add(2 * (size_t)p->plane, strip, &p->per_thread)) return false;
    if (!fac_size_mul((size_t)(e->N * (p->parts - 1)), (size_t)part_floats(p), &parts))
        return false;
    if (!fac_size_mul(p->per_thread, (size_t)threads, work) || !fac_size_add(*work, parts, work))
        return false;
    return fac_size_mul(*work, sizeof(float), work);
}
