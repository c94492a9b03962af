/* The one kernel of all convolutions and matrix products: see fac_conv_tile in simd_tile.h.
 *
 * m pixels times n vectors of outputs stay in registers over the whole reduction.  A step loads n
 * vectors of weights and one broadcast pixel after the other: 14 x 2 accumulators of AVX-512 take
 * 16 loads for 28 multiply-adds, AVX2's 6 x 2 take 8 for
 * 12.  Below 8 accumulators the latency of an addition shows, so callers divide rows evenly instead
 *     of leaving a short rest. The
 * approach is that of Georganas et al., "Anatomy of high-performance deep learning convolutions on
 * SIMD architectures", SC 2018.
 *
 * A whole block of channels is unrolled, with one hint for weights to come between two steps:
 * weights that are read once come from beyond the second cache, and hints in a burst fill the queue
 * of misses (products of 256 channels: 74 % of the peak with bursts and a loop over channels, 93 %
 * so). */
#include <math.h>
#include "backends/cpu/simd/rows.h"

/* Where the pixels of x or y are: `pixel` apart from p0 and, the second half of them, from p1; or,
 * with a list, at p0[at[i]]. */
typedef struct places {
    const float *p0, *p1;
    int64_t pixel;
    const int64_t *at;
} places;

INLINE const float *place(const int m, const int i, const places x) {
    const int half = (m + 1) / 2;
    if (x.at) return x.p0 + x.at[i];
    return i < half ? x.p0 + i * x.pixel : x.p1 + (i - half) * x.pixel;
}

/* n of a kernel: 1, 2, or 2 of which the second has numbers in its lower half only. */
enum { AND_HALF = 3 };
#define VECTORS(n) ((n) > 1 ? 2 : 1)

/* to + a b, the lower half; the upper one is anything.  Half the time where units of 256 bits make
 * 512 in two goes. */
INLINE vec add_half(vec to, vec a, vec b) {
#if defined(__AVX512F__)
    typedef __m256 half;
    const half x = _mm512_castps512_ps256((__m512)a), y = _mm512_castps512_ps256((__m512)b);
    return (vec)_mm512_castps256_ps512(_mm512_castps512_ps256((__m512)to) + x * y);
#else
    return to + a * b;
#endif
}

/* Channel k of a block: m n multiply-adds. */
INLINE const float *step(const int m, const int n, const places x, const int k, const float *w,
                         vec acc[MR][2]) {
    vec w0 = load(w), w1 = n > 1 ? load(w + VL) : w0;
    UNROLL for (int p = 0; p < m; p++) {
        vec v = all(place(m, p, x)[k]);
        acc[p][0] = add_product(acc[p][0], w0, v);
        if (n == 2) acc[p][1] = add_product(acc[p][1], w1, v);
        if (n == AND_HALF) acc[p][1] = add_half(acc[p][1], w1, v);
    }
    return w + VECTORS(n) * VL;
}

/* What steps bring in, a line each: the pixel of x so many floats after (0: none); those of y,
 * which is written at the end, and of what is added to it or masks it (-1: none). */
typedef struct soon {
    int64_t x, y, r;
    places y_at, r_at;
} soon;

/* Whole blocks of channels are VL steps, each with a hint `hint` floats further on, and those of
 * `soon`; the last block may have less. */
INLINE const float *steps(const int m, const int n, const int block, int here, const places x,
                          const soon soon_, const float *w, const float **ahead, int64_t hint,
                          vec acc[MR][2]) {
    if (here == VL && block == VL) {
        UNROLL for (int k = 0; k < VL; k++) {
            if (hint) __builtin_prefetch(*ahead, 0, 2), *ahead += hint;
            if (soon_.x && k < m) __builtin_prefetch(place(m, k, x) + soon_.x, 0, 3);
            if (soon_.y >= 0 && k < m) __builtin_prefetch(place(m, k, soon_.y_at) + soon_.y, 1, 3);
            if (soon_.r >= 0 && k < m) __builtin_prefetch(place(m, k, soon_.r_at) + soon_.r, 0, 3);
            w = step(m, n, x, k, w, acc);
        }
        return w;
    }
    for (int k = 0; k < here; k++) w = step(m, n, x, k, w, acc);
    return w;
}

