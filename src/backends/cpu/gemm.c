/* Matrix products from packed operands: see gemm.h.  After Goto and van de Geijn, "Anatomy of high-performance matrix
 * multiplication", TOMS 2008, with the roles of rows and columns as a convolution has them. */
#include <math.h>
#include <string.h>
#include "backends/cpu/gemm.h"

static int64_t tile_row(const fac_simd *s, int64_t M, int64_t i) { return M * i / fac_gemm_tiles(s, M); }

/* n floats, whose usual numbers are known when compiled: a call for each vector would cost as much as the copy. */
static inline void copy_lanes(float *to, const float *from, int64_t n) {
    if (n == 16) memcpy(to, from, 16 * sizeof *to);
    else if (n == 8) memcpy(to, from, 8 * sizeof *to);
    else memcpy(to, from, (size_t)n * sizeof *to);
}

void fac_gemm_pack_a(const fac_simd *s, const float *a, int64_t row, int64_t column, int64_t M, int64_t t0, int64_t t1,
                     int64_t first, int64_t last, float alpha, float *to) {
    int64_t lanes = s->lanes;
    for (int64_t t = t0; t < t1; t++) {
        int64_t m0 = tile_row(s, M, t), m1 = tile_row(s, M, t + 1);
        for (int64_t k0 = first; k0 < last; k0 += lanes) {
            int64_t here = last - k0 < lanes ? last - k0 : lanes;
            if (row == 1 && column != 1) {              /* transposed: memory is read along the rows that it has */
                for (int64_t k = 0; k < here; k++)
                    for (int64_t m = m0; m < m1; m++) to[(m - m0) * lanes + k] = alpha * a[m + (k0 + k) * column];
                to += (m1 - m0) * lanes;
                continue;
            }
            for (int64_t m = m0; m < m1; m++, to += lanes) {
                const float *from = a + m * row + k0 * column;
                if (column == 1 && alpha == 1) copy_lanes(to, from, here);
                else for (int64_t k = 0; k < here; k++) to[k] = alpha * from[k * column];
            }
        }
    }
}

/* In squares, so that neither side walks through memory in large steps. */
static void turn(const float *from, int64_t row, int64_t column, int64_t rows, int64_t columns, float *to, int64_t to_row) {
    enum { SIDE = 16 };
    for (int64_t i0 = 0; i0 < rows; i0 += SIDE)
        for (int64_t j = 0; j < columns; j++)
            for (int64_t i = i0; i < rows && i < i0 + SIDE; i++) to[i * to_row + j] = from[i * row + j * column];
}

void fac_gemm_pack_b(const fac_simd *s, const float *b, int64_t row, int64_t column, int64_t K, int64_t N, int64_t p, float *to) {
    int64_t n0 = p * 2 * s->lanes, width = N - n0 > s->lanes ? 2 * s->lanes : s->lanes, here = N - n0 < width ? N - n0 : width;
    b += n0 * column;
    if (column == 1) for (int64_t k = 0; k < K; k++) memcpy(to + k * width, b + k * row, (size_t)here * sizeof *to);
    else if (row == 1) s->turn(b, column, to, width, here, K);
    else turn(b, row, column, K, here, to, width);
    if (here < width)
        for (int64_t k = 0; k < K; k++) memset(to + k * width + here, 0, (size_t)(width - here) * sizeof *to);
}

/* Columns that do not fill their vectors: the tile works on a copy with whole vectors. */
static void edge_tile(fac_conv_tile *t, fac_conv_tile_kernel *kernel, int m, int width, int columns, float *edge) {
    int half = (m + 1) / 2;
    float *y = t->y0, *re = edge + m * width;
    const float *r = t->r0;
    int64_t y_row = t->y_pixel, r_row = t->r_pixel;
    if (r) {
        for (int i = 0; i < m; i++) memcpy(re + i * width, r + i * r_row, (size_t)columns * sizeof *re);
        t->r0 = re, t->r1 = re + half * width, t->r_pixel = width;
    }
    t->y0 = edge, t->y1 = edge + half * width, t->y_pixel = width;
    kernel(t);
    for (int i = 0; i < m; i++) memcpy(y + i * y_row, edge + i * width, (size_t)columns * sizeof *y);
}

