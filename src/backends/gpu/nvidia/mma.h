/* What planning for mma.sync asks of the device, and the tiles of its kernels. */
#ifndef FACULA_GPU_NVIDIA_MMA_H
#define FACULA_GPU_NVIDIA_MMA_H
#include "backends/gpu/nvidia/mode.h"

typedef struct fac_mma_unit {
    size_t local; /* bytes of static local memory that a group may have */
    double rate;  /* multiply-adds of TF32 a second of a unit */
    unsigned units;
} fac_mma_unit;

/* Multiply-adds a second of the whole device, counted as those of the definition. */
double fac_mma_rate(const fac_mma_unit *u, fac_nv_mode mode);
/* How many groups of so many items with so much local memory, about registers each, a unit has room
 * for; 0: not one. */
int fac_mma_room(const fac_mma_unit *u, int items, size_t local, int registers);

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
#endif