/* Brings in the lines that the end will touch while the reduction runs, where steps do not: a burst
 * holds up what else is under way. */
INLINE void fetch_ends(const int m, const int n, const places y, int64_t vector) {
    UNROLL for (int k = 0; k < n; k++) UNROLL for (int p = 0; p < m; p++)
        __builtin_prefetch(place(m, p, y) + k * vector, 1, 3);
}

/* added: there may be a row_bias, a residual or a mask */
INLINE void finish(const int m, const int n, const int added, const int past,
                   const fac_conv_tile *t, const float *row_bias, const places to, const places r,
                   const places mask, vec acc[MR][2]) {
    /* here: stores might change *t for all that the compiler knows */
    const vec lo = all(t->lo), hi = all(t->hi), low = all(t->mask_lo);
    const int64_t y_vector = t->y_vector, r_vector = t->r_vector, mask_vector = t->mask_vector;
    UNROLL for (int p = 0; p < m; p++) {
        float *y = (float *)(uintptr_t)place(m, p, to);
        UNROLL for (int k = 0; k < n; k++) {
            vec v = acc[p][k];
            if (added && row_bias) v += all(row_bias[p]);
            if (added && r.p0) v += load(place(m, p, r) + k * r_vector);
            v = vmin(vmax(v, lo), hi);
            if (added && mask.p0)
                v = (vec)((ivec)v & ~(load(place(m, p, mask) + k * mask_vector) <= low));
            store_or_stream(y + k * y_vector, v, past);
            if (k + 1 < n)
                store_first(&acc[p][k + 1]);
            else if (p + 1 < m)
                store_first(&acc[p + 1][0]);
        }
    }
}

/* Hides p's provenance, so that the compiler does not precompute and spill addresses derived from
 * it. */
INLINE const float *here(const float *p) {
    __asm__("" : "+r"(p));
    return p;
}

/* The same where pixels of y and r are vectors side by side, and nothing else is added. */
INLINE void dense_finish(const int m, const int n, const int added, const int past,
                         const fac_conv_tile *t, places y, places r, vec acc[MR][2]) {
    const vec lo = all(t->lo), hi = all(t->hi);
    places to[2], add[2];
    UNROLL for (int k = 0; k < n; k++) {
        to[k] = (places){ here(y.p0 + k * t->y_vector), here(y.p1 + k * t->y_vector), VL, NULL };
        if (added)
            add[k] =
                (places){ here(r.p0 + k * t->r_vector), here(r.p1 + k * t->r_vector), VL, NULL };
    }
    UNROLL for (int p = 0; p < m; p++) UNROLL for (int k = 0; k < n; k++) {
        vec v = acc[p][k];
        if (added) v += load(place(m, p, add[k]));
        store_or_stream((float *)(uintptr_t)place(m, p, to[k]), vmin(vmax(v, lo), hi), past);
        if (k + 1 < n)
            store_first(&acc[p][k + 1]);
        else if (p + 1 < m)
            store_first(&acc[p + 1][0]);
    }
}

static const soon NOTHING = { .y = -1, .r = -1 };

INLINE void shift(places *x, int64_t floats) {
    x->p0 += floats;
    x->p1 += floats;
}

/* Loads and stores have room between multiply-adds: packing something here takes no time if it is
 * in the second cache. */
INLINE void copy_some(fac_tile_fill *c) {
    for (int64_t i = 0; i < c->rows; i++)
        store(c->to + i * c->to_row, load(c->from + i * c->from_row));
    c->from += c->from_next;
    c->to += c->to_next;
    c->times--;
}

/* One block of channels: all taps of the kernel. */
INLINE const float *taps(const int m, const int n, const int block, const int here,
                         const fac_conv_tile *t, places row, const float *w, const float **ahead,
                         int64_t hint, vec acc[MR][2]) {
    for (int a = 0; a < t->R; a++, shift(&row, t->x_row)) {
        places column = row;
        for (int s = 0; s < t->S; s++, shift(&column, t->x_column))
            w = steps(m, n, block, here, column, NOTHING, w, ahead, hint, acc);
    }
    return w;
}

