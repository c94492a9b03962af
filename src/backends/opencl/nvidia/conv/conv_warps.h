/* conv/warps: conv/wgmma's problems of few pixels, for which nv_conv_warps.cl is done
 * sooner.  It is the solver of conv_rows.c with another kernel; gpu/nvidia/conv/warps_tiles.c cuts
 * problems for it, what is here writes its letters. */
#ifndef FACULA_OPENCL_NVIDIA_CONV_WARPS_H
#define FACULA_OPENCL_NVIDIA_CONV_WARPS_H
#include "backends/opencl/nvidia/conv/conv_rows.h"

void fac_nv_warps_text(const fac_nv_conv *c, const fac_nv_tile *t, fac_text *to);
#endif
