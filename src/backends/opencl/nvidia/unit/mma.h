/* Solvers on mma.sync, for sm_80 to sm_89 (A100, RTX 30 and 40, L4) and whatever else has it:
 * conv/mma, conv/mma_grad_w, product/mma.  The first and the last are the solvers on wgmma with
 * other kernels: conv_rows.c and matmul.c hold both, what is here says how problems are cut for
 * these kernels and writes their texts. */
#ifndef FACULA_OPENCL_NVIDIA_MMA_H
#define FACULA_OPENCL_NVIDIA_MMA_H
#include "backends/gpu/nvidia/mma.h"
#include "backends/opencl/nvidia/unit/nvidia.h"

/* ---- mma_tiles.c ---- */

/* The device's unit: by probes, since what it reports of local memory holds for arguments only. */
fac_mma_unit fac_mma_unit_of(fac_opencl *o);
/* Where wgmma is there as well, these solvers offer so much more than they estimate: they are never
 * faster. */
double fac_mma_handicap(fac_opencl *o);
void fac_mma_tiles_text(const fac_mma_tile *t, fac_text *to);
#endif
