/* The softmax of attention, folded block by block: see attention.h.  After Milakov and Gimelshein,
 * "Online normalizer calculation for softmax" (2018) and Dao et al., "FlashAttention" (2022): when
 * a block raises the largest score, what was summed before is scaled down. */
#include <math.h>
#include "backends/cpu/attention/attention.h"
#include "backends/cpu/simd/exp2.h"
#include "backends/cpu/simd/rows.h"

static const float LOG2_E = 1.44269504088896340736f;

/* Applies masks, and the scale where the largest score cannot be found without; returns the scale
 * that is left to do. */
INLINE float settle(const int n, const fac_attention_block *t) {
    if (!t->bias && !t->mask && !t->last && t->scale > 0) return t->scale;
    vec last[2];
    UNROLL for (int v = 0; v < n; v++) last[v] = t->last ? load(t->last + v * VL) : all(INFINITY);
    for (int64_t k = 0; k < t->keys; k++) {
        float *s = t->s + k * t->row;
        const vec key = all(t->first + (float)k), bias = all(t->bias ? t->bias[k] : 0);
        UNROLL for (int v = 0; v < n; v++) {
            const vec more = t->mask ? load(t->mask + k * t->row + v * VL) : all(0);
            const vec x = load(s + v * VL) * t->scale + (bias + more) * LOG2_E;
            const ivec seen = key <= last[v];
            store(s + v * VL, (vec)(((ivec)x & seen) | ((ivec)all(-INFINITY) & ~seen)));
        }
    }
    return 1;
}

/* The largest score of each query, those of earlier blocks included. */
INLINE void largest(const int n, const fac_attention_block *t, float scale, vec top[2]) {
    enum { CHAINS = 4 }; /* hide the latency of a maximum */
    vec chain[CHAINS][2];
    const float *s = t->s;
    UNROLL for (int v = 0; v < n; v++) UNROLL for (int c = 0; c < CHAINS; c++) chain[c][v] =
        all(-INFINITY);
    int64_t k = 0;
    for (; k + CHAINS <= t->keys; k += CHAINS, s += CHAINS * n * VL)
        UNROLL for (int c = 0; c < CHAINS; c++) UNROLL for (int v = 0; v < n; v++) chain[c][v] =
            vmax(chain[c][v], load(s + (c * n + v) * VL));
    for (; k < t->keys; k++, s += n * VL)
        UNROLL for (int v = 0; v < n; v++) chain[0][v] = vmax(chain[0][v], load(s + v * VL));
    UNROLL for (int v = 0; v < n; v++) {
        const vec m = vmax(vmax(chain[0][v], chain[1][v]), vmax(chain[2][v], chain[3][v]));
        top[v] = vmax(load(t->top + v * VL), scale * m);
    }
}

/* A largest score of -inf, when no key was seen yet, must not make NaN of a difference. */
INLINE vec base_of(vec top) {
    const ivec none = top == all(-INFINITY);
    return (vec)((ivec)top & ~none);
}

INLINE void fold(const int n, const fac_attention_block *t) {
    vec top[2], base[2], factor[2], sum[2][2];
    bool same = true;
    const float scale = settle(n, t);
    largest(n, t, scale, top);
    UNROLL for (int v = 0; v < n; v++) {
        base[v] = base_of(top[v]);
        factor[v] = exp2_of(load(t->top + v * VL) - base[v]);
        const ivec differs = factor[v] != all(1);
        for (int k = 0; k < VL; k++) same = same && !differs[k];
        sum[0][v] = sum[1][v] = all(0); /* long sums are made of those of blocks */
        store(t->top + v * VL, top[v]);
    }
    float *s = t->s;
    int64_t k = 0;
    for (; k + 2 <= t->keys; k += 2, s += 2 * n * VL)
        UNROLL for (int c = 0; c < 2; c++) UNROLL for (int v = 0; v < n; v++) {
            const vec p = exp2_of(load(s + (c * n + v) * VL) * scale - base[v]);
            store(s + (c * n + v) * VL, p);
            sum[c][v] += p;
        }
    for (; k < t->keys; k++, s += n * VL) UNROLL for (int v = 0; v < n; v++) {
            const vec p = exp2_of(load(s + v * VL) * scale - base[v]);
            store(s + v * VL, p);
            sum[0][v] += p;
        }
    UNROLL for (int v = 0; v < n; v++) {
        const vec before = load(t->sum + v * VL) * factor[v];
        store(t->sum + v * VL, before + (sum[0][v] + sum[1][v]));
    }
    for (int64_t i = 0; i < t->size && !same; i++)
        UNROLL for (int v = 0; v < n; v++)
            store(t->o + (i * n + v) * VL, load(t->o + (i * n + v) * VL) * factor[v]);
}

