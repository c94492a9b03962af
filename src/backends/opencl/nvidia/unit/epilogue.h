/* What kernels of products do to their sums: the text of functions for four neighbours along the
 * channels of one pixel (the columns of one row of a matrix product).  Bias, any elementwise body,
 * further operands loaded by fours, the result stored as f32, bf16 or f16.
 *
 * A pixel has four coordinates: image, depth, row, column (a matrix: batches and row).  The kernel
 * uses
 *
 *   kernel void k(..., const ends e, global RESULT *restrict y EXTRA_PARAMS)         e: struct
 *       fac_nv_ends
 *   spot p = spot_of(&e, image, depth, row, column);         where its channel 0 lies in y and in
 *       each extra
 *   more m;                                                  four elements of each extra; of bits
 *       m.v[..][0] is four of them
 *   more_of_channels(&e, c, &m EXTRA_ARGS);                  those that are the same for all
 *       pixels: once for all rows of a lane
 *   more_of_pixel(&e, &p, c, &m EXTRA_ARGS);                 the others; all loads first, then what
 *       follows
 *   finish4(v, &m);                                          float v[4]: sums become results
 *   store4(&e, &p, c, v, y);                                 c: a multiple of 4, c + 3 within the
 *       channels
 *
 * y and extras are offset by fac_nv_ends; offsets within them stay below 2^31 elements. */
#ifndef FACULA_OPENCL_NVIDIA_EPILOGUE_H
#define FACULA_OPENCL_NVIDIA_EPILOGUE_H
#include "backends/opencl/product/gemm.h"

/* Where the element of a pixel and a channel lies: at + the coordinates times their steps, in
 * elements.  apart: rows and columns that are no multiples of it have none, the others are divided
 * by it (0 and 1: all have). */
typedef struct fac_nv_place {
    int64_t at;
    int32_t image, depth, row, column, channel, apart;
} fac_nv_place;

/* How an extra changes: by channels alone, by both with four channels side by side, by pixels
 * alone, anyhow. */
typedef enum fac_nv_run { FAC_NV_CHANNELS, FAC_NV_FOURS, FAC_NV_PIXELS, FAC_NV_ANYHOW } fac_nv_run;

/* Element 0 is the result, after it the extras of the product in their order; the argument has 1 +
 * extras of them. */
typedef struct fac_nv_ends {
    fac_nv_place p[1 + FAC_CL_EXTRAS];
} fac_nv_ends;
static inline size_t fac_nv_ends_bytes(const fac_cl_product *r) {
    return (size_t)(1 + r->extras) * sizeof(fac_nv_place);
}

/* The place of a result of `rank` spatial dims [images][channels][...] and of an operand that
 * broadcasts to it. */
bool fac_nv_place_of(const fac_operand *x, const fac_dims *result, fac_nv_place *to);
/* Whether fours of it lie on 8 (16 bits) or 16 bytes. */
bool fac_nv_in_fours(const fac_nv_place *p);
fac_nv_run fac_nv_run_of(const fac_nv_place *p);

/* Extras that are not like the result (-1: none): `thin` has only the pixels that are `apart` from
 * one another, and is 0 between them; `bits` is u8, and bit c % 4 of byte c / 4 of a pixel is
 * channel c's (ops/bits.h). */
typedef struct fac_nv_unlike {
    int thin, apart, bits;
} fac_nv_unlike;

/* All places of a convolution's product r; asks for channels last where fours cannot be read or
 * written (which only an offer may do).  false: a type or a broadcast that this is not for, or more
 * than 2^31 elements away. */
bool fac_nv_ends_read(fac_problem *p, const fac_cl_product *r, const fac_nv_unlike *unlike,
                      fac_nv_ends *e);
/* Lays x out with all channels of a pixel side by side. */
void fac_nv_lay_last(fac_operand *x);

/* Adds the definitions above, for a text that begins with nv_common.cl.  false: no memory,
 * or a body that cannot be written. */
bool fac_nv_epilogue_text(const fac_cl_product *r, const fac_nv_ends *e, bool fp64, fac_text *to);
#endif
