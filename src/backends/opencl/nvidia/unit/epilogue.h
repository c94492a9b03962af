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
#include "backends/gpu/nvidia/places.h"
#include "base/text.h"

/* Adds the definitions above, for a text that begins with nv_common.cl.  false: no memory,
 * or a body that cannot be written. */
bool fac_nv_epilogue_text(const fac_gpu_product *r, const fac_nv_ends *e, bool fp64, fac_text *to);
#endif
