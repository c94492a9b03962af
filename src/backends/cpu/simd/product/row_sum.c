/* One row times a matrix: see fac_row_panel in simd_products.h.  A panel's sums stay in registers
 * while its rows pass by, and a row is asked for some rows ahead: the hardware finds neighbours by
 * itself, but not rows after those that are left out. */
#include "backends/cpu/simd/vector.h"

#if defined(__AVX512F__) || defined(__aarch64__)
enum { VECTORS = 16 };
#else
enum { VECTORS = 8 };
#endif
enum { AHEAD = 6, LINE = 16 };

INLINE void sum(const int n, const fac_row_panel *t, int64_t at) {
    vec acc[VECTORS];
    const float *w = t->w + at;
    UNROLL for (int v = 0; v < n; v++) acc[v] = load(t->y + at + v * VL);
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t next = i + AHEAD < t->n ? i + AHEAD : i;
        const float *row = w + (t->k ? t->k[i] : i) * t->row,
                    *ahead = w + (t->k ? t->k[next] : next) * t->row;
        const vec x = all(t->x[i]);
        for (int l = 0; t->k && l < n * VL; l += LINE) __builtin_prefetch(ahead + l, 0, 2);
        UNROLL for (int v = 0; v < n; v++) acc[v] += x * load(row + v * VL);
    }
    UNROLL for (int v = 0; v < n; v++) store(t->y + at + v * VL, acc[v]);
}

extern const fac_row_kernel FAC_SIMD(fac_row_sum);
static void row_sum(const fac_row_panel *t) {
    int64_t at = 0;
    for (; at + VECTORS * VL <= t->width; at += VECTORS * VL) sum(VECTORS, t, at);
    for (; at + 8 * VL <= t->width; at += 8 * VL) sum(8, t, at);
    for (; at + 4 * VL <= t->width; at += 4 * VL) sum(4, t, at);
    for (; at < t->width; at += VL) sum(1, t, at);
}
const fac_row_kernel FAC_SIMD(fac_row_sum) = { VECTORS * VL, row_sum };
