/* Kernels of Winograd convolutions: transforms of whole images and of their rows.  See simd.h for
 * what all kernels have in common. */
#ifndef FACULA_CPU_SIMD_WINOGRAD_H
#define FACULA_CPU_SIMD_WINOGRAD_H
#include <stdbool.h>
#include <stdint.h>
#include "backends/cpu/device/simd_tile.h"

/* Transforms of Winograd convolution (simd/conv/winograd.c): `out` x `out` outputs of a `kernel` x
 * `kernel` kernel by products at n x n points, n = out + (kernel - 1) / stride.  v: the elements of
 * one channel block at these points, v_point apart. */
typedef struct fac_winograd_tile {
    const float *v;
    int64_t v_point;
    const float *bias, *r; /* NULL: none */
    int64_t r_row;
    float *y;
    int64_t y_row;
    int rows, columns; /* that lie inside the image */
    bool past;         /* y goes past the caches */
    float lo, hi;
    const float *mask; /* as of fac_conv_tile; NULL: none */
    int64_t mask_row;
    float mask_lo;
} fac_winograd_tile;
enum { FAC_WINOGRAD_POINTS = 8, FAC_WINOGRAD_KERNEL = 5 }; /* the most of n and kernel */
typedef struct fac_winograd_matrix {
    double at[FAC_WINOGRAD_POINTS][FAC_WINOGRAD_KERNEL];
} fac_winograd_matrix;
typedef struct fac_winograd {
    int out, kernel, stride; /* stride: 1 or 2 */
    /* Of stride 2 there are several planes at a point, v_plane apart: fac_tiles_depth(). */
    void (*in_tile)(const float *x, int64_t x_row, float *v, int64_t v_point, int64_t v_plane);
    void (*out_tile)(const fac_winograd_tile *t);
    /* The largest of each 2 x 2 of these outputs, NaN if there is one; rows, columns and y are
     * those of the pool, which bias and limits come after.  No residual, no mask. */
    void (*out_pool)(const fac_winograd_tile *t);
    /* One vector of filters, kernel x kernel vectors without gaps, to u, plane after plane;
     * computed in f64. */
    void (*filter)(const fac_winograd_matrix *G, const float *g, float *u, int64_t u_plane);
    /* The adjoints, for gradients: of out_tile to the elements v from out x out of dy; of filter
     * from the elements u, computed in f32.  NULL where gradients are not computed so. */
    void (*out_grad)(const float *dy, int64_t dy_row, float *v, int64_t v_point);
    void (*filter_grad)(const fac_winograd_matrix *G, const float *u, int64_t u_point, float *dg);
} fac_winograd;
enum {
    FAC_WINOGRAD_2_3,
    FAC_WINOGRAD_4_3,
    FAC_WINOGRAD_2_5,
    FAC_WINOGRAD_4_5,
    FAC_WINOGRAD_2_3_STRIDED,
    FAC_WINOGRAD_4_3_STRIDED,
    FAC_WINOGRADS
}; /* outputs, kernel */

/* The same along one row only, for images with few channels (simd/conv/winograd_row.c): tiles of 4
 * outputs of a kernel of `taps` columns and a stride, made of `points` products: in() writes them
 * for tiles side by side from the pixels of a row, pixel 4 stride t + c being x[c x_column + t] (up
 * to one tile more than asked for, and all in whole vectors); sums() multiplies them with
 * transformed filters, out() makes outputs of those. */
enum {
    FAC_WINOGRAD_ROW_OUT = 4,
    FAC_WINOGRAD_ROW_POINTS = 7,
    FAC_WINOGRAD_ROW_KINDS = 3
};                                     /* of one phase: points at most */
typedef struct fac_winograd_row_sums { /* m[point][k][tile] = sum over c, r of w[point][c][r][k]
                                          v[point, c, r][tile] */
    const float *v, *w; /* w has no gaps                                            */
    int64_t v_point, v_plane, v_row;
    int points, channels, rows;
    float *m;
    int64_t m_point;
    const float *y; /* where the outputs will go, to bring that in meanwhile    */
    int64_t y_vector;
} fac_winograd_row_sums;
typedef void fac_winograd_row_kernel(const fac_winograd_row_sums *t);
typedef struct fac_winograd_row_out { /* of one vector of output channels */
    const float *m, *bias;            /* bias: NULL for none              */
    int64_t m_point;
    float *y;
    int64_t outputs; /* that lie inside of the image     */
    bool past;       /* y goes past the caches           */
    float lo, hi;
} fac_winograd_row_out;
typedef struct fac_winograd_row {
    int taps, stride;
    void (*in)(const float *x, int64_t x_column, float *v, int64_t v_point, int64_t tiles);
    void (*out)(const fac_winograd_row_out *t);
} fac_winograd_row;
typedef struct fac_winograd_rows {
    fac_winograd_row kind[FAC_WINOGRAD_ROW_KINDS];
    fac_winograd_row_kernel *sums[FAC_TILE_ROWS + 1][2]; /* [tiles][vectors - 1] */
} fac_winograd_rows;
#endif
