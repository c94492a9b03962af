/* Matrix products on wgmma (nv_matmul.cl) and on mma.sync (nv_mma_matmul.cl): how a
 * product of gemm.h is cut, and how its operands get there.
 *
 * An operand of the tile's rows or columns comes as images of k-tiles, made once for parameters,
 * else by a kernel of the run, or is copied from where it lies when its terms (of 16 bits: or its
 * rows) are neighbours. */
#ifndef FACULA_GPU_NVIDIA_MATMUL_H
#define FACULA_GPU_NVIDIA_MATMUL_H
#include "backends/gpu/nvidia/mma.h"
#include "backends/gpu/nvidia/places.h"

/* As the kernel has them. */
typedef enum fac_nv_from { FAC_NV_IMAGES, FAC_NV_ROWS, FAC_NV_COLUMNS } fac_nv_from;
typedef enum fac_nv_make { FAC_NV_FLOATS, FAC_NV_ROUNDED, FAC_NV_SPLIT, FAC_NV_HALVES } fac_nv_make;

typedef struct fac_nv_side {
    int input; /* 0: a, 1: b */
    fac_nv_from from;
    fac_nv_make make;      /* of images */
    bool packed, permuted; /* images made before the run; rows in the lanes' order */
    bool along_k, fours;   /* it is read along the terms, else along the rows; by fours */
    int tile;              /* rows of one */
    int64_t rows, at, row, term, z[FAC_GPU_BATCH], size[FAC_GPU_BATCH], blocks;
    size_t matrix, bytes,
        place; /* images of a matrix and of all; where they begin in the scratch */
} fac_nv_side;

/* The tile; k-tiles on the way; work groups that a unit holds; share of the units' speed. */
typedef struct fac_nv_cut {
    int rows, columns, stages, groups;
    double share;
} fac_nv_cut;

typedef struct fac_nv_matmul {
    fac_gpu_product r;
    fac_nv_mode mode;
    /* mma: on mma.sync; own: a tile is one consumer's, so that units multiply while the other one
     * stores results */
    bool mma, swap, fours, own;
    fac_nv_side p, q; /* of the tile's rows, of its columns */
    fac_nv_cut cut;
    int warp_rows, warp_columns, row_bytes; /* mma: of a warp; of a step of both operands' rows */
    double rate;                            /* multiply-adds a second of the device */
    int64_t row_tiles, column_tiles, tiles, k_tiles, each, parts, band; /* tiles: of all matrices */
    size_t parts_at, work; /* bytes of the scratch: images, then parts of sums */
    fac_nv_ends ends;
    double seconds; /* the estimate */
} fac_nv_matmul;

/* matmul_cut.c: reads a product; false: not for this.  before_run[i]: input i can be packed.
 * variant: which cut, 0: the best by estimates. */
bool fac_nv_matmul_read(const fac_gpu_limits *l, const fac_gpu_product *r, fac_precision precision,
                        const bool *before_run, int variant, fac_nv_matmul *m);
int fac_nv_matmul_variants(const fac_nv_matmul *m);
/* The same for mma.sync. */
bool fac_mma_matmul_read(const fac_mma_unit *u, const fac_gpu_product *r, fac_precision precision,
                         const bool *before_run, int variant, fac_nv_matmul *m);
int fac_mma_matmul_variants(const fac_mma_unit *u, const fac_nv_matmul *m);
static inline int fac_nv_terms(const fac_nv_matmul *m) {
    return m->mode == FAC_NV_3XTF32 || m->mode == FAC_NV_TF32 ? 32 : 64;
}

/* mma_matmul_cuts.c: the k-th tile for m's mode and side, with no groups where local memory has no
 * room for it; false: there is none. */
bool fac_mma_matmul_cut(const fac_mma_unit *u, int k, fac_nv_matmul *m);
static inline int fac_mma_matmul_items(const fac_nv_matmul *m) {
    return 32 * (m->cut.rows / m->warp_rows) * (m->cut.columns / m->warp_columns);
}

/* Rows of a tile that a group of items packs: tiles are made of whole ones. */
static inline int fac_nv_matmul_lines(int tile) {
    if (tile < 64) return tile;
    return tile % 64 ? 32 : 64;
}
#endif
