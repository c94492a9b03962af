/* Inverted residuals, a strip of output rows after the other: the expanded rows never leave the
 * second cache.
 *
 * A thread has a band of rows of an image to itself, with a ring of expanded rows and a strip of
 * convolved ones; the rows of e that two bands look at are computed twice.  A strip is short enough
 * for two chunks of channels of ring and strip to stay in the first cache, where one chunk's rows
 * are expanded and convolved at once.  The same sums in the same order as the three solvers apart.
 */
#include <string.h>
#include "backends/cpu/conv/conv_inverted.h"
#include "base/memory.h"

enum { STRIP = 4 }; /* rows of outputs in a strip, at most */

/* A first layer: the rows of x that rows first .. last - 1 of e look at, with their padding, to the
 * thread's window. */
static void open_window(const fac_inverted_job *j, int64_t image, int64_t first, int64_t last,
                        float *window) {
    const fac_inverted *p = j->p;
    const fac_conv_geom *g = &p->e.g;
    const int64_t top = first * g->stride[1],
                  end = (last - 1) * g->stride[1] + (g->R - 1) * g->dilation[1] + 1;
    for (int64_t c = 0; c < g->C; c++) {
        float *to = window + c * p->window_plane;
        for (int64_t row = top; row < end; row++, to += p->padded.row)
            fac_padded_row(g, &p->padded, j->x, image * g->C + c, row, to);
    }
}

/* Rows first .. last - 1 of e, number `from` of which lies in slot 0 of the ring, for one chunk of
 * channels; rows outside of the image are the padding.  x: row 0 of the image, or of a first layer
 * the window's row for the first one inside. */
static void expand(const fac_inverted_job *j, const float *x, float *ring, int64_t chunk,
                   int64_t from, int64_t first, int64_t last) {
    const fac_inverted *p = j->p;
    const fac_conv_geom *g = &p->e.g;
    const int64_t lanes = p->cpu->simd->lanes,
                  x_row = p->planar ? g->stride[1] * p->padded.row : p->x.stride[2];
    const int n = fac_chunk_vectors(g->K, (int)lanes, chunk);
    fac_conv_tile t = fac_inverted_tile(j, 0, &p->e, chunk);
    t.x_block = p->x.stride[1];
    t.y_vector = p->plane;
    t.here = true;
    if (p->planar) {
        t.x_pixel = g->stride[2];
        t.x_block = p->window_plane;
        t.R = (int)g->R;
        t.S = (int)g->S;
        t.x_row = g->dilation[1] * p->padded.row;
        t.x_column = g->dilation[2];
        x -= (first < 0 ? 0 : first) * x_row;
    }
    for (int64_t row = first; row < last; row++) {
        float *to =
            ring + 2 * chunk * p->plane + (row - from) % p->ring * p->row + p->d.g.pad[2] * lanes;
        t.x0 = x + row * x_row;
        t.y0 = to;
        if (row >= 0 && row < g->P)
            fac_inverted_row(p->cpu->simd, p->planar ? FAC_TILE_PLANAR : FAC_TILE_NEAR, t, g->Q, n);
        else
            for (int k = 0; k < n; k++)
                memset(to + k * p->plane, 0, (size_t)(g->Q * lanes) * sizeof *to);
    }
}

/* Rows y0 .. y0 + count - 1 of d, for one chunk of channels. */
static void convolve(const fac_inverted_job *j, const float *ring, float *strip, int64_t chunk,
                     int64_t from, int64_t y0, int64_t count) {
    const fac_inverted *p = j->p;
    const fac_conv_geom *g = &p->d.g;
    const int64_t lanes = p->cpu->simd->lanes,
                  end = 2 * chunk + fac_chunk_vectors(g->K, (int)lanes, chunk);
    for (int64_t block = 2 * chunk; block < end; block++) {
        fac_depthwise t = fac_inverted_depthwise(j, block);
        t.x_ring = p->ring * p->row;
        for (int64_t i = 0; i < count; i++) {
            const int64_t slot = ((y0 + i) * g->stride[1] - g->pad[1] - from) % p->ring;
            t.x = ring + block * p->plane + slot * p->row;
            t.x_end = (int)(p->ring - slot);
            t.y = strip + block * p->d_plane + i * g->Q * lanes;
            p->cpu->simd->depthwise(&t);
        }
    }
}

/* The strip to rows y0 .. y0 + count - 1 of y. */
static void project(const fac_inverted_job *j, const float *strip, float *y, const float *r,
                    int64_t y0, int64_t count) {
    const fac_inverted *p = j->p;
    const fac_conv_geom *g = &p->p.g;
    const int lanes = p->cpu->simd->lanes;
    for (int64_t k = 0; k < fac_chunks(g->K, lanes); k++) {
        fac_conv_tile t = fac_inverted_tile(j, 2, &p->p, k);
        t.x_block = p->d_plane;
        t.y_vector = p->y.stride[1];
        t.r_vector = p->r.stride[1];
        for (int64_t i = 0; i < count; i++) {
            t.x0 = strip + i * g->Q * lanes;
            t.y0 = y + 2 * k * p->y.stride[1] + (y0 + i) * p->y.stride[2];
            if (r) t.r0 = r + 2 * k * p->r.stride[1] + (y0 + i) * p->r.stride[2];
            fac_inverted_row(p->cpu->simd, FAC_TILE_NEAR, t, g->Q, fac_inverted_outputs(p, k));
        }
    }
}

