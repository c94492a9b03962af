/* Matrix products from packed operands: y[m][n] = sum over k of a[m][k] b[k][n], row-major y.
 *
 * a is cut into tiles of rows, as evenly as possible: tile i holds rows M i / tiles .. M (i + 1) /
 * tiles, as [k / lanes][row of the tile][lanes], so that a row is what a pixel is to a convolution,
 * and the register tile is the same. b is cut into panels of two vectors of columns, each
 * [k][columns], zeros after the last column. The sum is done in slabs of at most FAC_GEMM_DEPTH,
 * which keeps the part of b in the first two caches. */
#ifndef FACULA_CPU_GEMM_H
#define FACULA_CPU_GEMM_H
#include "backends/cpu/elementwise/epilogue.h"

enum { FAC_GEMM_DEPTH = 512 }; /* a multiple of every vector length */

typedef struct fac_gemm_job {
    const fac_simd *simd;
    int64_t M, N, K;
    float *y;
    int64_t y_row;
    const float *bias, *row_bias; /* of columns (whole vectors), of rows; or NULL */
    const float *r;               /* residual, or NULL */
    int64_t r_row;
    const fac_epilogue *e;
    bool past; /* y, whose rows begin with whole vectors, goes past the caches; nothing is added */
} fac_gemm_job;

static inline int64_t fac_gemm_tiles(const fac_simd *s, int64_t M) {
    return (M + s->rows - 1) / s->rows;
}
static inline int64_t fac_gemm_panels(const fac_simd *s, int64_t N) {
    return (N + 2 * s->lanes - 1) / (2 * s->lanes);
}
static inline int64_t fac_gemm_padded(const fac_simd *s, int64_t n) {
    return (n + s->lanes - 1) / s->lanes * s->lanes;
}
/* Columns of panel p: one or two vectors. */
static inline int64_t fac_gemm_width(const fac_simd *s, int64_t N, int64_t p) {
    return N - p * 2 * s->lanes > s->lanes ? 2 * s->lanes : s->lanes;
}

/* Columns first..last-1 (within K) of the rows of tiles t0..t1-1, times alpha.  Element m, k of a
 * lies at m row + k column. Takes (rows) x fac_gemm_padded(last - first) floats. */
void fac_gemm_pack_a(const fac_simd *s, const float *a, int64_t row, int64_t column, int64_t M,
                     int64_t t0, int64_t t1, int64_t first, int64_t last, float alpha, float *to);
/* Panel p of b[k][n] at k row + n column: K x (1 or 2 vectors). */
void fac_gemm_pack_b(const fac_simd *s, const float *b, int64_t row, int64_t column, int64_t K,
                     int64_t N, int64_t p, float *to);

/* Adds the slab k0..k1-1 of the sum to the block of tiles t0..t1-1 and panels p0..p1-1 of y (the
 * first slab sets, the last finishes).  a: the packed tile t0 from k0 on, whose rows take `depth`
 * floats; b: panel p0 from k = 0 on; edge: scratch. */
typedef struct fac_gemm_block {
    int64_t t0, t1, p0, p1, k0, k1;
} fac_gemm_block;
void fac_gemm_slab(const fac_gemm_job *g, fac_gemm_block at, const float *a, int64_t depth,
                   const float *b, float *edge);
/* The same for a that is not packed but has its columns next to each other; a: row 0, column 0. */
void fac_gemm_rows(const fac_gemm_job *g, fac_gemm_block at, const float *a, int64_t row,
                   const float *b, float *edge);
/* All of the sum from two operands as they lie, element i, j at i row + j column, times alpha,
 * slabs of `depth` (whole vectors). The tiles of a are packed when they meet the first panel, and
 * the next panel of b by pieces between the tiles of the one before it, and what is packed next is
 * fetched meanwhile.  direct: a, whose columns lie next to each other, is not packed, alpha is 1.
 * scratch takes fac_gemm_both_floats. */
typedef struct fac_gemm_matrix {
    const float *at;
    int64_t row, column;
} fac_gemm_matrix;
void fac_gemm_both(const fac_gemm_job *g, fac_gemm_block at, fac_gemm_matrix a, fac_gemm_matrix b,
                   float alpha, int64_t depth, bool direct, float *scratch);

/* The same for a sum of few terms, where writing y is what takes time: all panels are packed, then
 * y is made some rows at a time.
 */
void fac_gemm_shallow(const fac_gemm_job *g, fac_gemm_block at, fac_gemm_matrix a,
                      fac_gemm_matrix b, float alpha, float *scratch);
size_t fac_gemm_shallow_floats(const fac_simd *s, int64_t panels, int64_t K);

static inline size_t fac_gemm_edge(const fac_simd *s) {
    return (size_t)(s->rows * 4 * s->lanes);
} /* floats */
static inline size_t fac_gemm_both_floats(const fac_simd *s, int64_t tiles, int64_t depth,
                                          bool direct) {
    return (size_t)((direct ? 0 : tiles * s->rows) + 4 * s->lanes) * (size_t)depth +
           fac_gemm_edge(s);
}
#endif
