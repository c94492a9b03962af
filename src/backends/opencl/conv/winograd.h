/* What the solvers by Winograd's transforms share (winograd.cl): conv_winograd.c and
 * conv_winograd_grad_w.c. */
#ifndef FACULA_OPENCL_WINOGRAD_H
#define FACULA_OPENCL_WINOGRAD_H
#include "backends/opencl/conv/conv.h"

enum { FAC_CL_WINOGRAD_VARIANTS = 3 };

/* An image and its tiles, as the kernels have them: tiles from `first` on, of all images, into rows
 * of `row`. */
typedef struct fac_cl_sight {
    int64_t at, image, channel, h, w, to;
    int32_t height, width, pad_h, pad_w, down, across, first, tiles, row, channels;
} fac_cl_sight;

/* Bytes of scratch of a slice: what a cpu's caches hold, or what costs a GPU few launches; variants
 * try the one and the other. */
double fac_cl_winograd_slice(const fac_opencl *o, int variant);

/* What both ask of a convolution: 3 x 3 of stride 1 in f32; gradients by weights and tiles of more
 * than 2 x 2 outputs, which round more than the direct sum, not at the highest precision. */
bool fac_cl_winograd_takes(const fac_problem *p, const fac_cl_conv *c, int out);

/* One of the kernels for tiles of out x out outputs, with the definitions of its options in front.
 */
fac_status fac_cl_winograd_kernel(fac_opencl *o, const fac_gpu_product *r, int out,
                                  const char *options, const char *name, fac_cl_kernel *to,
                                  fac_error *err);

fac_cl_range fac_cl_winograd_range(const fac_opencl *o, int64_t tiles, int64_t planes);
#endif
