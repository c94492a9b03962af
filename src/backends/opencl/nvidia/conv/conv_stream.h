/* conv/wgmma_stream: convolutions on wgmma by groups that stay and take tile after tile, both
 * operands in local memory (nv_conv_stream.cl).  What its solver
 * (conv_stream.c) and its text share; how it is cut is in gpu/nvidia/conv/stream.h. */
#ifndef FACULA_OPENCL_NVIDIA_CONV_STREAM_H
#define FACULA_OPENCL_NVIDIA_CONV_STREAM_H
#include "backends/gpu/nvidia/conv/stream.h"
#include "backends/opencl/nvidia/conv/conv.h"

/* Reads the problem, as fac_nv_conv_read does, and chooses a tile: the problem's variant, or the
 * best by estimate.  false: not for this solver, or no such tile. */
bool fac_nv_stream_read(fac_opencl *o, fac_problem *p, fac_nv_stream *q);
/* conv_stream_text.c: the whole kernel; false: no memory. */
bool fac_nv_stream_text(const fac_nv_stream *q, bool fp64, fac_text *to);
#endif
