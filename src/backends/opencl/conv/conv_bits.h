/* Convolutions of few bits on OpenCL: what conv2d_basis/count, conv2d_codes/count and the solvers
 * on NVIDIA's matrix units (nvidia/bits) read of a problem, and how numbers become words. */
#ifndef FACULA_OPENCL_CONV_BITS_H
#define FACULA_OPENCL_CONV_BITS_H
#include "backends/opencl/device/calls.h"
#include "ops/conv_basis.h"

typedef struct fac_cl_bits {
    fac_conv_geom g;
    int64_t C, K, words; /* of a group */
    int planes, of_weights, each;
    bool sign, relu, x_codes, codes;
    size_t w_bytes, x_bytes; /* of scratch: words of weights, then of pixels unless they come so */
} fac_cl_bits;

/* Settles all operands as plain; false: not for these solvers. */
bool fac_cl_bits_read(const fac_opencl *o, fac_problem *p, fac_cl_bits *s);
/* The launch that writes words of pixels into the scratch after w_bytes. */
fac_status fac_cl_bits_pixels(fac_opencl *o, const fac_problem *p, const fac_cl_bits *s,
                              fac_cl_plan *plan, fac_error *err);
#endif
