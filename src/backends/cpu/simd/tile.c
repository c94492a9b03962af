/* The one kernel of all convolutions and matrix products: see fac_conv_tile in simd.h.
 *
 * m pixels times n vectors of outputs stay in registers over the whole reduction.  A step loads n vectors of weights and one
 * broadcast pixel after the other: 14 x 2 accumulators of AVX-512 take 16 loads for 28 multiply-adds, AVX2's 6 x 2 take 8 for
 * 12.  Below 8 accumulators the latency of an addition shows, so callers divide rows evenly instead of leaving a short rest. The
 * approach is that of Georganas et al., "Anatomy of high-performance deep learning convolutions on SIMD architectures", SC 2018.
 *
 * A whole block of channels is unrolled, with one hint for weights to come between two steps: weights that are read once come
 * from beyond the second cache, and hints in a burst fill the queue of misses (products of 256 channels: 74 % of the peak with
 * bursts and a loop over channels, 93 % so). */
#include <math.h>
#include "backends/cpu/simd/vector.h"

/* One input channel: m n multiply-adds.  px: from pixel to pixel. */
INLINE const float *step(const int m, const int n, const float *x0, const float *x1, int64_t px, const float *w, vec acc[MR][2]) {
    const int half = (m + 1) / 2;
    vec w0 = load(w), w1 = n > 1 ? load(w + VL) : w0;
    UNROLL for (int p = 0; p < m; p++) {
        vec x = all(p < half ? x0[p * px] : x1[(p - half) * px]);
        acc[p][0] += w0 * x;
        if (n > 1) acc[p][1] += w1 * x;
    }
    return w + n * VL;
}

/* Brings in the lines that the end will touch while the reduction runs. */
INLINE void fetch_ends(const int m, const int n, const fac_conv_tile *t) {
    const int half = (m + 1) / 2;
    UNROLL for (int k = 0; k < n; k++)
        UNROLL for (int p = 0; p < m; p++) {
            __builtin_prefetch((p < half ? t->y0 + p * t->y_pixel : t->y1 + (p - half) * t->y_pixel) + k * t->y_vector, 1, 3);
            if (t->r0)
                __builtin_prefetch((p < half ? t->r0 + p * t->r_pixel : t->r1 + (p - half) * t->r_pixel) + k * t->r_vector, 0, 3);
        }
}

/* Whole blocks of channels are VL steps, each with a hint `hint` floats further on; the last block may have less. */
INLINE const float *steps(const int m, const int n, const int block, int here, const float *x0, const float *x1, int64_t px,
                          const float *w, const float **ahead, int64_t hint, vec acc[MR][2]) {
    if (here == VL && block == VL) {
        UNROLL for (int k = 0; k < VL; k++) {
            if (hint) __builtin_prefetch(*ahead, 0, 2), *ahead += hint;
            w = step(m, n, x0 + k, x1 + k, px, w, acc);
        }
        return w;
    }
    for (int k = 0; k < here; k++) w = step(m, n, x0 + k, x1 + k, px, w, acc);
    return w;
}

INLINE void tile(const int m, const int n, const int block, const int64_t px, const fac_conv_tile *t) {
    const int half = (m + 1) / 2;
    vec acc[MR][2];
    UNROLL for (int k = 0; k < n; k++) {
        vec b = t->bias ? load(t->bias + k * VL) : all(0);
        UNROLL for (int p = 0; p < m; p++) acc[p][k] = b;
    }
    fetch_ends(m, n, t);

    const float *w = t->w, *ahead = t->ahead;
    const int64_t hint = t->ahead_lines * 16 / (VL * t->R * t->S);
    for (int c = 0; c < t->channels; c += block) {
        const int here = t->channels - c < block ? t->channels - c : block;
        const float *row0 = t->x0 + (int64_t)(c / block) * t->x_block, *row1 = t->x1 + (int64_t)(c / block) * t->x_block;
        for (int r = 0; r < t->R; r++, row0 += t->x_row, row1 += t->x_row) {
            const float *x0 = row0, *x1 = row1;
            for (int s = 0; s < t->S; s++, x0 += t->x_column, x1 += t->x_column)
                w = steps(m, n, block, here, x0, x1, px, w, &ahead, hint, acc);
        }
    }

    const int clipped = t->lo > -INFINITY || t->hi < INFINITY;
    UNROLL for (int p = 0; p < m; p++) {
        const int64_t q = p < half ? p : p - half;
        float *y = (p < half ? t->y0 : t->y1) + q * t->y_pixel;
        const float *r = t->r0 ? (p < half ? t->r0 : t->r1) + q * t->r_pixel : NULL;
        UNROLL for (int k = 0; k < n; k++) {
            vec v = acc[p][k];
            if (t->row_bias) v += all(t->row_bias[p]);
            if (r) v += load(r + k * t->r_vector);
            store(y + k * t->y_vector, clipped ? clip(v, t->lo, t->hi) : v);
        }
    }
}

