/* What the solvers by Winograd's transforms share: the tiles of outputs, what they see of an image,
 * the transform of filters. */
#ifndef FACULA_CPU_WINOGRAD_H
#define FACULA_CPU_WINOGRAD_H
#include "backends/cpu/conv/conv_common.h"

enum {
    FAC_WINOGRAD_LANES = 16,
    FAC_WINOGRAD_WINDOW = 9
}; /* the most of any instruction set, of any kind */

/* Tiles of out x out outputs, image after image; each is made from window x window inputs by
 * products at n x n points. */
typedef struct fac_tiles {
    int64_t out, n, window, stride, down, across, count;
} fac_tiles;

static inline fac_tiles fac_tiles_of(const fac_winograd *w, const fac_conv_geom *g) {
    fac_tiles t = {
        w->out,    w->out + (w->kernel - 1) / w->stride, (w->out - 1) * w->stride + w->kernel,
        w->stride, (g->P + w->out - 1) / w->out,         (g->Q + w->out - 1) / w->out,
        0
    };
    t.count = g->N * t.down * t.across;
    return t;
}
static inline int64_t fac_tiles_points(const fac_tiles *t) { return t->n * t->n; }

/* Planes of V and U: one at each point, of stride 2 four, but half as many at infinity
 * (simd/conv/winograd.c). */
static inline int64_t fac_tiles_planes(const fac_tiles *t) { return t->window * t->window; }
static inline int64_t fac_tiles_depth(const fac_tiles *t, int64_t point) {
    if (t->stride == 1) return 1;
    return (1 + (point / t->n < t->n - 1)) * (1 + (point % t->n < t->n - 1));
}

/* Tile number i: its image and its first output. */
static inline void fac_tile_place(const fac_tiles *t, int64_t i, int64_t *image, int64_t *row,
                                  int64_t *column) {
    *image = i / (t->down * t->across);
    *row = i / t->across % t->down * t->out;
    *column = i % t->across * t->out;
}

/* A block of channels of one image, whose pixel 0, 0 lies at x. */
typedef struct fac_plane {
    const float *x;
    int64_t height, width, halo, row;
    int lanes;
} fac_plane;
typedef float fac_tile_copy[FAC_WINOGRAD_WINDOW * FAC_WINOGRAD_WINDOW * FAC_WINOGRAD_LANES];

/* The window of m x m pixels from y, x on, with zeros outside of the image; the copy is for one
 * that looks beyond the halo. *row: from one of its rows to the next. */
const float *fac_tile_window(const fac_plane *p, int64_t y, int64_t x, int64_t m, float *copy,
                             int64_t *row);

/* G of simd/conv/winograd.c. */
void fac_winograd_filters(const fac_winograd *w, fac_winograd_matrix *G);
#endif
