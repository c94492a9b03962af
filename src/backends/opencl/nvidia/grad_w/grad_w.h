/* Gradients of convolutions by their weights on wgmma: how problems are read, and the texts of the
 * kernels.  How they are cut is in gpu/nvidia/grad_w/grad_w.h. */
#ifndef FACULA_OPENCL_NVIDIA_GRAD_W_H
#define FACULA_OPENCL_NVIDIA_GRAD_W_H
#include "backends/gpu/nvidia/grad_w/mma_grad_w.h"
#include "backends/opencl/device/calls.h"
#include "backends/opencl/nvidia/unit/nvidia.h"

/* Of a convolution of at most `rank` spatial dims, 2 or 3.  Asks for channels last where they are
 * not there (which only an offer may do: p is changed).  maps: the kind of tensor maps that the
 * device has.  false: another op, or not for this. */
bool fac_nv_grad_w_read(fac_problem *p, int rank, int maps, fac_nv_grad_w *q);
/* The text of its kernel "grad_w", and of "grad_w_sum"; options of the first. */
void fac_nv_grad_w_text(const fac_nv_grad_w *q, const fac_nv_grad_w_cut *c, fac_text *to);
void fac_nv_grad_w_sum_text(const fac_nv_grad_w *q, fac_text *to);
/* conv_grad_w.c: the sum of the parts, [part][k][tap][c], as a launch of its own. */
fac_status fac_nv_grad_w_add_sum(fac_opencl *o, const fac_problem *p, const fac_nv_grad_w *q,
                                 int64_t splits, fac_cl_plan *plan, fac_error *err);
/* Of the kernel on mma.sync (nv_mma_grad_w.cl). */
void fac_mma_grad_w_text(const fac_nv_grad_w *q, const fac_mma_grad_w_cut *c, fac_text *to);
const char *fac_nv_grad_w_options(const fac_nv_grad_w_cut *c);
#endif
