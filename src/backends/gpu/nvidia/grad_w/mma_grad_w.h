/* Gradients of convolutions by their weights on mma.sync (nv_mma_grad_w.cl): how the sum is
 * cut. */
#ifndef FACULA_GPU_NVIDIA_MMA_GRAD_W_H
#define FACULA_GPU_NVIDIA_MMA_GRAD_W_H
#include "backends/gpu/nvidia/grad_w/grad_w.h"
#include "backends/gpu/nvidia/mma.h"

/* Rows and columns of a tile and of a warp; pixels of a step, at most 32; registers of an item,
 * about; share of the rate. */
typedef struct fac_mma_grad_w_kind {
    int rows, columns, warp_rows, warp_columns, pixels, registers;
    double share;
} fac_mma_grad_w_kind;

typedef struct fac_mma_grad_w_cut {
    fac_mma_grad_w_kind k;
    int items, stages;
    int64_t tiles_m, tiles_n, each, splits; /* tiles of a group; pixels of a part; parts */
    double seconds;
} fac_mma_grad_w_cut;

/* The best cut by estimates, or the one of a variant; false: there is none, or x has few channels.
 */
bool fac_mma_grad_w_choose(const fac_gpu_limits *l, const fac_mma_unit *u, const fac_nv_grad_w *q,
                           int variant, fac_mma_grad_w_cut *out);
int fac_mma_grad_w_variants(void);
size_t fac_mma_grad_w_work(const fac_nv_grad_w *q, int64_t splits); /* bytes, of parts */
#endif
