/* How convolutions are cut into tiles, for nv_conv_rows.cl, nv_mma_conv.cl and nv_conv_warps.cl. */
#ifndef FACULA_GPU_NVIDIA_CONV_TILES_H
#define FACULA_GPU_NVIDIA_CONV_TILES_H
#include "backends/gpu/nvidia/conv/conv.h"
#include "backends/gpu/nvidia/mma.h"

/* A way to cut: columns and teams of 64 rows of a tile, bytes of a row of weights, stages, the next
 * operand made ahead, most registers (0: as many as it takes), for few channels, sums may be split;
 * the share of the rate that it reaches. */
typedef struct fac_nv_conv_cut {
    int columns, teams, row, stages;
    bool ahead;
    int registers;
    bool few, split;
    double share;
} fac_nv_conv_cut;

typedef struct fac_nv_tile {
    fac_nv_conv_cut c;
    fac_nv_packing k;
    int promote, splits, each_k; /* in k-tiles; of the phase that has most to do */
    int warp_rows, warp_columns; /* of the kernel on mma.sync (gpu/nvidia/mma.h); 0: wgmma */
    int at_once;                 /* the same: groups of a unit */
    int rows, warps,
        depth; /* of the kernel whose warps share the sums (nv_conv_warps.cl); 0: another one */
    double seconds;
} fac_nv_tile;

static inline int fac_nv_tile_rows(const fac_nv_tile *t) {
    return t->warps ? t->rows : 64 * t->c.teams;
}

/* ---- rows_tiles.c ---- */

int fac_nv_tile_variants(const fac_nv_conv *c);
/* The best by estimates, or the variant asked for (from 1); false: none. */
bool fac_nv_tile_choose(const fac_gpu_limits *l, const fac_nv_conv *c, int variant, fac_nv_tile *t);
size_t fac_nv_tile_work(const fac_nv_conv *c, const fac_nv_tile *t); /* bytes, for parts of sums */

/* ---- mma_tiles.c ---- */

int fac_mma_conv_variants(const fac_nv_conv *c);
/* As fac_nv_tile_choose, for conv/mma. */
bool fac_mma_conv_choose(const fac_mma_unit *u, const fac_nv_conv *c, int variant, fac_nv_tile *t);
fac_mma_tile fac_mma_conv_tile(const fac_nv_conv *c, const fac_nv_tile *t);

/* ---- warps_tiles.c: for few pixels ---- */

int fac_nv_warps_variants(const fac_nv_conv *c);
/* As fac_nv_tile_choose. */
bool fac_nv_warps_choose(const fac_gpu_limits *l, const fac_nv_conv *c, int variant,
                         fac_nv_tile *t);
#endif
