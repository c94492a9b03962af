/* Matrix products from packed operands: see gemm.h.  After Goto and van de Geijn, "Anatomy of
 * high-performance matrix multiplication", TOMS 2008, with the roles of rows and columns as a
 * convolution has them. */
#include <math.h>
#include <string.h>
#include "backends/cpu/product/gemm.h"

enum {
    STEPS = 512, /* of the sum between two pieces of the next panel: less would be all overhead   */
    TRANSPOSED =
        8 /* tiles that are packed at once: few lines of a transposed a are in two of them */
};

static int64_t tile_row(const fac_simd *s, int64_t M, int64_t i) {
    return M * i / fac_gemm_tiles(s, M);
}

/* n floats, whose usual numbers are known when compiled: a call for each vector would cost as much
 * as the copy. */
static inline void copy_lanes(float *to, const float *from, int64_t n) {
    if (n == 32)
        memcpy(to, from, 32 * sizeof *to);
    else if (n == 16)
        memcpy(to, from, 16 * sizeof *to);
    else if (n == 8)
        memcpy(to, from, 8 * sizeof *to);
    else
        memcpy(to, from, (size_t)n * sizeof *to);
}

/* to[j][i] = from[i][j], element i, j of which lies at i row + j column; in squares where rows are
 * no rows of memory either, so that neither side walks through memory in large steps. */
static void transpose(const fac_simd *s, const float *from, int64_t row, int64_t column,
                      int64_t rows, int64_t columns, float *to, int64_t to_row) {
    enum { SIDE = 16 };
    if (column == 1) {
        s->transpose(from, row, to, to_row, rows, columns);
        return;
    }
    for (int64_t i0 = 0; i0 < rows; i0 += SIDE)
        for (int64_t j = 0; j < columns; j++)
            for (int64_t i = i0; i < rows && i < i0 + SIDE; i++)
                to[j * to_row + i] = from[i * row + j * column];
}

void fac_gemm_pack_a(const fac_simd *s, const float *a, int64_t row, int64_t column, int64_t M,
                     int64_t t0, int64_t t1, int64_t first, int64_t last, float alpha, float *to) {
    const int64_t lanes = s->lanes, depth = fac_gemm_padded(s, last - first),
                  m0 = tile_row(s, M, t0), end = tile_row(s, M, t1);
    /* transposed: a line of memory belongs to several tiles, and is read once */
    for (int64_t k = first; k < last && column != 1; k += lanes)
        for (int64_t t = t0, m = m0, next; t < t1; t++, m = next) {
            next = tile_row(s, M, t + 1);
            transpose(s, a + m * row + k * column, column, row, last - k < lanes ? last - k : lanes,
                      next - m, to + (m - m0) * depth + (k - first) * (next - m), lanes);
        }
    for (int64_t t = t0, m = m0, next; t < t1 && column == 1; t++, m = next) {
        next = tile_row(s, M, t + 1);
        s->pack_rows(a + m * row + first, row, (int)(next - m), last - first,
                     to + (m - m0) * depth);
    }
    for (int64_t k = 0; k < (end - m0) * depth && alpha != 1; k++) to[k] *= alpha;
}

void fac_gemm_pack_b(const fac_simd *s, const float *b, int64_t row, int64_t column, int64_t K,
                     int64_t N, int64_t p, float *to) {
    int64_t n0 = p * 2 * s->lanes, width = N - n0 > s->lanes ? 2 * s->lanes : s->lanes,
            here = N - n0 < width ? N - n0 : width;
    b += n0 * column;
    if (column == 1)
        for (int64_t k = 0; k < K; k++) copy_lanes(to + k * width, b + k * row, here);
    else
        transpose(s, b, column, row, here, K, to, width);
    if (here < width)
        for (int64_t k = 0; k < K; k++)
            memset(to + k * width + here, 0, (size_t)(width - here) * sizeof *to);
}

/* Columns that do not fill their vectors: the tile works on a copy with whole vectors. */
static void edge_tile(fac_conv_tile *t, fac_conv_tile_kernel *kernel, int m, int width, int columns,
                      float *edge) {
    int half = (m + 1) / 2;
    float *y = t->y0, *re = edge + m * width;
    const float *r = t->r0;
    int64_t y_row = t->y_pixel, r_row = t->r_pixel;
    if (r) {
        for (int i = 0; i < m; i++)
            memcpy(re + i * width, r + i * r_row, (size_t)columns * sizeof *re);
        t->r0 = re;
        t->r1 = re + half * width;
        t->r_pixel = width;
    }
    t->y0 = edge;
    t->y1 = edge + half * width;
    t->y_pixel = width;
    kernel(t);
    for (int i = 0; i < m; i++)
        memcpy(y + i * y_row, edge + i * width, (size_t)columns * sizeof *y);
}