/* One tile after the other: the next one begins after the pixels of this one, or where the caller
 * says. */
INLINE void tiles(const int m, const int n, const int block, const int64_t px, const int listed,
                  const int copies, const fac_conv_tile *t) {
    places x = { t->x0, t->x1, px, NULL }, y = { t->y0, t->y1, t->y_pixel, NULL },
           r = { t->r0, t->r1, t->r_pixel, NULL };
    places mask = { t->mask0, t->mask1, t->mask_pixel, NULL };
    const int64_t hint = t->ahead_step ? t->ahead_step : t->ahead_lines * 16 / (VL * t->R * t->S);
    const int64_t jump = t->ahead_step ? t->ahead_block - VL * hint : 0;
    const float *ahead = t->ahead, *row_bias = t->row_bias;
    const int64_t x_next = t->x_next ? t->x_next : m * px,
                  y_next = t->x_next ? t->y_next : m * y.pixel;
    const int64_t r_next = t->x_next ? t->r_next : m * r.pixel,
                  mask_next = t->x_next ? t->mask_next : m * mask.pixel;
    fac_tile_fill copy = t->copy;
    for (int64_t i = 0; i == 0 || i < t->tiles; i++) {
        vec acc[MR][2];
        UNROLL for (int k = 0; k < n; k++) {
            vec b = t->bias ? load(t->bias + k * VL) : all(0);
            UNROLL for (int p = 0; p < m; p++) acc[p][k] = b;
        }
        int64_t at[MR];
        UNROLL for (int p = 0; p < m; p++) at[p] = listed ? t->x_at[i * m + p] : 0;
        if (listed) {
            y.at = t->y_at + i * m;
            r.at = t->r_at + i * m;
            mask.at = t->mask_at + i * m;
        }
        const bool pointwise = block == VL && t->R == 1 && t->S == 1,
                   fetch = !t->here && (!copies || !t->past);
        /* a step for each pixel; and steps of few pixels have no room for more hints */
        const bool spread = VL >= MR && MR > 6 && pointwise && !listed;
        const int y_blocks = spread && fetch && t->channels >= n * VL ? n : 0;
        const int r_blocks = spread && r.p0 && t->channels >= (y_blocks + n) * VL ? n : 0,
                  more = y_blocks + r_blocks;
        const int mask_blocks = spread && mask.p0 && t->channels >= (more + n) * VL ? n : 0;
        if (fetch && !y_blocks) fetch_ends(m, n, y, t->y_vector);
        if (r.p0 && !r_blocks) fetch_ends(m, n, r, t->r_vector);
        if (mask.p0 && !mask_blocks) fetch_ends(m, n, mask, t->mask_vector);

        const float *w = t->w;
        places row = x;
        if (listed) row.at = at;
        int c = 0;
        if (pointwise) { /* short blocks feel what loops around them cost, and use a line of x for
                            16 steps only */
            /* two blocks after the last but one are those of the next tile */
            const int64_t blocks = t->channels / VL, before = blocks > 1 ? blocks - 2 : 0;
            const int64_t wrapped = listed ? 0 : x_next - before * t->x_block;
            soon next = { .y = -1, .r = -1, .y_at = y, .r_at = r };
            for (int64_t b = 0; b < blocks; b++, c += VL, ahead += jump, shift(&row, t->x_block)) {
                next.x = b + 2 < blocks ? 2 * t->x_block : wrapped;
                if (spread) next.y = b < y_blocks ? b * t->y_vector : -1;
                if (spread) next.r = b >= y_blocks && b < more ? (b - y_blocks) * t->r_vector : -1;
                if (spread && b >= more && b < more + mask_blocks) {
                    next.r_at = mask;
                    next.r = (b - more) * t->mask_vector;
                }
                w = steps(m, n, VL, VL, row, next, w, &ahead, hint, acc);
                if (copies && copy.times > 0) copy_some(&copy);
            }
        }
        if (block == VL)
            for (; c + VL <= t->channels; c += VL, shift(&row, t->x_block))
                w = taps(m, n, VL, VL, t, row, w, &ahead, hint, acc);
        for (; c < t->channels; c += block, shift(&row, t->x_block))
            w = taps(m, n, block, block < VL ? block : t->channels - c, t, row, w, &ahead, hint,
                     acc);
        if (block == 1 && y.pixel == VL && !row_bias && !r.p0 && !mask.p0)
            dense_finish(m, n, 0, 0, t, y, r, acc);
        else if (row_bias || r.p0 || mask.p0)
            finish(m, n, 1, 0, t, row_bias, y, r, mask, acc);
        else if (copies && t->past)
            finish(m, n, 0, 1, t, row_bias, y, r, mask, acc);
        else
            finish(m, n, 0, 0, t, row_bias, y, r, mask, acc);
        if (row_bias) row_bias += m;
        if (listed) continue;
        shift(&x, x_next), shift(&y, y_next);
        if (r.p0) shift(&r, r_next);
        if (mask.p0) shift(&mask, mask_next);
    }
}