/* The padding at both ends of the rows of the ring, which nothing writes. */
static void clear_sides(const fac_inverted *p, float *ring) {
    const int64_t lanes = p->cpu->simd->lanes, before = p->d.g.pad[2] * lanes,
                  inside = p->e.g.Q * lanes;
    for (int64_t block = 0; block < p->blocks; block++)
        for (int64_t i = 0; i < p->ring; i++) {
            float *row = ring + block * p->plane + i * p->row;
            memset(row, 0, (size_t)before * sizeof *row);
            memset(row + before + inside, 0, (size_t)(p->row - before - inside) * sizeof *row);
        }
}

/* [image][band] */
static void item(void *arg, int i, int thread) {
    const fac_inverted_job *j = arg;
    const fac_inverted *p = j->p;
    const fac_conv_geom *g = &p->d.g;
    const int64_t image = i / p->parts, band = i % p->parts, end = g->P * (band + 1) / p->parts;
    const float *x = j->x + image * p->x.stride[0],
                *r = j->r ? j->r + image * p->r.stride[0] : NULL;
    float *ring = j->work + (size_t)thread * p->per_thread, *strip = ring + p->blocks * p->plane;
    float *window = strip + p->blocks * p->d_plane;
    int64_t y = g->P * band / p->parts;
    const int64_t from = y * g->stride[1] - g->pad[1];
    clear_sides(p, ring);
    for (int64_t next = from; y < end; y += p->strip) {
        const int64_t count = end - y < p->strip ? end - y : p->strip;
        const int64_t last = (y + count - 1) * g->stride[1] - g->pad[1] + g->R;
        const int64_t first = next < 0 ? 0 : next;
        const int64_t inside = last < p->e.g.P ? last : p->e.g.P;
        if (p->planar && first < inside) open_window(j, image, first, inside, window);
        for (int64_t k = 0; k < fac_chunks(g->K, p->cpu->simd->lanes); k++) {
            expand(j, p->planar ? window : x, ring, k, from, next, last);
            convolve(j, ring, strip, k, from, y, count);
        }
        if (next < last) next = last;
        project(j, strip, j->y + image * p->y.stride[0], r, y, count);
    }
}

void fac_inverted_rows(const fac_inverted_job *j) {
    fac_parallel(&j->p->cpu->pool, (int)(j->p->e.g.N * j->p->parts), item, (void *)(uintptr_t)j);
}

bool fac_inverted_rows_plan(fac_inverted *q, size_t *work) {
    const fac_conv_geom *g = &q->d.g;
    const int64_t lanes = q->cpu->simd->lanes, threads = q->cpu->pool.threads;
    const int64_t across = (g->Q - 1) * g->stride[2] + g->S, inside = g->W + g->pad[2];
    size_t ring, strip;
    q->blocks = (g->C + lanes - 1) / lanes;
    q->parts = threads < g->P ? threads : g->P;
    if (g->N % threads == 0) q->parts = 1;
    q->strip = STRIP < g->P ? STRIP : g->P;
    q->ring = (q->strip - 1) * g->stride[1] + g->R;
    q->row = (across > inside ? across : inside) * lanes;
    /* an odd number of vectors between blocks keeps them on different sets of the first cache */
    q->plane = (q->ring * q->row / lanes | 1) * lanes;
    q->d_plane = (q->strip * g->Q | 1) * lanes;
    if (!fac_size_mul((size_t)q->blocks, (size_t)q->plane, &ring)) return false;
    if (!fac_size_mul((size_t)q->blocks, (size_t)q->d_plane, &strip) ||
        !fac_size_add(ring, strip, &q->per_thread))
        return false;
    if (q->planar) {
        const fac_conv_geom *e = &q->e.g;
        size_t all;
        q->padded = fac_padded_of(e);
        if (!fac_padded_bytes(e, &q->padded, &all)) return false;
        const int64_t rows = q->ring > q->strip * g->stride[1] ? q->ring : q->strip * g->stride[1];
        const int64_t window = (rows - 1) * e->stride[1] + (e->R - 1) * e->dilation[1] + 1;
        if (!fac_size_mul((size_t)window, (size_t)q->padded.row, &all) ||
            all > (size_t)INT64_MAX / 8)
            return false;
        q->window_plane = (int64_t)all;
        if (!fac_size_add(q->per_thread, (size_t)(e->C * q->window_plane), &q->per_thread))
            return false;
    }
    return fac_size_mul(q->per_thread, (size_t)threads * sizeof(float), work);
}
