/* Kernels of rows of pixels of one channel block, each lane for itself: depthwise convolutions,
 * normalization, pools.  See simd.h for what all kernels have in common. */
#ifndef FACULA_CPU_SIMD_IMAGES_H
#define FACULA_CPU_SIMD_IMAGES_H
#include <stdbool.h>
#include <stdint.h>

/* Rows of outputs of one channel block, of which each group of `group` channels (1, 2, 4, 8, less
 * than a vector) is a function of the same channels of x: w [R][channel in group][S][lanes], bias
 * [lanes] or NULL, r a residual or NULL, which has pixel after pixel. */
typedef struct fac_depthwise {
    const float *x;
    int64_t x_pixel, x_row,
        x_column;   /* from output to output; to the next kernel row, kernel column */
    int64_t x_ring; /* x is a ring of rows: so far back from kernel row x_end - 1 to the next one */
    const float *w, *bias, *r;
    float *y;
    int64_t y_pixel, width; /* from output to output; outputs */
    int R, S, group, x_end; /* x_end 0: no ring */
    int64_t rows, x_next, y_next,
        r_next; /* of outputs, so far apart, where there is no ring; 0 is 1 */
    float lo, hi;
} fac_depthwise;
typedef void fac_depthwise_kernel(const fac_depthwise *t);

/* The gradient of depthwise weights from some rows of one channel block: to[r][s] += sum over rows,
 * pixels of x dy, by lanes. */
typedef struct fac_depthwise_grad {
    const float *x, *y;      /* y: dy                                                         */
    int64_t x_next, x_pixel; /* from row to row, from pixel to pixel of outputs               */
    int64_t x_row, x_column; /* to the next row, column of the kernel                         */
    int64_t y_row, rows, pixels;
    int R, S;
    float *to;
} fac_depthwise_grad;
typedef void fac_depthwise_grad_kernel(const fac_depthwise_grad *t);

/* Rows of pixels of one channel block, each lane for itself.  d is a second operand, or NULL; y may
 * be x or d.  With a mask, d is taken for 0 where the mask's pixel is not between its limits. */
typedef struct fac_lane_rows {
    const float *x, *d;
    float *y;
    int64_t x_row, d_row, y_row, rows, pixels;
    const float *mean, *factor, *other, *shift; /* a vector each */
    float lo, hi;
    const float *mask; /* NULL: none    */
    int64_t mask_row;
    float mask_lo, mask_hi;
    bool past; /* y goes past the caches; then fac_streams_end() is for the end of an item */
} fac_lane_rows;
/* The mean, the sum of (x - mean)^2, the sums of d and d (x - mean), in f32: for some hundred
 * pixels.  Without d its sums are anything. */
typedef struct fac_lane_sums {
    float mean[16], spread[16], sum[16], along[16];
} fac_lane_sums;
typedef struct fac_lane_kernels {
    void (*sums)(const fac_lane_rows *t, fac_lane_sums *to);
    void (*linear)(
        const fac_lane_rows *t); /* y = clip((x - mean) factor + d other + shift, lo, hi) */
} fac_lane_kernels;

/* One row of outputs of one channel block: the largest of each window, or its sum / (down
 * across[q]).  Taps beside the `in` columns of x are left out, taps above and below are not among
 * the `rows`. */
typedef struct fac_pool_row {
    const float *x;    /* pixel 0 of the first row that the window sees */
    int64_t x_row, in; /* from one row of taps to the next              */
    int rows, S;
    int64_t stride, dilation, pad; /* along the row; (S - 1) dilation + 1 <= 128    */
    float *y;
    int64_t width;
    float down;          /* rows and columns to divide by                 */
    const float *across; /* NULL: the largest                             */
} fac_pool_row;
typedef void fac_pool_kernel(const fac_pool_row *t);

/* Its gradient: dx, which is there already, and row 0 of it lies as that of x, gets dy where the
 * largest element of a window was first, NaN being the largest; or dy / (down across[q]) at all
 * taps. */
typedef struct fac_pool_grad_row {
    const float *x, *dy; /* x: pixel 0 of the first row that the window sees */
    float *dx;
    int64_t x_row, dx_row, in; /* rows of taps */
    int rows, S;
    int64_t stride, dilation, pad, width;
    float down;
    const float *across; /* NULL: the largest */
} fac_pool_grad_row;
typedef void fac_pool_grad_kernel(const fac_pool_grad_row *t);

/* Pixels of x, FAC_DOUBLED_VECTORS vectors of them side by side for each channel, by a transposed
 * convolution of 2 x 2 and stride 2 into one channel: w [channels][upper left, right, lower left,
 * right], y the upper row of twice as many pixels and then the lower one, y = clip(bias + x w). */
enum { FAC_DOUBLED_VECTORS = 3 };
typedef struct fac_doubled {
    const float *x, *w;
    int64_t channels;
    float bias, lo, hi, *y;
} fac_doubled;
typedef void fac_doubled_kernel(const fac_doubled *d);
#endif