/* 1 x 1, and pixels of results, and of what is added to them, that are vectors side by side, as
 * blocked images have them: every place is one of few registers and a constant.  Of sums of few
 * terms the addresses of the rest take as long as the sums. */
INLINE bool is_dense(const fac_conv_tile *t) {
    return t->R == 1 && t->S == 1 && t->y_pixel == VL && (!t->r0 || t->r_pixel == VL) &&
           !t->row_bias && !t->mask0 && t->copy.times == 0;
}
INLINE void dense(const int m, const int of, const fac_conv_tile *t) {
    const int n = VECTORS(of);
    places x = { t->x0, t->x1, VL, NULL }, y = { t->y0, t->y1, VL, NULL },
           r = { t->r0, t->r1, VL, NULL };
    const int64_t hint = t->ahead_step ? t->ahead_step : t->ahead_lines * 16 / VL;
    const int64_t jump = t->ahead_step ? t->ahead_block - VL * hint : 0;
    const int64_t x_next = t->x_next ? t->x_next : m * VL;
    const int64_t y_next = t->x_next ? t->y_next : m * VL;
    const int64_t r_next = t->x_next ? t->r_next : m * VL, x_block = t->x_block;
    const int64_t blocks = t->channels / VL,
                  wrapped = x_next - (blocks > 1 ? blocks - 2 : 0) * x_block;
    const bool spread = VL >= MR && MR > 6, fetch = !t->here && !t->past;
    const int y_blocks = spread && fetch && t->channels >= n * VL ? n : 0;
    const int r_blocks = spread && r.p0 && t->channels >= (y_blocks + n) * VL ? n : 0;
    const float *ahead = t->ahead;
    for (int64_t i = 0; i == 0 || i < t->tiles; i++) {
        vec acc[MR][2];
        UNROLL for (int k = 0; k < n; k++) {
            vec b = t->bias ? load(t->bias + k * VL) : all(0);
            UNROLL for (int p = 0; p < m; p++) acc[p][k] = b;
        }
        if (fetch && !y_blocks) fetch_ends(m, n, y, t->y_vector);
        if (r.p0 && !r_blocks) fetch_ends(m, n, r, t->r_vector);
        const float *w = t->w;
        places row = x;
        soon next = { .y = -1, .r = -1, .y_at = y, .r_at = r };
        for (int64_t b = 0; b < blocks; b++, ahead += jump, shift(&row, x_block)) {
            next.x = b + 2 < blocks ? 2 * x_block : wrapped;
            if (spread) next.y = b < y_blocks ? b * t->y_vector : -1;
            if (spread)
                next.r =
                    b >= y_blocks && b < y_blocks + r_blocks ? (b - y_blocks) * t->r_vector : -1;
            w = steps(m, of, VL, VL, row, next, w, &ahead, hint, acc);
        }
        if (t->channels % VL)
            steps(m, of, VL, t->channels % VL, row, NOTHING, w, &ahead, hint, acc);
        if (r.p0 && t->past)
            dense_finish(m, n, 1, 1, t, y, r, acc);
        else if (r.p0)
            dense_finish(m, n, 1, 0, t, y, r, acc);
        else if (t->past)
            dense_finish(m, n, 0, 1, t, y, r, acc);
        else
            dense_finish(m, n, 0, 0, t, y, r, acc);
        shift(&x, x_next), shift(&y, y_next);
        if (r.p0) shift(&r, r_next);
    }
}

