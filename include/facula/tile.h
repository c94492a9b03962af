/* facula/tile.h: a model whose matrix products fit a unit of limited size.
 *
 * Every product Y[M,N] = A[M,K] B[K,N] of a graph (linear, gemm, matmul, convolutions and
 * transposed ones of one to three dims, attention, recurrent cells) becomes products of at most m x
 * n x k, in ordinary ops, so the result is a model like any other. A convolution is the product of
 * its weights (M: output channels of a group, K: channels times taps) and of the patches of its
 * input (N: output positions); a transposed one is such a convolution for each phase of its stride.
 */
#ifndef FACULA_TILE_H
#define FACULA_TILE_H

#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* How partial products along K become one: each adds to the one before it (the C of a gemm: one
 * tile of results is alive); pairs, pairs of pairs (least rounding); or one after the other once
 * all are there. */
typedef enum fac_tile_sum { FAC_TILE_CHAIN, FAC_TILE_TREE, FAC_TILE_SUM } fac_tile_sum;

/* What the tiles of a product look like: each is a node; a tile of the result is the call of a
 * function that all of its size share; or equal tiles are a loop, what is left over is nodes. */
typedef enum fac_tile_mode { FAC_TILE_UNROLL, FAC_TILE_FUNCTION, FAC_TILE_LOOP } fac_tile_mode;

/* A convolution as one product with patches (K = channels times taps), or as a sum of one product
 * for each tap (K = channels): then no patches are laid out in memory. */
typedef enum fac_tile_conv { FAC_TILE_PATCHES, FAC_TILE_TAPS } fac_tile_conv;

/* The device that tiles are made for.  0: unknown, or no limit. */
typedef struct fac_tile_target {
    int64_t m, n, k; /* limits                                                                    */
    int64_t align_m, align_n,
        align_k; /* sizes that it works in multiples of; 0: of the limit, or 1    */
    double
        sram_bytes; /* for one tile of A, of B and of C together: tiles are halved until they fit */
    bool double_buffer;       /* A and B twice there: the next ones arrive meanwhile       */
    double bytes[FAC_DTYPES]; /* of an element of the types that it takes; all 0: any, as it is in
                                 memory  */
    fac_dtype accumulator;    /* of C in SRAM; FAC_NONE: the type of the product    */
    double macs_per_second, bytes_per_second, overhead; /* overhead: seconds for each tile */
} fac_tile_target;

typedef struct fac_tile_opts {
    int64_t m, n, k; /* limits; 0: those of the target */
    fac_tile_sum sum;
    bool pad; /* zeros at the end: all tiles of a product are equal; with a target that says what it
                 aligns to, every size is such a multiple.  Else the last tiles are smaller */
    bool count_only;  /* the report alone: the graph is not changed */
    int64_t batch;    /* bound to the open first dim of the first input; 0: 1 */
    const char *only; /* these layers alone, in the language of fac_analysis_selects;
                         NULL: all */
    fac_tile_mode mode;
    fac_tile_conv conv;
    const fac_tile_target *target; /* NULL: none */
    bool best; /* for each product the tiles that take the least time by the target's rates */
} fac_tile_opts;

/* What became of one product. */
typedef struct fac_tile_row {
    const char *name, *op;
    fac_dtype dtype;
    int64_t m, n, k, count;         /* the product; how many of it (images, groups, heads, taps) */
    int64_t tile_m, tile_n, tile_k; /* of the largest tile */
    int64_t tiles;                  /* products that it is now; 1 for each that was small enough */
    int64_t unaligned;  /* of these, with a size that is no multiple of what the target says */
    double macs, work;  /* multiply-adds; those that the unit spends, idle ones too */
    double utilisation; /* macs / work */
    double sram,
        bytes; /* of the largest tile in SRAM; of all operands and results that pass its border */
    double compute, traffic, overhead,
        seconds;        /* by the rates: seconds = max(compute, traffic) + overhead */
    const char *bound;  /* "compute", "memory", "overhead": which is most; NULL: no rates */
    const char *kept;   /* why it was left as it is; NULL: it is legal now */
    const char *advice; /* what would use the unit better; "" */
} fac_tile_row;
typedef struct fac_tiling fac_tiling;
int fac_tiling_rows(const fac_tiling *t);
/* Row i, 0 <= i < fac_tiling_rows; texts live as long as t. */
const fac_tile_row *fac_tiling_row(const fac_tiling *t, int i);
void fac_tiling_free(fac_tiling *t); /* NULL is fine */

/* Parameters that are cut become parameters of their own, "<layer>.<name>.tile_<row>_<column>". out
 * (may be NULL with count_only) is a new graph with all sizes bound; g stays the caller's.  A
 * product whose size depends on contents is kept, and its row says so, as is one that no tile of
 * the target's SRAM or types can hold.  FAC_E_ARGUMENT for limits below 1, a target that
 * contradicts itself or an unknown `only`. */
fac_status fac_graph_tile(const fac_graph *g, const fac_tile_opts *opts, fac_graph **out,
                          fac_tiling **report, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
