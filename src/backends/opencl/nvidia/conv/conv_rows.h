/* Convolutions by nv_conv_rows.cl: how they are cut into tiles, and one of them ready to
 * run. */
#ifndef FACULA_OPENCL_NVIDIA_CONV_ROWS_H
#define FACULA_OPENCL_NVIDIA_CONV_ROWS_H
#include "backends/opencl/nvidia/conv/conv.h"
#include "backends/opencl/nvidia/unit/mma.h"

/* A way to cut: columns and teams of 64 rows of a tile, bytes of a row of weights, stages, the next
 * operand made ahead, most registers (0: as many as it takes), for few channels, sums may be split;
 * the share of the rate that it reaches. */
typedef struct fac_nv_cut {
    int columns, teams, row, stages;
    bool ahead;
    int registers;
    bool few, split;
    double share;
} fac_nv_cut;

typedef struct fac_nv_tile {
    fac_nv_cut c;
    fac_nv_packing k;
    int promote, splits, each_k; /* in k-tiles; of the phase that has most to do */
    int warp_rows, warp_columns; /* of the kernel on mma.sync (mma.h); 0: wgmma */
    int at_once;                 /* the same: groups of a unit */
    int rows, warps,
        depth; /* of the kernel whose warps share the sums (conv_warps.h); 0: another one */
    double seconds;
} fac_nv_tile;

static inline int fac_nv_tile_rows(const fac_nv_tile *t) {
    return t->warps ? t->rows : 64 * t->c.teams;
}

/* ---- conv_tiles.c ---- */

int fac_nv_tile_variants(const fac_nv_conv *c);
/* The best by estimates, or the variant asked for (from 1); false: none. */
bool fac_nv_tile_choose(const fac_opencl *o, const fac_nv_conv *c, int variant, fac_nv_tile *t);
size_t fac_nv_tile_work(const fac_nv_conv *c, const fac_nv_tile *t); /* bytes, for parts of sums */
static inline int64_t fac_nv_parts(int64_t n, int64_t each) { return (n + each - 1) / each; }

/* ---- mma_conv_tiles.c ---- */

int fac_mma_conv_variants(const fac_nv_conv *c);
/* As fac_nv_tile_choose, for conv/mma. */
bool fac_mma_conv_choose(fac_opencl *o, const fac_nv_conv *c, int variant, fac_nv_tile *t);
fac_mma_tile fac_mma_conv_tile(const fac_nv_conv *c, const fac_nv_tile *t);

/* ---- conv_rows.c ---- */

typedef struct fac_nv_rows {
    fac_nv_conv c;
    fac_nv_tile t;
    fac_cl_kernel kernel;
    fac_span counters; /* of groups that are done with a split tile: zero between runs */
    size_t counted;    /* bytes */
} fac_nv_rows;

/* r->c and r->t are filled in. */
fac_status fac_nv_rows_make(fac_device *d, fac_nv_rows *r, fac_error *err);
void fac_nv_rows_free(fac_device *d, fac_nv_rows *r);
/* images: of c.g.N, the first so many.  w: packed as r->t.k; in: the problem's inputs, for extras.
 */
fac_status fac_nv_rows_run(fac_opencl *o, const fac_nv_rows *r, int64_t images, fac_span x,
                           fac_span w, fac_span y, const fac_span *in, fac_span work,
                           fac_error *err);
/* The text of the kernel, options in the first line. */
bool fac_nv_rows_text(const fac_opencl *o, const fac_nv_conv *c, const fac_nv_tile *t,
                      fac_text *to);
#endif