/* What a tile asks for while it works: for each of `tiles` tiles a line at each step of its
 * channels. */
typedef struct ahead {
    const float *at;
    int lines;
    int64_t step, block, tile, tiles;
} ahead;

/* Panel p of the slab at.k0..at.k1-1, w, with tiles at.t0..at.t1-1 of a.  row 0: a is packed. */
static void panel(const fac_gemm_job *g, fac_gemm_block at, int64_t p, const float *a,
                  int64_t depth, int64_t row, const float *w, ahead next, fac_tile_fill copy,
                  float *edge) {
    const fac_simd *s = g->simd;
    const int64_t lanes = s->lanes, all = fac_gemm_tiles(s, g->M), first = g->M * at.t0 / all,
                  pixel = row ? row : lanes;
    const int64_t blocks = (at.k1 - at.k0) / lanes;
    const bool begins = at.k0 == 0, ends = at.k1 == g->K;
    const int64_t n0 = p * 2 * lanes, columns = g->N - n0 < 2 * lanes ? g->N - n0 : 2 * lanes;
    const int n = columns > lanes ? 2 : 1;
    const float *r = !begins ? g->y : g->r;
    const int64_t r_row = begins ? g->r_row : g->y_row;
    /* a product of few channels takes no longer than a division or two: only what changes is set
     * for each tile */
    fac_conv_tile t = { .x_pixel = pixel,
                        .channels = (int)(at.k1 - at.k0),
                        .R = 1,
                        .S = 1,
                        .w = w,
                        .bias = begins && g->bias ? g->bias + n0 : NULL,
                        .past = g->past,
                        .y_pixel = g->y_row,
                        .y_vector = lanes,
                        .r_pixel = r_row,
                        .r_vector = lanes,
                        .lo = ends ? g->e->lo : -INFINITY,
                        .hi = ends ? g->e->hi : INFINITY,
                        .ahead = next.at,
                        .ahead_lines = next.lines,
                        .ahead_step = next.step,
                        .ahead_block = next.block };
    for (int64_t i = at.t0, m0 = first, m1; i < at.t1;
         i++, m0 = m1, t.ahead = next.at ? t.ahead + next.tile : NULL) {
        m1 = g->M * (i + 1) / all;
        const int m = (int)(m1 - m0), half = (m + 1) / 2;
        float *y = g->y + m0 * g->y_row + n0;
        t.x0 = row ? a + m0 * row + at.k0 : a + (m0 - first) * depth;
        t.x1 = t.x0 + half * pixel;
        t.x_block = row ? lanes : m * lanes;
        t.y0 = y;
        t.y1 = y + half * g->y_row;
        t.y_pixel = g->y_row;
        if (r) {
            t.r0 = r + m0 * r_row + n0;
            t.r1 = t.r0 + half * r_row;
            t.r_pixel = r_row;
        }
        if (ends && g->row_bias) t.row_bias = g->row_bias + m0;
        if (i - at.t0 == next.tiles) {
            t.ahead_lines = 0;
            t.ahead_step = 0;
        }
        t.copy = copy;
        fac_conv_tile_kernel *kernel = s->tile[row ? FAC_TILE_ANY : FAC_TILE_NEAR].of[m][n - 1];
        if (columns == n * lanes)
            kernel(&t);
        else
            edge_tile(&t, kernel, m, n * (int)lanes, (int)columns, edge);
        if (copy.times > 0) {
            copy.from += blocks * copy.from_next;
            copy.to += blocks * copy.to_next;
            copy.times -= blocks;
        }
        for (int k = 0; k < m && ends && g->e->loops; k++)
            fac_epilogue_run(g->e, y + k * g->y_row, (size_t)columns);
    }
}

