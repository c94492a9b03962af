/* facula/tile.h: a model whose matrix products fit a unit of limited size.
 *
 * Every product Y[M,N] = A[M,K] B[K,N] of a graph (linear, gemm, matmul, convolutions, attention) becomes products of at most
 * m x n x k, in ordinary ops, so the result is a model like any other.  A convolution is the product of its weights (M: output
 * channels of a group, K: taps) and of the patches of its input (N: output positions). */
#ifndef FACULA_TILE_H
#define FACULA_TILE_H

#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* How partial products along K become one: each adds to the one before it (the C of a gemm: one tile of results is alive);
 * pairs, pairs of pairs (least rounding); or one after the other once all are there. */
typedef enum fac_tile_sum { FAC_TILE_CHAIN, FAC_TILE_TREE, FAC_TILE_SUM } fac_tile_sum;

typedef struct fac_tile_opts {
    int64_t m, n, k;                /* limits; 0: none */
    fac_tile_sum sum;
    bool    pad;                    /* all tiles of a product are equal, with zeros behind; else the last ones are smaller */
    bool    count_only;             /* the report alone: the graph is not changed */
    int64_t batch;                  /* bound to the open first dim of the first input; 0: 1 */
    const char *only;               /* the layer of this name alone; NULL: all */
} fac_tile_opts;

/* What became of one product. */
typedef struct fac_tile_row {
    const char *name, *op;
    int64_t m, n, k, count;         /* the product; how many of it (images, groups, heads) */
    int64_t tiles;                  /* products that it is now; 1 for each that was small enough */
    double  macs, utilisation;      /* utilisation: macs of the tiles' full size that do something */
    const char *kept;               /* why it was left alone although it is larger than the limit; NULL: it is legal now */
} fac_tile_row;
typedef struct fac_tiling fac_tiling;
int                 fac_tiling_rows(const fac_tiling *t);
const fac_tile_row *fac_tiling_row(const fac_tiling *t, int i);
void                fac_tiling_free(fac_tiling *t);                 /* NULL is fine */

/* Parameters that are cut become parameters of their own, "<name>.tile_<row>_<column>".  out (may be NULL with count_only) is a
 * new graph with all sizes bound; g stays the caller's.  FAC_E_SHAPE when sizes are not known; FAC_E_ARGUMENT for limits below
 * 1 or an unknown `only`. */
fac_status fac_graph_tile(const fac_graph *g, const fac_tile_opts *opts, fac_graph **out, fac_tiling **report, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