static void fold_block(const fac_attention_block *t) {
    if (t->vectors == 1)
        fold(1, t);
    else
        fold(2, t);
}

/* Weights of one block, and what goes back to their scores. */
INLINE void grad(const int n, const fac_attention_block *t, float *d, const float *along) {
    vec base[2], shift[2];
    const float scale = settle(n, t);
    const int64_t row = t->row;
    float *s = t->s;
    UNROLL for (int v = 0; v < n; v++) {
        base[v] = load(t->top + v * VL);
        shift[v] = load(along + v * VL);
    }
    for (int64_t k = 0; k < t->keys; k++, s += row, d += row) UNROLL for (int v = 0; v < n; v++) {
            const vec p = exp2_of(load(s + v * VL) * scale - base[v]);
            store(s + v * VL, p);
            store(d + v * VL, p * (load(d + v * VL) - shift[v]));
        }
}

static void grad_block(const fac_attention_block *t, float *d, const float *along) {
    if (t->vectors == 1)
        grad(1, t, d, along);
    else
        grad(2, t, d, along);
}

static void divide(float *o, int64_t size, int vectors, const float *sum) {
    for (int v = 0; v < vectors; v++) {
        const vec s = load(sum + v * VL);
        const ivec some = s != all(0);
        const vec factor = (vec)((ivec)(1 / s) & some);
        for (int64_t i = 0; i < size; i++)
            store(o + (i * vectors + v) * VL, load(o + (i * vectors + v) * VL) * factor);
    }
}

/* ---- products: the register tile of tile.c without borders, bias and clipping ---- */

/* Weights of the scores in registers.  Their sum tells whether one is NaN, or so large that sums of
 * values might be infinite. */
static const float MOST = 1e9f;
INLINE void weigh(const int m, const int n, const fac_attention_tile *t, float *y, vec acc[MR][2]) {
    const int64_t row = t->y_row;
    const float *terms = EXP2_TERMS;
    vec c[EXP2_COUNT];
    __asm__ volatile(""
                     : "+r"(terms)); /* or they would be kept in registers that the product needs */
    UNROLL for (int k = 0; k < EXP2_COUNT; k++) c[k] = held(all(terms[k]));
    UNROLL for (int v = 0; v < n; v++) {
        vec sum = all(0);
        UNROLL for (int i = 0; i < m; i++) {
            const vec p = exp2_finite(c, acc[i][v]);
            store(y + i * row + v * VL, p);
            sum += p;
        }
        store(t->sum + v * VL, load(t->sum + v * VL) + sum);
    }
}

INLINE void put(const int m, const int n, const int kind, const fac_attention_tile *t, float *y,
                const float *p, vec acc[MR][2]) {
    const bool changes = kind == FAC_ATTENTION_CHANGES, add = !changes && t->add;
    const int64_t row = t->y_row;
    if (kind == FAC_ATTENTION_WEIGHTS)
        weigh(m, n, t, y, acc);
    else
        UNROLL for (int v = 0; v < n; v++) UNROLL for (int i = 0; i < m; i++) {
            float *to = y + i * row + v * VL;
            vec sum = acc[i][v];
            if (changes) sum *= load(p + i * row + v * VL);
            if (add) sum += load(to);
            store(to, sum);
        }
}

