/* Matrix products on wgmma (nv_matmul.cl) and on mma.sync (nv_mma_matmul.cl): their texts.  How
 * they are cut is in gpu/nvidia/product/matmul.h. */
#ifndef FACULA_OPENCL_NVIDIA_MATMUL_H
#define FACULA_OPENCL_NVIDIA_MATMUL_H
#include "backends/gpu/nvidia/product/matmul.h"
#include "backends/opencl/product/gemm.h"
#include "backends/opencl/nvidia/unit/epilogue.h"
#include "backends/opencl/nvidia/unit/nvidia.h"

/* matmul_text.c: false: no memory, or a body that cannot be written */
bool fac_nv_matmul_text(const fac_nv_matmul *m, bool fp64, fac_text *to);
bool fac_nv_matmul_pack_text(const fac_nv_matmul *m, const fac_nv_side *s, fac_text *to);
#endif
