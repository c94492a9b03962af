/* Matrix products: what matmul, linear, gemm and all convolutions that are not direct end in.
 *
 *   y[z](m, n) = finish(sum over k of a[z](m, k) b[z](k, n))
 *
 * A solver says where the elements of a, b, y and of further operands lie (gemm_common.cl),
 * a tile is chosen by the device's class and the sizes (gemm_tiles.c), the text of the kernel is
 * put together (gemm_text.c), built and launched (gemm.c).
 *
 * b may be the patches of an image instead of a matrix, so a convolution needs no copy of its
 * input:
 *   FAC_CL_PATCHES   columns are pixels, rows are taps: the convolution itself, and its gradient by
 *                    x
 *   FAC_CL_TAPS      columns are taps, rows are pixels: its gradient by w
 * Where each pixel sees itself alone (1 x 1), b is a matrix, whose terms are of many images in the
 * gradient by w, as a's are. Two tables of int4 then say where a pixel and a tap lie: offset in
 * elements, and depth, row and column in the image. */
#ifndef FACULA_OPENCL_GEMM_H
#define FACULA_OPENCL_GEMM_H
#include "backends/opencl/device/launch.h"
#include "base/text.h"
#include "backends/opencl/device/speed.h"

enum { FAC_CL_EXTRAS = 6, FAC_CL_BATCH = 4 };

/* Both as gemm_common.cl has them. */
typedef struct fac_cl_matrix {
    int64_t at, row, column, outer, z[FAC_CL_BATCH];
} fac_cl_matrix;
typedef struct fac_cl_shape {
    int64_t M, N, K, inner_n, inner_k, each_k, splits, batch;
    int64_t z[FAC_CL_BATCH], in[3], taps, pixels, places, parts, channels, window, images;
    fac_cl_matrix a, b, y, e[FAC_CL_EXTRAS];
} fac_cl_shape;

typedef enum fac_cl_right { FAC_CL_MATRIX, FAC_CL_PATCHES, FAC_CL_TAPS } fac_cl_right;

/* Everything but sizes that a kernel depends on, and the shape of the product (of the largest, when
 * a node needs several). */
typedef struct fac_cl_product {
    fac_cl_shape s;
    fac_cl_right right;
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
    int extras, input[FAC_CL_EXTRAS]; /* inputs of the problem */
    int variant; /* which tile is asked for, see fac_cl_tile_variants; 0: the best by estimates */
    fac_dtype extra_dtype[FAC_CL_EXTRAS];
} fac_cl_product;

/* How it is cut: the kernels gemm_tile.cl, by groups of items with local memory; gemm_vector.cl, by
 * single items with vectors of their own; gemm_thin.cl, for few rows. */
typedef enum fac_cl_way { FAC_CL_TILED, FAC_CL_VECTOR, FAC_CL_THIN, FAC_CL_WAYS } fac_cl_way;
enum {
    FAC_CL_TILE_VERSION = 1
}; /* of what tuning measures: raised when kernels or their tables change */
typedef struct fac_cl_tile {
    fac_cl_way way;
    bool a_along_m, b_along_n;
    int TM, TN, TK, RM, RN, VA, VB, VY; /* the letters of gemm_tile.cl */
    int items, lanes,
        ahead; /* of gemm_thin.c: items of a group; those that share a sum; loads at once */
    bool aligned, once; /* of gemm_thin.c: b is read once, and is more than a second cache holds */
    int64_t splits, each_k;
    bool blocks;    /* the terms of patches are in blocks of TK channels */
    double seconds; /* the estimate */
} fac_cl_tile;

typedef struct fac_cl_gemm {
    fac_cl_kernel product, sum; /* sum: of the parts, when the sum is split */
    fac_cl_tile tile;
    size_t element, element_b, result, sums, extra[FAC_CL_EXTRAS]; /* bytes */
    int extras;
    fac_cl_right right;
    bool places;
} fac_cl_gemm;

/* ---- gemm_product.c: what solvers say of their operands ---- */

/* Starts a product: types, bias and body.  bias: an input of the problem, or -1.  false: a type or
 * body not for kernels. */
bool fac_cl_product_start(const fac_opencl *o, const fac_problem *p, int bias, fac_cl_product *r);
/* The steps of an operand along the dims of the result, which it broadcasts to; false when it is
 * blocked. */
bool fac_cl_strides(const fac_operand *x, const fac_dims *result, int64_t *stride);

/* ---- matmul.c ---- */

/* A matmul, linear or gemm as a product; false: another op, or not for this. */
bool fac_cl_product_read(const fac_opencl *o, const fac_problem *p, fac_cl_product *r);

/* ---- gemm_tiles.c ---- */

/* The tiles of one way that tuning may try are numbered from 1. */
int fac_cl_tile_variants(const fac_opencl *o, fac_dtype dtype, fac_cl_way way);
/* The best that one way can do, or the variant asked for; false: it is not for this product. */
bool fac_cl_tile_choose(const fac_opencl *o, const fac_cl_product *r, fac_cl_way way,
                        fac_cl_tile *t);
/* Its part in gemm_thin.c; how operands can be read is noted in t already. */
bool fac_cl_tile_thin(const fac_opencl *o, const fac_cl_product *r, fac_cl_tile *t);
/* Bytes for the parts of a sum that is split. */
size_t fac_cl_gemm_work(const fac_cl_tile *t, const fac_cl_product *r);

/* ---- gemm_text.c ---- */

/* Definitions in front of a kernel: types, operands, body.  partial: sums are not finished. */
bool fac_cl_finish_text(const fac_cl_product *r, bool fp64, bool partial, fac_text *to);
const char *fac_cl_options(const fac_cl_product *r);
size_t fac_cl_sum_bytes(fac_dtype t); /* of the type that elements of this one are summed in */

/* ---- gemm.c ---- */

fac_status fac_cl_gemm_make(fac_opencl *o, const fac_cl_product *r, const fac_cl_tile *t,
                            fac_cl_gemm *out, fac_error *err);
void fac_cl_gemm_free(fac_opencl *o, fac_cl_gemm *g);

/* Operands of one run; tables: taps, pixels and places, those that the product has. */
typedef struct fac_cl_operands {
    fac_span a, b, y, e[FAC_CL_EXTRAS], taps, pixels, places, work;
} fac_cl_operands;
fac_status fac_cl_gemm_run(fac_opencl *o, const fac_cl_gemm *g, const fac_cl_shape *s,
                           const fac_cl_operands *x, fac_error *err);

/* The shape with the places of the operands' spans, of those that are there; and as an argument. */
fac_cl_shape fac_cl_placed(const fac_cl_gemm *g, const fac_cl_shape *s, const fac_cl_operands *x);
fac_cl_arg fac_cl_shape_arg(const fac_cl_gemm *g, const fac_cl_shape *s);

/* The last step of a split sum alone, for other kernels that leave parts in x->work: s->splits of
 * them.  Without the kernel only sizes of elements are noted. */
fac_status fac_cl_sum_make(fac_opencl *o, const fac_cl_product *r, bool kernel, fac_cl_gemm *out,
                           fac_error *err);
fac_status fac_cl_sum_run(fac_opencl *o, const fac_cl_gemm *g, const fac_cl_shape *s,
                          const fac_cl_operands *x, fac_error *err);
#endif
