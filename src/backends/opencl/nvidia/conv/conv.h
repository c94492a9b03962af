/* Convolutions on NVIDIA's matrix units: how problems are read for them, and how their weights are
 * packed.  What they are is in gpu/nvidia/conv/conv.h. */
#ifndef FACULA_OPENCL_NVIDIA_CONV_H
#define FACULA_OPENCL_NVIDIA_CONV_H
#include "backends/gpu/nvidia/conv/conv.h"
#include "backends/opencl/conv/conv.h"
#include "backends/opencl/nvidia/unit/epilogue.h"
#include "backends/opencl/nvidia/unit/nvidia.h"

/* A conv1d..3d, one of their gradients by x, or a transpose, whose channels are multiples of 4 (8
 * for 16-bit types) and rows multiples of 4.  Asks for channels last where they are not there (only
 * an offer may: p is changed).  false: not for this. */
bool fac_nv_conv_read(const fac_opencl *o, fac_problem *p, fac_nv_conv *c);
/* ---- conv_moments.c: mean and variance of what a convolution makes, or the sums of
 * conv2d_grad_x_norm ----
 *
 * Kernels leave those of 64 rows each, nv_moments.cl, as [part][mean, m2 or the
 * sums][channels] and after them [part] counts; one more launch joins them. */
typedef struct fac_nv_moments {
    int64_t parts, channels;
} fac_nv_moments;
size_t fac_nv_moments_bytes(const fac_nv_moments *m);
fac_status fac_nv_moments_make(fac_opencl *o, const fac_nv_conv *c, const fac_nv_moments *m,
                               fac_cl_kernel *out, fac_error *err);
/* in: the problem's inputs; to: its outputs */
fac_status fac_nv_moments_run(fac_opencl *o, const fac_nv_conv *c, const fac_nv_moments *m,
                              const fac_cl_kernel *k, fac_span from, const fac_span *in,
                              const fac_span *to, fac_error *err);
/* norm4(v, along, m): what is done to four sums after finish4, and what is summed beside them. */
void fac_nv_norm_text(const fac_nv_conv *c, fac_text *to);

/* ---- conv_foresee.c ----
 *
 * Adds  foresee_row(&e, &p, c, n EXTRA_ARGS)  which asks the second cache for channels c .. c + n -
 * 1 of a pixel, of all extras that differ between pixels and have whole rows of 16 bytes.  false:
 * there are none. */
bool fac_nv_foresee_text(const fac_nv_conv *c, fac_text *to);

/* ---- conv_pack.c: weights as tiles, each the very bytes of local memory that wgmma reads ----
 *
 *   [phase][group][rows of a tile][k-tile][part][row][terms of a k-tile]
 *
 * k-tile: block of channels outer, tap inner (few: terms are [tap][4 channels] without blocks);
 * part: high and low of 3xTF32; rows of 64 or 128 bytes, 16-byte chunks swizzled as the descriptors
 * of nv_common.cl say.  Rows of each 16 are permuted so that a lane's sums are four neighbours:
 * position 8 j + 2 t + h <-> row 16 (j / 2) + 4 t + 2 (j % 2) + h.  Rows, channels and taps that
 * fill a tile up are zeros.
 *
 * The units truncate towards zero where f32 would round, and sums and layers add the losses up.  So
 * weights are packed a little larger, by the mean loss, which was measured as the slope of results
 * over exact ones on an H200. */
/* Mean relative loss when the unit truncates an f32 of local memory to TF32 (FAC_NV_IN_ORDER,
 * TF32): 2^-11 / (2 ln 2).  The error of VGG16's logits is 1.6e-3 of the largest with it, 5.2e-3
 * without. */
#define FAC_NV_CUT 0.000352
/* Mean relative loss per accumulated term in 3xTF32. */
#define FAC_NV_LOST 6.3e-9
bool fac_nv_pack_text(const fac_nv_conv *c, const fac_nv_packing *k, fac_text *to);
fac_status fac_nv_pack_make(fac_opencl *o, const fac_nv_conv *c, const fac_nv_packing *k,
                            fac_cl_kernel *out, fac_error *err);
/* from: the weights as the problem has them, plain. */
fac_status fac_nv_pack_run(fac_opencl *o, const fac_nv_conv *c, const fac_nv_packing *k,
                           const fac_cl_kernel *kernel, fac_span from, fac_span to, fac_error *err);
/* The same for k->points: c is the convolution, m the product, whose groups are points x groups. */
fac_status fac_nv_pack_points(fac_opencl *o, const fac_nv_conv *c, const fac_nv_conv *m,
                              const fac_nv_packing *k, const fac_cl_kernel *kernel, fac_span from,
                              fac_span to, fac_error *err);
#endif
