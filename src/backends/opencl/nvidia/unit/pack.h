/* Packing of weights (conv.h) as nv_pack.cl is told of it: by phases, one launch each, or
 * many of many weights in one. */
#ifndef FACULA_OPENCL_NVIDIA_PACK_H
#define FACULA_OPENCL_NVIDIA_PACK_H
#include "backends/opencl/nvidia/conv/conv.h"

/* What a solver packs: for F(4 x 4, 3 x 3) the product is another one than the convolution that the
 * weights are of. */
typedef struct fac_nv_weights {
    const fac_nv_conv *weights, *product;
    const fac_nv_packing *k;
} fac_nv_weights;

/* One phase; as `packing` of the kernel (spare: both end at 8 bytes). */
typedef struct fac_nv_pack {
    int64_t to, group;
    int32_t source, first, line, window, flipped, rows, channels, row_tiles, k_tiles, taps;
    int32_t tile_rows, term_bits, order, few;
    float larger;
    int32_t staged, blocks, slabs, row_bits, runs, run;
    uint32_t multiplier, shift;
    int32_t number[3], first_tap[3], each[3], size[2], within, spare;
} fac_nv_pack;

/* The phase of weights whose first one's tiles begin at byte `to`. */
fac_nv_pack fac_nv_pack_phase(const fac_nv_weights *w, int phase, size_t to);
int fac_nv_pack_phases(const fac_nv_weights *w);
size_t fac_nv_pack_units(const fac_nv_weights *w,
                         const fac_nv_pack *s); /* groups of items that it takes */
size_t fac_nv_pack_items(const fac_opencl *o);  /* of a group */

/* The text of kernel "packs" for this many different weights, of the element type, tiles of the
 * mode; 0: of "pack". */
bool fac_nv_packs_text(fac_dtype type, fac_nv_mode mode, int sources, fac_text *to);

/* Of the solvers' plans. */
fac_nv_weights fac_nv_rows_weights(const void *plan); /* conv/wgmma and conv/mma */
fac_nv_weights fac_nv_conv_wgmma_stream_weights(const void *plan);
fac_nv_weights fac_nv_winograd_wgmma_weights(const void *plan);

/* packs.c: what packs the weights of many convolutions at once, and the making of its plan, of
 * weights w[i] for job i. */
fac_status fac_nv_packs_make(fac_opencl *o, const fac_nv_weights *w, const fac_pack_job *jobs,
                             int n, void **plan, fac_error *err);
extern const fac_packer fac_nv_packer;
#endif