/* row 0: a is packed. */
static void slab(const fac_gemm_job *g, fac_gemm_block at, const float *a, int64_t depth, int64_t row, const float *b,
                 float *edge) {
    const fac_simd *s = g->simd;
    const int64_t lanes = s->lanes, all = fac_gemm_tiles(s, g->M), first = g->M * at.t0 / all, pixel = row ? row : lanes;
    const int64_t blocks = (at.k1 - at.k0 + lanes - 1) / lanes, tiles = at.t1 - at.t0;
    const bool begins = at.k0 == 0, ends = at.k1 == g->K;
    for (int64_t p = at.p0; p < at.p1; p++) {
        const int64_t n0 = p * 2 * lanes, columns = g->N - n0 < 2 * lanes ? g->N - n0 : 2 * lanes;
        const int n = columns > lanes ? 2 : 1;
        /* this slab of the next panel is fetched while this one is used */
        const float *ahead = b + (p + 1 - at.p0) * 2 * lanes * g->K + at.k0 * n * lanes;
        const int lines = p + 1 < at.p1 ? (int)((n * lanes * lanes / 16 + tiles - 1) / tiles) : 0;
        const float *r = !begins ? g->y : g->r;
        const int64_t r_row = begins ? g->r_row : g->y_row;
        /* a product of few channels takes no longer than a division or two: only what changes is set for each tile */
        fac_conv_tile t = {
            .x_pixel = pixel, .channels = (int)(at.k1 - at.k0), .R = 1, .S = 1,
            .w = b + (p - at.p0) * 2 * lanes * g->K + at.k0 * n * lanes, .bias = begins && g->bias ? g->bias + n0 : NULL,
            .y_pixel = g->y_row, .y_vector = lanes, .r_pixel = r_row, .r_vector = lanes,
            .lo = ends ? g->e->lo : -INFINITY, .hi = ends ? g->e->hi : INFINITY, .ahead = ahead, .ahead_lines = lines };
        for (int64_t i = at.t0, m0 = first, m1; i < at.t1; i++, m0 = m1, t.ahead += lines * blocks * 16) {
            m1 = g->M * (i + 1) / all;
            const int m = (int)(m1 - m0), half = (m + 1) / 2;
            float *y = g->y + m0 * g->y_row + n0;
            t.x0 = row ? a + m0 * row + at.k0 : a + (m0 - first) * depth, t.x1 = t.x0 + half * pixel;
            t.x_block = row ? lanes : m * lanes;
            t.y0 = y, t.y1 = y + half * g->y_row, t.y_pixel = g->y_row;
            if (r) t.r0 = r + m0 * r_row + n0, t.r1 = t.r0 + half * r_row, t.r_pixel = r_row;
            if (ends && g->row_bias) t.row_bias = g->row_bias + m0;
            fac_conv_tile_kernel *kernel = s->tile[row ? FAC_TILE_ANY : FAC_TILE_NEAR].of[m][n - 1];
            if (columns == n * lanes) kernel(&t);
            else edge_tile(&t, kernel, m, n * (int)lanes, (int)columns, edge);
            for (int k = 0; k < m && ends && g->e->loops; k++) fac_epilogue_run(g->e, y + k * g->y_row, (size_t)columns);
        }
    }
}

void fac_gemm_slab(const fac_gemm_job *g, fac_gemm_block at, const float *a, int64_t depth, const float *b, float *edge) {
    slab(g, at, a, depth, 0, b, edge);
}
void fac_gemm_rows(const fac_gemm_job *g, fac_gemm_block at, const float *a, int64_t row, const float *b, float *edge) {
    slab(g, at, a, 0, row, b, edge);
}
