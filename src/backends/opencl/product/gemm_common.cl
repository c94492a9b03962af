/* What the kernels of matrix products share: y(m, n) = finish(sum over k of a(m, k) b(k, n)), for
 * each matrix of a batch.
 *
 * Written in front of this by gemm_text.c:
 *   MEM, ACC        types of elements in memory and of sums;  LOAD(p, i) and STORE(p, i, x)
 *   EXTRAS          further operands; EXTRA_PARAMS, EXTRA_ARGS declare and pass them, EXTRA_STARTS
 *                   finds the matrix
 *   FINISH(x, m, outer, column)   bias, scale and body applied to the sum of element m, n
 *   Y_COLUMN        s.y.column, as a number where it is one
 *   PATCHES, TAPS   b is not a matrix but the patches of an image: columns are pixels and rows
 *                   taps, or the other way round
 *   BLOCKS          terms are [block of TK channels][tap][channel], so that a slab is one tap of a
 *                   block; zeros fill it up
 *   DEEP            images have a depth
 *   PLACES          where pixels of y lie is read from a table */

/* Element (i, j) lies at  at + z . batch + i row + (j / inner) outer + (j % inner) column,  in
 * elements.  Only one axis is split that way: the columns of b and y (images and pixels of a
 * convolution), or the terms of the sum (its gradient by weights). */
typedef struct { long at, row, column, outer, z[4]; } matrix;
typedef struct {
    long M, N, K, inner_n, inner_k, each_k, splits,
        batch; /* each_k: terms of one split of the sum */
    long z[4];                                                 /* the batch's dims */
    long in[3], taps, pixels, places,
        parts;                     /* the image that patches are cut from; where tables begin */
    long channels, window, images; /* of a group; taps of a channel; of the batch */
    matrix a, b, y, e[EXTRAS ? EXTRAS : 1];
} shape;

#define START(m) ((m).at + z0 * (m).z[0] + z1 * (m).z[1] + z2 * (m).z[2] + z3 * (m).z[3])
/* Which matrix of the batch. */
#define BATCH(i) \
    const long z3 = (i) % s.z[3], z2 = (i) / s.z[3] % s.z[2], z1 = (i) / s.z[3] / s.z[2] % s.z[1]; \
    const long z0 = (i) / s.z[3] / s.z[2] / s.z[1]

/* Taps: offset, depth, row, column of what a tap sees against the pixel's own.  Pixels likewise, in
 * the image. */
#if defined(PATCHES) || defined(TAPS)
#define TABLES_PARAMS , global const int4 *restrict taps, global const int4 *restrict pixels
#define INSIDE(i, n) ((uint)(i) < (uint)(n))
#ifdef DEEP
#define SEES(p, t)                                                                                 \
    (INSIDE((p).w + (t).w, s.in[2]) & INSIDE((p).z + (t).z, s.in[1]) &                             \
     INSIDE((p).y + (t).y, s.in[0]))
#else
#define SEES(p, t) (INSIDE((p).w + (t).w, s.in[2]) & INSIDE((p).z + (t).z, s.in[1]))
#endif
#else
#define TABLES_PARAMS
#endif
#ifdef PLACES
#define PLACES_PARAMS , global const int *restrict places
#define PLACE(column) places[s.places + (column)]
#else
#define PLACES_PARAMS
#define PLACE(column) (column)
#endif