/* The lines of some rows, for the second cache. */
INLINE void ask(const float *rows, int64_t step, int64_t n, int64_t size) {
    enum { LINE = 16 };
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < size; k += LINE) __builtin_prefetch(rows + i * step + k, 0, 2);
}

INLINE void tile(const int m, const int n, const int kind, fac_attention_tile *t) {
    enum { AHEAD = 2 }; /* tiles of a */
    const bool columns = kind == FAC_ATTENTION_COLUMNS, weights = kind == FAC_ATTENTION_WEIGHTS;
    const bool based = weights || kind == FAC_ATTENTION_CHANGES;
    const int64_t i_step = columns ? 1 : t->step;
    const int64_t k_step = columns ? t->step : 1;
    const int64_t w_row = t->w_row, y_row = t->y_row, depth = t->depth, tiles = t->tiles;
    const int half = (m + 1) / 2;
    const float *rows = t->a, *first = t->w, *p = t->p;
    float *y = t->y;
    for (int64_t j = 0; j < tiles;
         j++, rows += m * i_step, y += m * y_row, p = based ? p + m * y_row : p) {
        const float *a = rows, *b = a + half * i_step,
                    *w = first; /* two bases: few multiples of the step are needed */
        vec acc[MR][2];
        if (weights && t->ahead) {
            ask(rows + AHEAD * m * i_step, i_step, m, depth);
            ask(t->ahead + j * m * t->ahead_step, t->ahead_step, m, t->ahead_size);
        }
        UNROLL for (int v = 0; v < n; v++) {
            const vec none = based ? -load(t->base + v * VL) : all(0);
            UNROLL for (int i = 0; i < m; i++) acc[i][v] = none;
        }
        for (int64_t k = 0; k < depth; k++, a += k_step, b += k_step, w += w_row) {
            const vec w0 = load(w), w1 = n > 1 ? load(w + VL) : w0;
            UNROLL for (int i = 0; i < m; i++) {
                const vec x = all(i < half ? a[i * i_step] : b[(i - half) * i_step]);
                acc[i][0] = add_product(acc[i][0], w0, x);
                if (n > 1) acc[i][1] = add_product(acc[i][1], w1, x);
            }
        }
        put(m, n, kind, t, y, p, acc);
    }
    if (weights)
        UNROLL for (int v = 0; v < n; v++) t->unfit =
            t->unfit || any_of(~(load(t->sum + v * VL) < all(MOST)));
}

#define KERNEL(m, kind, number)                                                                    \
    static void kind##_##m##_1(fac_attention_tile *t) { tile(m, 1, number, t); }                   \
    static void kind##_##m##_2(fac_attention_tile *t) { tile(m, 2, number, t); }
#define ENTRY(m, kind) [m] = { kind##_##m##_1, kind##_##m##_2 },

ALL_ROWS(KERNEL, rows, FAC_ATTENTION_ROWS)
ALL_ROWS(KERNEL, columns, FAC_ATTENTION_COLUMNS)
ALL_ROWS(KERNEL, weights, FAC_ATTENTION_WEIGHTS)
ALL_ROWS(KERNEL, changes, FAC_ATTENTION_CHANGES)

extern const fac_attention_kernels FAC_SIMD(fac_attention);
const fac_attention_kernels FAC_SIMD(fac_attention) = { fold_block,
                                                        grad_block,
                                                        divide,
                                                        { { ALL_ROWS(ENTRY, rows) },
                                                          { ALL_ROWS(ENTRY, columns) },
                                                          { ALL_ROWS(ENTRY, weights) },
                                                          { ALL_ROWS(ENTRY, changes) } } };
