/* conv/warps: conv/wgmma's problems of few pixels, for which nv_conv_warps.cl is done
 * sooner.  It is the solver of conv_rows.c with another kernel; what is here cuts problems for it
 * and writes its letters. */
#ifndef FACULA_OPENCL_NVIDIA_CONV_WARPS_H
#define FACULA_OPENCL_NVIDIA_CONV_WARPS_H
#include "backends/opencl/nvidia/conv/conv_rows.h"

int fac_nv_warps_variants(const fac_nv_conv *c);
/* As fac_nv_tile_choose. */
bool fac_nv_warps_choose(const fac_opencl *o, const fac_nv_conv *c, int variant, fac_nv_tile *t);
void fac_nv_warps_text(const fac_nv_conv *c, const fac_nv_tile *t, fac_text *to);
#endif
