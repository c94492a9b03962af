/* How conv/wgmma_stream cuts convolutions into tiles, for groups that stay and take tile after tile
 * (nv_conv_stream.cl). */
#ifndef FACULA_GPU_NVIDIA_CONV_STREAM_H
#define FACULA_GPU_NVIDIA_CONV_STREAM_H
#include "backends/gpu/nvidia/conv/conv.h"

/* The letters of the kernel. */
typedef struct fac_nv_stream_tile {
    int consumers, team; /* groups of four warps; those of them that share a tile */
    int rows, bn;        /* blocks of 64 rows of each; channels */
    int slots;           /* results leave through so many places in local memory; 0: directly */
    bool halo;
    int a_rows, sa, sb;
} fac_nv_stream_tile;

typedef struct fac_nv_stream {
    fac_nv_conv c;
    fac_nv_stream_tile t;
    fac_nv_packing packing;
    bool halo, windows; /* all taps can read one tile with its neighbours; there are several */
    bool rows16;        /* rows of results can be copied by 16 bytes */
    int bytes;          /* of an element of the result */
    bool joined;        /* all phases in one launch */
    int maps;     /* x comes by tensor maps of this kind (fac_nv_maps_of); 0: by small copies */
    int32_t step; /* of x from position to position, in elements, if it does */
    bool kept;    /* groups keep the moments of all their tiles */
    int moving,
        added; /* extras that differ between pixels; 1 + the one that can be staged, 0: none */
    double seconds;
} fac_nv_stream;

enum { FAC_NV_STREAM_LOCAL = 232448 }; /* bytes of local memory of a group, measured */

/* ---- stream_tiles.c ---- */

/* Chooses a tile for q: the variant, or the best by estimate; false: there is none. */
bool fac_nv_stream_choose(const fac_gpu_limits *l, int variant, double bytes, fac_nv_stream *q);
int fac_nv_stream_variants(void);
/* Bytes of local memory of the kernel. */
size_t fac_nv_stream_local(const fac_nv_stream *q, const fac_nv_stream_tile *t);
/* Launches that its phases take. */
static inline int fac_nv_stream_launches(const fac_nv_stream *q) {
    return q->joined ? 1 : q->c.phases;
}
/* Positions that tiles run over (nv_conv_stream.cl): of a line, an image and all images; of
 * a tile. */
typedef struct fac_nv_stream_places {
    int32_t line, image, tile;
    int64_t all;
} fac_nv_stream_places;
fac_nv_stream_places fac_nv_stream_places_of(const fac_nv_stream *q, const fac_nv_stream_tile *t,
                                             const fac_nv_phase *f);

/* ---- stream_maps.c ---- */

/* The step of x, in elements, from each position to the next, where a window sees its own pixel
 * only and the pixels lie evenly, as rows of a matrix do: a tensor map brings a tile of them then.
 * 0: they do not. */
int32_t fac_nv_stream_step(const fac_nv_conv *c, const fac_nv_phase *f);

/* ---- stream_pool.c ---- */

const fac_nv_stream_tile *fac_nv_stream_pool_tiles(int *count);
/* Of channels, 128 bytes each. */
static inline int fac_nv_stream_blocks(const fac_nv_stream *q) {
    return (q->c.channels + q->packing.terms - 1) / q->packing.terms;
}
static inline int fac_nv_stream_rows(const fac_nv_stream_tile *t) {
    return 64 * t->rows * t->team;
} /* of a tile */

/* ---- stream_crew.c ---- */

/* How many groups of items stay: one a unit, and with the same channels in all of a group's tiles
 * where that costs few rounds. */
typedef struct fac_nv_stream_crew {
    int64_t groups, across;
    bool kept;
} fac_nv_stream_crew;
fac_nv_stream_crew fac_nv_stream_crew_of(const fac_gpu_limits *l, const fac_nv_stream *q,
                                         const fac_nv_phase *f);
/* Tiles side by side of a row of results. */
static inline int64_t fac_nv_stream_across(const fac_nv_stream *q) {
    return (q->c.rows + q->t.bn - 1) / q->t.bn;
}
/* Whether groups keep the moments of all their tiles, with the tile that q has. */
bool fac_nv_stream_keeps(const fac_gpu_limits *l, const fac_nv_stream *q);
#endif
