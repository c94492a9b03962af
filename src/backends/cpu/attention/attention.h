/* Kernels of attention, part of fac_simd, in simd/lines/attention.c.  Queries are the lanes of
 * vectors.
 */
#ifndef FACULA_CPU_ATTENTION_H
#define FACULA_CPU_ATTENTION_H
#include <stdbool.h>
#include "backends/cpu/device/simd.h"

/* One block of keys of a softmax that is folded block by block.  Rows have 1 or 2 `vectors`, a
 * query each lane.  The score of a key is scale s + (bias + mask) / ln 2, and its weight 2^(score -
 * top). */
typedef struct fac_attention_block {
    float *s;          /* [keys]: scores, then weights                              */
    int64_t row, keys; /* floats from key to key of s and mask                      */
    int vectors;
    float scale;
    const float *bias; /* one number for each key, or NULL                          */
    const float *mask; /* [keys] rows to add, or NULL                               */
    const float *last; /* a row: keys after this one take no part; NULL: all do    */
    float first;       /* the number of the first key                               */
    float *top, *sum;  /* a row each: largest score and sum of weights until now; of a gradient top
                          is the  log sum exp in units of ln 2 */
    float *o;          /* [size] rows: the sum of weighted values until now         */
    int64_t size;      /* 0: o is not there yet */
} fac_attention_block;

/* y[i][j] = sum over k of a[i][k] w[k][j]:  `tiles` times m rows of y, w and y have one or two
 * vectors a row.
 *   _ROWS, _COLUMNS  that, or that added to y when it is complete: long sums are made of short ones
 *   _WEIGHTS         2^(that - base), which is added to sum: base is a known score, that of other
 *                    keys may be above it
 *   _CHANGES         p (that - base) */
enum {
    FAC_ATTENTION_ROWS,
    FAC_ATTENTION_COLUMNS,
    FAC_ATTENTION_WEIGHTS,
    FAC_ATTENTION_CHANGES,
    FAC_ATTENTION_TILES
};
typedef struct fac_attention_tile {
    const float *a;
    int64_t step; /* from i to i + 1, and k has step 1; _COLUMNS: the other way                */
    int64_t depth;
    const float *w;
    float *y;
    int64_t w_row, y_row, tiles;
    bool add;
    const float *base; /* a row */
    float *sum;     /* a row                                                                     */
    const float *p; /* as y                                                                      */
    const float
        *ahead; /* NULL; or this and a are asked for ahead: `tiles` times m rows to be read next */
    int64_t ahead_step, ahead_size; /* floats from row to row, and of each */
    bool unfit; /* set where weights are NaN or far above 1, or a base is -inf: not to be used */
} fac_attention_tile;

typedef struct fac_attention_kernels {
    void (*fold)(const fac_attention_block *t);
    /* s becomes the weights p, d becomes p (d - along); along: a row */
    void (*grad)(const fac_attention_block *t, float *d, const float *along);
    void (*divide)(float *o, int64_t size, int vectors,
                   const float *sum); /* every row of o by sum; by 0: 0 */
    void (*tile[FAC_ATTENTION_TILES][FAC_TILE_ROWS + 1][2])(
        fac_attention_tile *t); /* [kind][m][vectors - 1] */
} fac_attention_kernels;

/* A product of any number of rows, as tiles of m and then of m - 1 rows.  It changes t: a, y, p,
 * ahead and tiles. */
static inline void fac_attention_product(const fac_simd *s, int kind, fac_attention_tile *t,
                                         int64_t rows, int vectors) {
    const int64_t tiles = (rows + s->rows - 1) / s->rows, m = rows / tiles, more = rows % tiles;
    if (more) {
        t->tiles = more;
        s->attention->tile[kind][m + 1][vectors - 1](t);
        const int64_t done = more * (m + 1);
        t->a += done * (kind == FAC_ATTENTION_COLUMNS ? 1 : t->step);
        t->y += done * t->y_row;
        if (t->p) t->p += done * t->y_row;
        if (t->ahead) t->ahead += done * t->ahead_step;
    }
    t->tiles = tiles - more;
    s->attention->tile[kind][m][vectors - 1](t);
}
#endif
