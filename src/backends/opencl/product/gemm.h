/* Matrix products: what matmul, linear, gemm and all convolutions that are not direct end in.
 *
 *   y[z](m, n) = finish(sum over k of a[z](m, k) b[z](k, n))
 *
 * A solver says where the elements of a, b, y and of further operands lie (gemm_common.cl),
 * a tile is chosen by the device's class and the sizes (gpu/product/tiles.c), the text of the
 * kernel is put together (gemm_text.c), built and launched (gemm.c).
 *
 * b may be the patches of an image instead of a matrix, so a convolution needs no copy of its
 * input:
 *   FAC_GPU_PATCHES   columns are pixels, rows are taps: the convolution itself, and its gradient
 * by
 *                    x
 *   FAC_GPU_TAPS      columns are taps, rows are pixels: its gradient by w
 * Where each pixel sees itself alone (1 x 1), b is a matrix, whose terms are of many images in the
 * gradient by w, as a's are. Two tables of int4 then say where a pixel and a tap lie: offset in
 * elements, and depth, row and column in the image. */
#ifndef FACULA_OPENCL_GEMM_H
#define FACULA_OPENCL_GEMM_H
#include "backends/gpu/product/product.h"
#include "backends/gpu/speed.h"
#include "backends/opencl/device/launch.h"
#include "base/text.h"

typedef struct fac_cl_gemm {
    fac_cl_kernel product, sum; /* sum: of the parts, when the sum is split */
    fac_gpu_tile tile;
    size_t element, element_b, result, sums, extra[FAC_GPU_EXTRAS]; /* bytes */
    int extras;
    fac_gpu_right right;
    bool places;
} fac_cl_gemm;

/* ---- gemm_product.c: what solvers say of their operands ---- */

/* Starts a product: types, bias and body.  bias: an input of the problem, or -1.  false: a type or
 * body not for kernels. */
bool fac_cl_product_start(const fac_opencl *o, const fac_problem *p, int bias, fac_gpu_product *r);
/* ---- matmul.c ---- */

/* A matmul, linear or gemm as a product; false: another op, or not for this. */
bool fac_cl_product_read(const fac_opencl *o, const fac_problem *p, fac_gpu_product *r);

/* ---- gemm_text.c ---- */

/* Definitions in front of a kernel: types, operands, body.  partial: sums are not finished. */
bool fac_cl_finish_text(const fac_gpu_product *r, bool fp64, bool partial, fac_text *to);
const char *fac_cl_options(const fac_gpu_product *r);

/* ---- gemm.c ---- */

fac_status fac_cl_gemm_make(fac_opencl *o, const fac_gpu_product *r, const fac_gpu_tile *t,
                            fac_cl_gemm *out, fac_error *err);
void fac_cl_gemm_free(fac_opencl *o, fac_cl_gemm *g);

/* Operands of one run; tables: taps, pixels and places, those that the product has. */
typedef struct fac_cl_operands {
    fac_span a, b, y, e[FAC_GPU_EXTRAS], taps, pixels, places, work;
} fac_cl_operands;
fac_status fac_cl_gemm_run(fac_opencl *o, const fac_cl_gemm *g, const fac_gpu_shape *s,
                           const fac_cl_operands *x, fac_error *err);

/* The shape with the places of the operands' spans, of those that are there; and as an argument. */
fac_gpu_shape fac_cl_placed(const fac_cl_gemm *g, const fac_gpu_shape *s, const fac_cl_operands *x);
fac_cl_arg fac_cl_shape_arg(const fac_cl_gemm *g, const fac_gpu_shape *s);

/* The last step of a split sum alone, for other kernels that leave parts in x->work: s->splits of
 * them.  Without the kernel only sizes of elements are noted. */
fac_status fac_cl_sum_make(fac_opencl *o, const fac_gpu_product *r, bool kernel, fac_cl_gemm *out,
                           fac_error *err);
fac_status fac_cl_sum_run(fac_opencl *o, const fac_cl_gemm *g, const fac_gpu_shape *s,
                          const fac_cl_operands *x, fac_error *err);
#endif
