/* Attention and its gradient on wgmma and mma.sync: the texts and launches that the solvers share.
 * How problems are read and cut is in gpu/nvidia/attention/attention.h. */
#ifndef FACULA_OPENCL_NV_ATTENTION_H
#define FACULA_OPENCL_NV_ATTENTION_H
#include "backends/gpu/nvidia/attention/attention.h"
#include "backends/opencl/device/calls.h"
#include "backends/opencl/nvidia/unit/nvidia.h"

/* The launch that makes images from input `input` of the problem. */
fac_status fac_nv_images_add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                             const fac_nv_attention *a, const fac_nv_images *m, int input,
                             fac_error *err);

/* ---- texts ---- */

void fac_nv_attention_text(const fac_nv_attention *a, fac_nv_attention_kernel kernel,
                           const fac_nv_attention_cut *cut, bool lse, fac_text *to);
/* The types; and what kernels are told of masks and the result. */
void fac_nv_attention_types(const fac_nv_attention *a, fac_text *to);
void fac_nv_attention_forms(const fac_nv_attention *a, fac_text *to);
void fac_nv_images_text(const fac_nv_attention *a, const fac_nv_images *m, fac_text *to);
/* The launch of such a kernel for tiles of 64 `groups` of so many rows of each head: a group of
 * items for each compute unit, and the number of all tiles as the call's last number. */
void fac_nv_attention_range(const fac_opencl *o, const fac_nv_attention_cut *cut, int64_t rows,
                            int64_t heads, fac_cl_call *c);
/* ---- attention_warps.c: on mma.sync ---- */

void fac_nv_attention_warps_text(const fac_nv_attention *a, const fac_nv_attention_warps_cut *cut,
                                 bool lse, fac_text *to);
/* What the kernel is told after its buffers, and its range. */
void fac_nv_attention_warps_numbers(const fac_nv_attention *a,
                                    const fac_nv_attention_warps_cut *cut, fac_cl_call *c);

/* What all these kernels are told.  tiles: of images; of attention itself, where `all` follows. */
void fac_nv_attention_numbers(const fac_nv_attention *a, int64_t tiles, fac_cl_call *c);
void fac_nv_heads_numbers(const fac_nv_heads *h, fac_cl_call *c);
void fac_nv_attention_mask_numbers(const fac_nv_attention *a, fac_cl_call *c); /* and the scale */
void fac_nv_attention_mask_buffer(const fac_nv_attention *a, const fac_problem *p, int mask,
                                  fac_cl_call *c);
#endif
