/* conv2d/direct (conv_direct.c): its plan, and how the work is cut (conv_direct_schedule.c). */
#ifndef FACULA_CPU_CONV_DIRECT_H
#define FACULA_CPU_CONV_DIRECT_H
#include "backends/cpu/conv/conv_common.h"

/* How tiles lie in an image. */
typedef enum fac_direct_kind {
    FAC_DIRECT_ROWS,
    FAC_DIRECT_TWO_ROWS,
    FAC_DIRECT_FLAT,
    FAC_DIRECT_LIST
} fac_direct_kind;

/* A chunk of output channels: vectors n from vector `out` on, and `channels` of x from channel
 * block `block` on; where its packed weights begin, in floats. */
typedef struct fac_direct_chunk {
    int64_t out, block, channels, at;
    int n;
} fac_direct_chunk;

typedef struct fac_direct_plan {
    fac_conv_geom g;
    fac_epilogue e;
    fac_layout x, y, r, mask;
    const fac_cpu *cpu;
    bool flipped, biased; /* weights of the convolution whose gradient this is; there is a bias  */
    bool by_chunk;        /* an item is one chunk of channels; else it is a band with all chunks */
    fac_direct_kind kind;
    fac_direct_chunk *spans; /* [chunks], of all groups */
    int64_t width, across; /* pixels of a row; tiles of a row                                     */
    int64_t tiles, bands;  /* of an image; the parts that they are dealt in                       */
    int64_t together;      /* tiles that are done with one chunk of weights before the next       */
    int64_t chunks;
    int64_t depth; /* channels whose terms are added up for all those tiles before the next ones' */
    int64_t x_across, x_start; /* floats from row to row of outputs in x; to the first tap */
    fac_conv_tile tile; /* what all tiles have in common                                       */
    int64_t *x_at, *y_at, *r_at,
        *mask_at; /* of a LIST: pixels from x_start, from the first of y...  */
} fac_direct_plan;

/* Groups that are not whole channel blocks share blocks. */
static inline bool fac_direct_shares_blocks(const fac_conv_geom *g, int lanes) {
    return g->groups > 1 && (g->C / g->groups % lanes || g->K / g->groups % lanes);
}
/* Chunks of output channels, of all groups. */
int64_t fac_direct_chunks(const fac_conv_geom *g, const fac_simd *s);
/* Floats of all packed weights; 0 when they do not fit. */
size_t fac_direct_packed(const fac_conv_geom *g, const fac_simd *s);

/* The schedule, from the geometry, epilogue, layouts and processor that the plan has. */
void fac_direct_schedule(fac_direct_plan *p);
/* The chunks, and the places of a LIST; false: no memory. */
bool fac_direct_tables(fac_direct_plan *p);
#endif
