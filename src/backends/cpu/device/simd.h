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
#include "backends/cpu/device/simd_fft.h"
#include "backends/cpu/device/simd_images.h"
#include "backends/cpu/device/simd_products.h"
#include "backends/cpu/device/simd_tile.h"
#include "backends/cpu/device/simd_winograd.h"
#include "facula/status.h"

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
typedef void fac_transpose_kernel(const float *from, int64_t from_row, float *to, int64_t to_row,
                                  int64_t rows, int64_t columns);

/* to[k / lanes][m][k % lanes] = from[m][k],  m < rows, k < n; zeros after the last k */
typedef void fac_pack_kernel(const float *from, int64_t from_row, int rows, int64_t n, float *to);

struct fac_streams;           /* streams.h: reductions, softmax, normalization */
struct fac_attention_kernels; /* attention.h */
struct fac_attention_row;     /* attention_row.h */

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
    fac_doubled_kernel *doubled;
    fac_depthwise_grad_kernel *depthwise_grad;
    const fac_lane_kernels *lane;
    fac_pool_kernel *pool;
    fac_pool_grad_kernel *pool_grad;
    const fac_winograd *winograd; /* [FAC_WINOGRADS]                              */
    const fac_winograd_rows *winograd_rows;
    const struct fac_streams *streams;
    fac_transpose_kernel *transpose;
    fac_pack_kernel *pack_rows;
    const struct fac_attention_kernels *attention;
    void (*attention_row)(const struct fac_attention_row *t);
    const fac_peak_kernels *peak;
    const fac_row_kernel *row_sum;
    fac_dots_kernel *dots;
    const fac_typed_kernels *typed;
    fac_arg_kernel *arg;
    fac_tree_kernel *trees;
    const fac_fft_kernels *fft;
    const fac_fft_ends *fft_ends;
} fac_simd;

/* The best set that this machine has and that at_most allows ("avx512", "avx2", "neon", "portable";
 * NULL: any), and of which FACULA_ISA in the environment does not take less.  A name that is none
 * of this build's is FAC_E_ARGUMENT. */
fac_status fac_cpu_simd(const char *at_most, const fac_simd **out, fac_error *err);
#endif