/* Tiles of m pixels one after the other, nothing but their sums. */
INLINE void products(const int m, const int n, const fac_conv_tile *t) {
    const int half = (m + 1) / 2;
    const int64_t hint = t->ahead_lines * 16 / VL;
    const float *ahead = t->ahead;
    for (int64_t i = 0; i < t->tiles; i++) {
        vec acc[MR][2];
        UNROLL for (int p = 0; p < m; p++) UNROLL for (int k = 0; k < n; k++) acc[p][k] = all(0);
        const float *x = t->x0 + i * m * VL, *w = t->w;
        for (int c = 0; c < t->channels; c += VL, x += t->x_block) {
            const int here = t->channels - c < VL ? t->channels - c : VL;
            w = steps(m, n, VL, here, (places){ x, x + half * VL, VL, NULL }, NOTHING, w, &ahead,
                      hint, acc);
        }
        float *y = t->y0 + i * m * VL;
        UNROLL for (int k = 0; k < n; k++) UNROLL for (int p = 0; p < m; p++)
            store(y + p * VL + k * t->y_vector, acc[p][k]);
    }
}

/* One function for each m, n and kind. */
#define KERNEL(m, kind, block, px, listed, copies)                                                 \
    static void kind##_##m##_1(const fac_conv_tile *t) {                                           \
        tiles(m, 1, block, px, listed, copies, t);                                                 \
    }                                                                                              \
    static void kind##_##m##_2(const fac_conv_tile *t) {                                           \
        tiles(m, 2, block, px, listed, copies, t);                                                 \
    }
#define DENSE(m, kind)                                                                             \
    static void kind##_##m##_1(const fac_conv_tile *t) {                                           \
        is_dense(t) ? dense(m, 1, t) : tiles(m, 1, VL, VL, 0, 1, t);                               \
    }                                                                                              \
    static void kind##_##m##_2(const fac_conv_tile *t) {                                           \
        is_dense(t) ? dense(m, 2, t) : tiles(m, 2, VL, VL, 0, 1, t);                               \
    }
#define PRODUCTS(m, kind)                                                                          \
    static void kind##_##m##_1(const fac_conv_tile *t) { products(m, 1, t); }                      \
    static void kind##_##m##_2(const fac_conv_tile *t) { products(m, 2, t); }
#define HALVES(m, kind)                                                                            \
    static void kind##_##m##_3(const fac_conv_tile *t) { dense(m, AND_HALF, t); }
#define ENTRY(m, kind) [m] = { kind##_##m##_1, kind##_##m##_2 },
#define ENTRIES(m, kind) [m] = { kind##_##m##_1, kind##_##m##_2, kind##_##m##_3 },

ALL_ROWS(DENSE, near)
#if MR == 14
UP_FROM_12(HALVES, near)
#endif
ALL_ROWS(KERNEL, any, VL, t->x_pixel, 0, 0)
ALL_ROWS(KERNEL, planar, 1, t->x_pixel, 0, 0)
#if MR <= 6
ALL_ROWS(KERNEL, list, VL, 0, 1, 0) /* as many registers for addresses as pixels */
#endif
ALL_ROWS(PRODUCTS, products)

extern const fac_conv_tile_table FAC_SIMD(fac_conv_tile)[FAC_TILE_KINDS];
const fac_conv_tile_table FAC_SIMD(fac_conv_tile)[FAC_TILE_KINDS] = {
#if MR == 14
    [FAC_TILE_NEAR] = { { UP_TO_11(ENTRY, near) UP_FROM_12(ENTRIES, near) } },
#else
    [FAC_TILE_NEAR] = { { ALL_ROWS(ENTRY, near) } },
#endif
    [FAC_TILE_ANY] = { { ALL_ROWS(ENTRY, any) } },
    [FAC_TILE_PLANAR] = { { ALL_ROWS(ENTRY, planar) } },
#if MR <= 6
    [FAC_TILE_LIST] = { { ALL_ROWS(ENTRY, list) } },
#endif
    [FAC_TILE_PRODUCTS] = { { ALL_ROWS(ENTRY, products) } },
};