/* row 0: a is packed. */
static void slab(const fac_gemm_job *g, fac_gemm_block at, const float *a, int64_t depth,
                 int64_t row, const float *b, float *edge) {
    const int64_t lanes = g->simd->lanes, blocks = (at.k1 - at.k0 + lanes - 1) / lanes,
                  tiles = at.t1 - at.t0;
    for (int64_t p = at.p0; p < at.p1; p++) {
        const int64_t n = g->N - p * 2 * lanes > lanes ? 2 : 1;
        /* this slab of the next panel is fetched while this one is used */
        const float *w = b + (p - at.p0) * 2 * lanes * g->K + at.k0 * n * lanes;
        const int lines = p + 1 < at.p1 ? (int)((n * lanes * lanes / 16 + tiles - 1) / tiles) : 0;
        const ahead next = { w + 2 * lanes * g->K, lines, 0, 0, lines * blocks * 16, tiles };
        panel(g, at, p, a, depth, row, w, next, (fac_tile_fill){ 0 }, edge);
    }
}

void fac_gemm_slab(const fac_gemm_job *g, fac_gemm_block at, const float *a, int64_t depth,
                   const float *b, float *edge) {
    slab(g, at, a, depth, 0, b, edge);
}
void fac_gemm_rows(const fac_gemm_job *g, fac_gemm_block at, const float *a, int64_t row,
                   const float *b, float *edge) {
    slab(g, at, a, 0, row, b, edge);
}

/* ---- operands that are packed as they are needed ---- */

/* A line of each row of the tile of a that comes next, at each of its steps; two of each row of the
 * next piece of b. */
static ahead tile_ahead(const fac_gemm_job *g, fac_gemm_matrix a, int64_t t, int64_t k0) {
    return (
        ahead){ a.at + tile_row(g->simd, g->M, t) * a.row + k0, 0, a.row, g->simd->lanes, 0, 1 };
}
static ahead piece_ahead(fac_gemm_matrix b, int64_t n0, int64_t k) {
    return (
        ahead){ b.at + n0 * b.column + k * b.row, 0, 2, b.column == 1 ? b.row : b.column, 0, 1 };
}

/* A panel of b on its way into its buffer. */
typedef struct arrival {
    int64_t p, k, k1;
    float *to;
} arrival; /* the next row, the last one; p < 0: there is none */

static void bring(const fac_gemm_job *g, fac_gemm_matrix b, int64_t end, arrival *w) {
    if (end > w->k1) end = w->k1;
    if (w->p < 0 || end <= w->k) return;
    fac_gemm_pack_b(g->simd, b.at + w->k * b.row, b.row, b.column, end - w->k, g->N, w->p, w->to);
    w->to += (end - w->k) * fac_gemm_width(g->simd, g->N, w->p);
    w->k = end;
}

/* Rows of the panel, or the tile of a that comes next, as the kernel itself may copy them while it
 * multiplies. */
static fac_tile_fill copy_rows(const fac_gemm_job *g, fac_gemm_matrix b, int64_t rows, int64_t most,
                               const arrival *w) {
    const int64_t lanes = g->simd->lanes, n0 = w->p * 2 * lanes,
                  times = w->k1 - w->k < rows ? w->k1 - w->k : rows;
    if (w->p < 0 || b.column != 1 || n0 + 2 * lanes > g->N) return (fac_tile_fill){ 0 };
    return (fac_tile_fill){ b.at + w->k * b.row + n0,   w->to, lanes, lanes, b.row, 2 * lanes, 2,
                            times < most ? times : most };
}
static fac_tile_fill copy_tile(const fac_gemm_job *g, fac_gemm_matrix a, int64_t t, int64_t k0,
                               int64_t k1, float *to) {
    const int64_t lanes = g->simd->lanes, m = tile_row(g->simd, g->M, t),
                  rows = tile_row(g->simd, g->M, t + 1) - m;
    return (fac_tile_fill){ a.at + m * a.row + k0, to, a.row, lanes, lanes, rows * lanes, rows,
                            (k1 - k0) / lanes };
}

/* What comes after panel p of the slab. */
static arrival arrival_after(const fac_gemm_job *g, fac_gemm_block at, int64_t p, int64_t deepest,
                             float *to) {
    if (p + 1 < at.p1) return (arrival){ p + 1, at.k0, at.k1, to };
    return (arrival){ at.k1 < g->K ? at.p0 : -1, at.k1,
                      at.k1 + deepest < g->K ? at.k1 + deepest : g->K, to };
}

/* How many tiles are at work between two pieces. */
static int64_t at_once(int64_t channels, bool transposes) {
    if (transposes) return TRANSPOSED;
    return channels < STEPS ? STEPS / channels : 1;
}

