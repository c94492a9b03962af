/* Kernels of products that are no register tiles of f32: one row times a matrix, dot products of
 * rows, other types.  See simd.h for what all kernels have in common. */
#ifndef FACULA_CPU_SIMD_PRODUCTS_H
#define FACULA_CPU_SIMD_PRODUCTS_H
#include <stdbool.h>
#include <stdint.h>

/* y[j] += sum over i < n of x[i] w[k[i]][j];  k NULL: row i.  Whole vectors. */
typedef struct fac_row_panel {
    const float *w, *x;
    int64_t row, width; /* from row to row of w; columns */
    const int32_t *k;
    int64_t n;
    float *y;
} fac_row_panel;
typedef struct fac_row_kernel {
    int64_t width;
    void (*run)(const fac_row_panel *t);
} fac_row_kernel; /* the best width */

/* to[i][j] = sum over k < n of w[i][k] x[j][k], i < rows, j < m: the rows of w are many and far
 * away, those of x few and near. */
typedef struct fac_dots {
    const float *w, *x;
    int64_t w_row, x_row, n, rows, m;
    float *to;
    int64_t to_row;
} fac_dots;
typedef void fac_dots_kernel(const fac_dots *t);

/* y[i][j] = (add: y[i][j] +) sum over k < depth of a[i][k] b[k][j] for `rows` rows and two vectors
 * of columns, in elements of one type; a lies as [k / FAC_TYPED_CHUNK][i][k % FAC_TYPED_CHUNK], b
 * has no gaps.  Integers wrap. */
enum { FAC_TYPED_CHUNK = 8 };
typedef struct fac_typed_tile {
    const void *a, *b;
    void *y;
    int64_t y_row, depth;
    int rows; /* at most those of the set */
    bool add;
} fac_typed_tile;
typedef void fac_typed_kernel(const fac_typed_tile *t);
typedef struct fac_typed_kernels {
    fac_typed_kernel *f64, *u32, *u64;
} fac_typed_kernels;
#endif
