/* A matrix product as kernels are told of it, and how it is cut into tiles: see
 * opencl/product/gemm.h for what is multiplied. */
#ifndef FACULA_GPU_PRODUCT_H
#define FACULA_GPU_PRODUCT_H
#include "backends/gpu/limits.h"
#include "facula/backend.h"

enum { FAC_GPU_EXTRAS = 6, FAC_GPU_BATCH = 4 };

/* Both as gemm_common.cl has them. */
typedef struct fac_gpu_matrix {
    int64_t at, row, column, outer, z[FAC_GPU_BATCH];
} fac_gpu_matrix;
typedef struct fac_gpu_shape {
    int64_t M, N, K, inner_n, inner_k, each_k, splits, batch;
    int64_t z[FAC_GPU_BATCH], in[3], taps, pixels, places, parts, channels, window, images;
    fac_gpu_matrix a, b, y, e[FAC_GPU_EXTRAS];
} fac_gpu_shape;

typedef enum fac_gpu_right { FAC_GPU_MATRIX, FAC_GPU_PATCHES, FAC_GPU_TAPS } fac_gpu_right;

/* Everything but sizes that a kernel depends on, and the shape of the product (of the largest, when
 * a node needs several). */
typedef struct fac_gpu_product {
    fac_gpu_shape s;
    fac_gpu_right right;
    bool split_k, places,
        deep;    /* the terms are images x pixels; y lies by a table; images have a depth */
    bool padded; /* rows of a are there up to a multiple of four */
    bool quads;  /* bytes: a factor is four of them, K and the steps along the sum count those */
    bool b_f16;  /* b is packed by product/thin_f16 */
    bool half;   /* f16: factors stay what they are until they are multiplied */
    /* a lies in panels of so many rows, [panel][k][row], filled with zeros; 0: none */
    int panel;
    fac_dtype dtype, result; /* of a and b; of y */
    double alpha, beta;      /* finish(x) = body(alpha x + beta bias) */
    bool biased;             /* extra 0 is the bias */
    const fac_graph *body;   /* or NULL; its inputs after the first are the extras after the bias */
    int extras, input[FAC_GPU_EXTRAS]; /* inputs of the problem */
    int variant; /* which tile is asked for, see fac_gpu_tile_variants; 0: the best by estimates */
    fac_dtype extra_dtype[FAC_GPU_EXTRAS];
} fac_gpu_product;

/* How it is cut: the kernels gemm_tile.cl, by groups of items with local memory; gemm_vector.cl, by
 * single items with vectors of their own; gemm_thin.cl, for few rows. */
typedef enum fac_gpu_way { FAC_GPU_TILED, FAC_GPU_VECTOR, FAC_GPU_THIN, FAC_GPU_WAYS } fac_gpu_way;
enum {
    FAC_GPU_TILE_VERSION = 1
}; /* of what tuning measures: raised when kernels or their tables change */
typedef struct fac_gpu_tile {
    fac_gpu_way way;
    bool a_along_m, b_along_n;
    int TM, TN, TK, RM, RN, VA, VB, VY; /* the letters of gemm_tile.cl */
    int items, lanes,
        ahead;          /* of thin.c: items of a group; those that share a sum; loads at once */
    bool aligned, once; /* of thin.c: b is read once, and is more than a second cache holds */
    int64_t splits, each_k;
    bool blocks;    /* the terms of patches are in blocks of TK channels */
    double seconds; /* the estimate */
} fac_gpu_tile;

/* The steps of an operand along the dims of the result, which it broadcasts to; false when it is
 * blocked. */
bool fac_gpu_strides(const fac_operand *x, const fac_dims *result, int64_t *stride);
/* Bytes of the type that elements of this one are summed in. */
size_t fac_gpu_sum_bytes(fac_dtype t);

/* ---- tiles.c ---- */

/* The tiles of one way that tuning may try are numbered from 1. */
int fac_gpu_tile_variants(const fac_gpu_limits *l, fac_dtype dtype, fac_gpu_way way);
/* The best that one way can do, or the variant asked for; false: it is not for this product. */
bool fac_gpu_tile_choose(const fac_gpu_limits *l, const fac_gpu_product *r, fac_gpu_way way,
                         fac_gpu_tile *t);
/* Its part in thin.c; how operands can be read is noted in t already. */
bool fac_gpu_tile_thin(const fac_gpu_limits *l, const fac_gpu_product *r, fac_gpu_tile *t);
/* Bytes for the parts of a sum that is split. */
size_t fac_gpu_tile_work(const fac_gpu_tile *t, const fac_gpu_product *r);
#endif