/* Tiles of m pixels one after the other, nothing but their sums. */
INLINE void products(const int m, const int n, const fac_conv_tile *t) {
    const int half = (m + 1) / 2;
    const int64_t hint = t->ahead_lines * 16 / VL;
    const float *ahead = t->ahead;
    for (int64_t i = 0; i < t->tiles; i++) {
        vec acc[MR][2];
        UNROLL for (int p = 0; p < m; p++)
            UNROLL for (int k = 0; k < n; k++) acc[p][k] = all(0);
        const float *x = t->x0 + i * m * VL, *w = t->w;
        for (int c = 0; c < t->channels; c += VL, x += t->x_block) {
            const int here = t->channels - c < VL ? t->channels - c : VL;
            w = steps(m, n, VL, here, x, x + half * VL, VL, w, &ahead, hint, acc);
        }
        float *y = t->y0 + i * m * VL;
        UNROLL for (int k = 0; k < n; k++)
            UNROLL for (int p = 0; p < m; p++) store(y + p * VL + k * t->y_vector, acc[p][k]);
    }
}

/* One function for each m, n and kind. */
#define UP_TO_6(X, ...)  X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) \
                         X(6, __VA_ARGS__)
#define UP_TO_12(X, ...) UP_TO_6(X, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__) \
                         X(11, __VA_ARGS__) X(12, __VA_ARGS__)
#define UP_TO_14(X, ...) UP_TO_12(X, __VA_ARGS__) X(13, __VA_ARGS__) X(14, __VA_ARGS__)
#define ALL_ROWS         FAC_JOIN(UP_TO, MR)
#define KERNEL(m, kind, block, px) \
    static void kind##_##m##_1(const fac_conv_tile *t) { tile(m, 1, block, px, t); } \
    static void kind##_##m##_2(const fac_conv_tile *t) { tile(m, 2, block, px, t); }
#define PRODUCTS(m, kind) \
    static void kind##_##m##_1(const fac_conv_tile *t) { products(m, 1, t); } \
    static void kind##_##m##_2(const fac_conv_tile *t) { products(m, 2, t); }
#define ENTRY(m, kind)   [m] = { kind##_##m##_1, kind##_##m##_2 },

ALL_ROWS(KERNEL, near, VL, VL)
ALL_ROWS(KERNEL, any, VL, t->x_pixel)
ALL_ROWS(KERNEL, planar, 1, t->x_pixel)
ALL_ROWS(PRODUCTS, products)

extern const fac_conv_tile_table FAC_SIMD(fac_conv_tile)[FAC_TILE_KINDS];
const fac_conv_tile_table FAC_SIMD(fac_conv_tile)[FAC_TILE_KINDS] = {
    [FAC_TILE_NEAR]    = { { ALL_ROWS(ENTRY, near) } },
    [FAC_TILE_ANY]     = { { ALL_ROWS(ENTRY, any) } },
    [FAC_TILE_PLANAR]  = { { ALL_ROWS(ENTRY, planar) } },
    [FAC_TILE_PRODUCTS] = { { ALL_ROWS(ENTRY, products) } },
};
