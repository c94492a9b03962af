/* NVIDIA's matrix units from OpenCL C: what the solvers of this folder share.  Each of them asks
 * the probes (probe.h) before it offers, so that nothing of this is seen on other devices. */
#ifndef FACULA_OPENCL_NVIDIA_H
#define FACULA_OPENCL_NVIDIA_H
#include "backends/gpu/nvidia/mode.h"
#include "backends/opencl/device/probe.h"
#include "base/text.h"

/* ---- wgmma_text.c ---- */

typedef enum fac_nv_kind { FAC_NV_KIND_TF32, FAC_NV_KIND_BF16, FAC_NV_KIND_F16 } fac_nv_kind;
enum { FAC_NV_A_REGISTERS = 1, FAC_NV_A_TRANSPOSED = 2, FAC_NV_B_TRANSPOSED = 4, FAC_NV_FIRST = 8 };

/* Adds one instruction as a function, for 64 x n (n a multiple of 8, at most 256) and 8 (tf32) or
 * 16 terms:
 *   wgmma_tf32_n128_ss(float *d, ulong a, ulong b)          both operands in local memory, by
 *       descriptors
 *   wgmma_bf16_n128_rs(float *d, const uint *a, ulong b)    FAC_NV_A_REGISTERS: four registers, as
 *       mma.sync's a by warps
 *   wgmma_bf16_n128_ss_tb                                   FAC_NV_B_TRANSPOSED, _ta
 * FAC_NV_A_TRANSPOSED: rows of it run along n, m (not the sum); not for tf32
 *   ..._first                                               FAC_NV_FIRST: d begins with this
 *       product, whatever it held */
void fac_nv_wgmma_text(fac_text *to, int n, fac_nv_kind kind, int how);
/* wgmma_wait1_n128(float *d): all groups but the last `left` are done, and d, 64 x n, is read only
 * after it: for kernels that go on while later ones still run. */
void fac_nv_wgmma_wait_text(fac_text *to, int n, int left);

/* ---- maps.c ---- */

/* The kind of tensor maps that the device has (MAPS of nv_maps.cl), 0: none; bytes of
 * scratch memory that so many of each group of items take, a group for each compute unit, wherever
 * they begin. */
int fac_nv_maps_of(fac_opencl *o);
size_t fac_nv_maps_bytes(const fac_opencl *o, int maps);

/* ---- ptx.c ---- */

/* The mark in front of instructions that only sm_90a has. */
#define FAC_NV_MARK "//@@"
/* Anywhere in a text: its kernels have a compute unit for themselves. */
#define FAC_NV_ALONE "//@alone"

/* PTX for sm_90 as PTX for sm_90a, its marked instructions uncovered.  *out: fac_release; its size
 * counts the closing zero. FAC_E_UNSUPPORTED: for another target.  FAC_E_NOMEM. */
fac_status fac_nv_rewrite(const char *ptx, size_t bytes, char **out, size_t *out_bytes,
                          fac_error *err);
/* The same for a program that is built: another one, not built yet, and its PTX. */
fac_status fac_nv_uncovered(const fac_cl_api *cl, cl_context context, cl_device_id device,
                            cl_program from, char **ptx, size_t *bytes, cl_program *out,
                            fac_error *err);
#endif
