/* Solvers on mma.sync, for sm_80 to sm_89 (A100, RTX 30 and 40, L4) and whatever else has it:
 * conv/mma, conv/mma_grad_w, product/mma.  The first and the last are the solvers on wgmma with
 * other kernels: conv_rows.c and matmul.c hold both, what is here says how problems are cut for
 * these kernels and writes their texts. */
#ifndef FACULA_OPENCL_NVIDIA_MMA_H
#define FACULA_OPENCL_NVIDIA_MMA_H
#include "backends/opencl/nvidia/unit/nvidia.h"

/* ---- mma_tiles.c ---- */

/* Bytes of static local memory that a group may have: by probes, since what the device reports
 * holds for arguments only. */
size_t fac_mma_local(fac_opencl *o);
/* Multiply-adds a second of the whole device, counted as those of the definition. */
double fac_mma_rate(fac_opencl *o, fac_nv_mode mode);
/* Where wgmma is there as well, these solvers offer so much more than they estimate: they are never
 * faster. */
double fac_mma_handicap(fac_opencl *o);
/* How many groups of so many items with so much local memory, about registers each, a unit has room
 * for; 0: not one. */
int fac_mma_room(fac_opencl *o, int items, size_t local, int registers);

/* The letters of nv_mma_tiles.cl. */
typedef struct fac_mma_tile {
    int rows, columns, warp_rows, warp_columns, a_row, b_row;
    fac_nv_mode mode;
    bool a_floats, round_a, round_b;
    int b_low;
} fac_mma_tile;
static inline int fac_mma_items(const fac_mma_tile *t) {
    return 32 * (t->rows / t->warp_rows) * (t->columns / t->warp_columns);
}
void fac_mma_tiles_text(const fac_mma_tile *t, fac_text *to);
#endif
