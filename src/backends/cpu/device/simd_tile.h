/* Kernels of register tiles: of convolutions and matrix products (simd/product/tile.c), and of
 * gradients of weights (simd/product/outer.c).  See simd.h for what all kernels have in common. */
#ifndef FACULA_CPU_SIMD_TILE_H
#define FACULA_CPU_SIMD_TILE_H
#include <stdbool.h>
#include <stdint.h>

/* to[i to_row] = from[i from_row], i < rows, a vector each; a number of times. */
typedef struct fac_tile_fill {
    const float *from;
    float *to;
    int64_t from_row, to_row, from_next, to_next, rows, times;
} fac_tile_fill;

/* One tile of a convolution or a matrix product: m pixels times n vectors of output channels, all
 * in registers over the whole reduction
 *     y[pixel][k] = bias[k] + sum over c, r, s of x[pixel, r, s][c] w[c][r][s][k]
 * and then  clip(y + row_bias[pixel] + residual[pixel][k], lo, hi), masked.  A row of a matrix is a
 * pixel too, R = S = 1. Pixels come in two runs, so that one tile may take two short rows: pixels 0
 * .. (m+1)/2 - 1 from x0, the others from x1. */
typedef struct fac_conv_tile {
    const float *x0, *x1;
    int64_t x_pixel; /* of FAC_TILE_ANY and FAC_TILE_PLANAR */
    int64_t x_block, x_row,
        x_column; /* to the next channel block, kernel row, kernel column (dilation included)     */
    int channels, R, S; /* real channels: what lies after them in the last block is not read    */
    const float *w;     /* [block][R][S][channel in block][n lanes], without gaps        */
    const float *bias;  /* n vectors, or NULL     */
    const float *row_bias; /* m numbers, or NULL */
    float *y0, *y1;
    int64_t y_pixel, y_vector;
    const float *r0,
        *r1; /* residual, or NULL; may be y itself: then the tile adds to what is there      */
    int64_t r_pixel, r_vector;
    const float *mask0, *mask1; /* or NULL: y is 0 where the mask is at or below mask_lo */
    int64_t mask_pixel, mask_vector;
    float mask_lo;
    float lo, hi; /* -INFINITY, INFINITY for none; NaN passes                                     */
    const float *ahead; /* weights to prefetch, ahead_lines cache lines per channel block */
    int ahead_lines;
    int64_t ahead_step, ahead_block; /* R = S = 1: instead a line for each channel, so far apart,
                                        and for each block */
    bool here; /* y is in a cache nearby: nothing is to be brought in                       */
    bool past; /* of FAC_TILE_NEAR: y goes past the caches, in whole vectors.  Only of R = S = 1
                  without copies and masks if something is added                          */
    fac_tile_fill
        copy; /* of FAC_TILE_NEAR, R = S = 1: done meanwhile, once at most for each channel block */
    int64_t tiles; /* one after the other, all of m pixels; 0 is 1 */
    int64_t x_next, y_next, r_next,
        mask_next; /* from tile to tile, as from row to row; x_next 0: m pixels        */
    const int64_t *x_at, *y_at, *r_at, *mask_at; /* of FAC_TILE_LIST */
} fac_conv_tile;
typedef void fac_conv_tile_kernel(const fac_conv_tile *t);

enum { FAC_TILE_ROWS = 14 }; /* the largest m of any instruction set */
enum {                       /* how the pixels of x follow each other */
       FAC_TILE_NEAR,        /* one vector apart                                         */
       FAC_TILE_ANY,         /* x_pixel apart                                            */
       FAC_TILE_PLANAR,      /* x_pixel apart, and a channel block is one single channel */
       FAC_TILE_LIST,     /* each where x_at, y_at, r_at and mask_at say, from x0, y0, r0 and mask0;
                             of[1][0] is NULL where addresses would not fit the registers */
       FAC_TILE_PRODUCTS, /* one vector apart, those of y too, x0 and y0 alone: R = S = 1, and
                             nothing is added or clipped */
       FAC_TILE_KINDS
};
/* of[m][n - 1]; of[m][2] is n = 2 where only the lower half of the second vector counts, for
 * FAC_TILE_NEAR, R = S = 1 and nothing but bias, residual and limits, pixels of y and r one vector
 * apart; NULL where that is not faster, or for few pixels. */
typedef struct fac_conv_tile_table {
    fac_conv_tile_kernel *of[FAC_TILE_ROWS + 1][3];
} fac_conv_tile_table;

/* A tile of the gradient of weights: m numbers of each pixel of x times n vectors of each pixel of
 * dy, added up over all pixels,
 *     to[i][k] += sum over planes, rows, pixels of x[pixel][i] dy[pixel][k],    i < m, k < n lanes
 * The m numbers lie next to each other: channels of a block, or taps along a row of a plain
 * image. */
typedef struct fac_outer_tile {
    const float *x, *y; /* y: dy                                      */
    int64_t x_plane, x_row, x_pixel;
    int64_t y_plane, y_row, y_vector; /* a pixel is one vector                      */
    int64_t planes, rows, pixels;
    float *to; /* m rows of n vectors                        */
    int64_t to_row;
    const float
        *soon; /* read by a later call: brought into the second cache, a line a pixel; or NULL */
    int64_t soon_plane, soon_row, soon_pixel;
} fac_outer_tile;
typedef void fac_outer_kernel(const fac_outer_tile *t);
typedef struct fac_outer_table {
    int most;
    fac_outer_kernel *of[9][2];
} fac_outer_table; /* of[m][n - 1], m <= most */
#endif
