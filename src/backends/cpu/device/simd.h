/* The kernels of one instruction set, as a table of functions.  src/backends/cpu/simd/ is compiled
 * once per instruction set (cmake/simd.cmake); everything else is compiled once and calls through
 * the table that fac_cpu_simd() chose.
 *
 * All strides count floats.  A vector is `lanes` floats; images lie blocked, [C /
 * lanes][H][W][lanes], as fac_layout_blocked makes them, so one pixel of one channel block is one
 * vector. */
#ifndef FACULA_CPU_SIMD_H
#define FACULA_CPU_SIMD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "facula/status.h"

/* One tile of a convolution or a matrix product: m pixels times n vectors of output channels, all
 * in registers over the whole reduction
 *     y[pixel][k] = bias[k] + sum over c, r, s of x[pixel, r, s][c] w[c][r][s][k]
 * and then  clip(y + row_bias[pixel] + residual[pixel][k], lo, hi), masked.  A row of a matrix is a
 * pixel too, R = S = 1. Pixels come in two runs, so that one tile may take two short rows: pixels 0
 * .. (m+1)/2 - 1 from x0, the others from x1. */
typedef struct fac_tile_fill { /* to[i to_row] = from[i from_row], i < rows, a vector each; a number
                                  of times */
    const float *from;
    float *to;
    int64_t from_row, to_row, from_next, to_next, rows, times;
} fac_tile_fill;
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
    const float *mask0, *mask1; /* or NULL: y is 0 where the mask is not above mask_lo */
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

/* Transforms of Winograd convolution (simd/winograd.c): `out` x `out` outputs of a `kernel` x
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

/* The same along one row only, for images with few channels (simd/winograd_row.c): tiles of 4
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

/* Fourier transforms of as many signals as a vector has lanes, one a lane: element i of all signals
 * is a vector, of complex ones two, real parts first. */
enum { FAC_FFT_STAGES = 40 };
typedef struct fac_fft {
    int64_t n;                         /* complex elements */
    int stages, radix[FAC_FFT_STAGES]; /* each 2, 3, 4, 5 or 8 */
    const float *turns;                /* of stages of n = r m elements, for p < m and
                                          0 < k < r: cos and sin of -2 pi p k / n */
} fac_fft;
typedef struct fac_fft_out {
    float *re, *im; /* of bin k at re[k row], im[k row] */
    int64_t bins, row;
    int lanes; /* so many signals */
} fac_fft_out;
typedef struct fac_fft_kernels {
    int largest; /* radix that pays: 8 or 4 */
    void (*window)(float *x, const float *w, int64_t n);
    void (*widen)(float *x, int64_t n); /* n real elements become complex, in place */
    float *(*transform)(const fac_fft *f, float *a, float *b); /* writes to both, returns one */
    void (*whole)(const fac_fft_out *o, const float *z);
    /* z: of 2 m real elements, as m complex ones; turns: cos and sin of -pi k / m, k <= m. */
    void (*halves)(const fac_fft_out *o, const float *z, int64_t m, const float *turns);
} fac_fft_kernels;

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

/* Where the largest (least: the smallest) of n elements is, the first or the last of equals, for
 * `lines` lines: stride 1: rows without gaps, else columns side by side. */
typedef struct fac_arg_lines {
    const float *x;
    int64_t stride, n, lines;
    bool least, last;
    int64_t *to;
} fac_arg_lines;
typedef void fac_arg_kernel(const fac_arg_lines *t);

/* Walks down decision trees, FAC_TREE_LANES at once, whose tables src/ops/ml/tree.h describes: lane
 * k begins at node at[k] with the features at x + row[k], and ends with its leaf there.  false: a
 * walk left the tables, or does not end. */
enum { FAC_TREE_LANES = 16 };
typedef struct fac_tree_walk {
    const int32_t *features, *next;
    const float *splits, *x;
    int32_t nodes, columns;
    int32_t row[FAC_TREE_LANES], at[FAC_TREE_LANES];
} fac_tree_walk;
typedef bool fac_tree_kernel(fac_tree_walk *t);

/* to[j][i] = from[i][j] */
typedef void fac_turn_kernel(const float *from, int64_t from_row, float *to, int64_t to_row,
                             int64_t rows, int64_t columns);

/* to[k / lanes][m][k % lanes] = from[m][k],  m < rows, k < n; zeros after the last k */
typedef void fac_pack_kernel(const float *from, int64_t from_row, int rows, int64_t n, float *to);

struct fac_streams;           /* streams.h: reductions, softmax, normalization */
struct fac_attention_kernels; /* attention.h */

/* What the set can do at best, for peaks.c: so many operations in each of `times` rounds; the sum
 * of n floats. */
typedef struct fac_peak_kernels {
    float (*multiply_add)(int64_t times);
    double operations;
    float (*read)(const float *p, size_t n);
} fac_peak_kernels;

typedef struct fac_simd {
    const char *name;                /* "avx512", "avx2", "neon", "portable"         */
    int isa;                         /* FAC_ISA_...: which loop of a fac_map         */
    int lanes;                       /* floats in a vector = channels in a block     */
    int rows;                        /* tiles have at most this many pixels          */
    const fac_conv_tile_table *tile; /* [FAC_TILE_KINDS]                             */
    const fac_outer_table *outer;
    fac_depthwise_kernel *depthwise;
    fac_depthwise_grad_kernel *depthwise_grad;
    const fac_lane_kernels *lane;
    fac_pool_kernel *pool;
    fac_pool_grad_kernel *pool_grad;
    const fac_winograd *winograd; /* [FAC_WINOGRADS]                              */
    const fac_winograd_rows *winograd_rows;
    const struct fac_streams *streams;
    fac_turn_kernel *turn;
    fac_pack_kernel *pack_rows;
    const struct fac_attention_kernels *attention;
    const fac_peak_kernels *peak;
    const fac_row_kernel *row_sum;
    fac_dots_kernel *dots;
    const fac_typed_kernels *typed;
    fac_arg_kernel *arg;
    fac_tree_kernel *trees;
    const fac_fft_kernels *fft;
} fac_simd;

/* The best set that this machine has and that at_most allows ("avx512", "avx2", "neon", "portable";
 * NULL: any), and of which FACULA_ISA in the environment does not take less.  A name that is none
 * of this build's is FAC_E_ARGUMENT. */
fac_status fac_cpu_simd(const char *at_most, const fac_simd **out, fac_error *err);
#endif