void fac_gemm_both(const fac_gemm_job *g, fac_gemm_block at, fac_gemm_matrix a, fac_gemm_matrix b,
                   float alpha, int64_t deepest, bool direct, float *scratch) {
    const fac_simd *s = g->simd;
    const int64_t lanes = s->lanes, first = tile_row(s, g->M, at.t0);
    float *packed = scratch, *panels[2];
    panels[0] = packed + (direct ? 0 : (tile_row(s, g->M, at.t1) - first) * deepest);
    panels[1] = panels[0] + 2 * lanes * deepest;
    float *edge = panels[1] + 2 * lanes * deepest;
    arrival next = { at.p0, 0, deepest < g->K ? deepest : g->K, panels[0] };
    bring(g, b, g->K, &next);
    int now = 0;
    for (at.k0 = 0; at.k0 < g->K; at.k0 = at.k1) {
        at.k1 = at.k0 + deepest < g->K ? at.k0 + deepest : g->K;
        const int64_t depth = fac_gemm_padded(s, at.k1 - at.k0);
        for (int64_t p = at.p0; p < at.p1; p++, now = !now) {
            const bool packs = !direct && p == at.p0, transposes = packs && a.column != 1;
            const int64_t some = at_once(at.k1 - at.k0, transposes),
                          pieces = (at.t1 - at.t0 + some - 1) / some;
            const bool copies =
                packs && !transposes && alpha == 1 && some == 1 && depth == at.k1 - at.k0;
            next = arrival_after(g, at, p, deepest, panels[!now]);
            const int64_t rows = fac_gemm_padded(s, (next.k1 - next.k + pieces - 1) / pieces);
            fac_gemm_block here = { at.t0, 0, 0, 0, at.k0, at.k1 };
            for (; here.t0 < at.t1; here.t0 = here.t1) {
                here.t1 = here.t0 + some < at.t1 ? here.t0 + some : at.t1;
                float *to = packed + (tile_row(s, g->M, here.t0) - first) * depth;
                const int64_t end = next.k + rows,
                              own = (here.t1 - here.t0) * ((at.k1 - at.k0) / lanes);
                ahead soon = { 0 };
                fac_tile_fill copy = { 0 };
                if (packs && (!copies || here.t0 == at.t0))
                    fac_gemm_pack_a(s, a.at, a.row, a.column, g->M, here.t0, here.t1, at.k0, at.k1,
                                    alpha, to);
                if (copies && here.t1 < at.t1) {
                    copy = copy_tile(g, a, here.t1, at.k0, at.k1,
                                     packed + (tile_row(s, g->M, here.t1) - first) * depth);
                    soon = tile_ahead(g, a, here.t1 + 1 < at.t1 ? here.t1 + 1 : here.t1, at.k0);
                } else if (next.p >= 0) {
                    if (!direct) copy = copy_rows(g, b, rows, own, &next);
                    soon = piece_ahead(b, next.p * 2 * lanes, copy.times ? end : next.k);
                    next.k += copy.times;
                    next.to += copy.times * 2 * lanes;
                }
                if (direct)
                    panel(g, here, p, a.at, depth, a.row, panels[now], soon, copy, edge);
                else
                    panel(g, here, p, to, depth, 0, panels[now], soon, copy, edge);
                bring(g, b, end, &next);
            }
        }
    }
}

void fac_gemm_shallow(const fac_gemm_job *g, fac_gemm_block at, fac_gemm_matrix a,
                      fac_gemm_matrix b, float alpha, float *scratch) {
    const fac_simd *s = g->simd;
    const int64_t wide = 2 * s->lanes, depth = fac_gemm_padded(s, g->K);
    float *panels = scratch, *packed = panels + (at.p1 - at.p0) * wide * g->K,
          *edge = packed + TRANSPOSED * s->rows * depth;
    for (int64_t p = at.p0; p < at.p1; p++)
        fac_gemm_pack_b(s, b.at, b.row, b.column, g->K, g->N, p,
                        panels + (p - at.p0) * wide * g->K);
    for (int64_t t = at.t0, end; t < at.t1; t = end) {
        end = t + TRANSPOSED < at.t1 ? t + TRANSPOSED : at.t1;
        fac_gemm_pack_a(s, a.at, a.row, a.column, g->M, t, end, 0, g->K, alpha, packed);
        slab(g, (fac_gemm_block){ t, end, at.p0, at.p1, 0, g->K }, packed, depth, 0, panels, edge);
    }
}
size_t fac_gemm_shallow_floats(const fac_simd *s, int64_t panels, int64_t K) {
    return (size_t)(panels * 2 * s->lanes * K + TRANSPOSED * s->rows * fac_gemm_padded(s, K)) +
           fac_gemm_edge(s);
}
