/* Sums of short rows of f32 in f64, of one instruction set: a vector of parts of each row, then as
 * many rows as a vector has lanes are added across at once, each step halving what is left of a
 * row, so that no row is folded by itself. */
#include "backends/cpu/simd/widen.h"
#include "backends/cpu/device/streams.h"

#define BOTH(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#if VL == 16
INLINE dvec near(dvec a, dvec b) {
    return BOTH(a, b, 0, 8, 2, 10, 4, 12, 6, 14) + BOTH(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
}
INLINE dvec pairs(dvec a, dvec b) {
    return BOTH(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + BOTH(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
}
INLINE dvec fours(dvec a, dvec b) {
    return BOTH(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + BOTH(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}
INLINE dvec across(const dvec d[VD]) {
    return fours(pairs(near(d[0], d[1]), near(d[2], d[3])),
                 pairs(near(d[4], d[5]), near(d[6], d[7])));
}
#elif VL == 8
INLINE dvec near(dvec a, dvec b) { return BOTH(a, b, 0, 4, 2, 6) + BOTH(a, b, 1, 5, 3, 7); }
INLINE dvec across(const dvec d[VD]) {
    const dvec a = near(d[0], d[1]), b = near(d[2], d[3]);
    return BOTH(a, b, 0, 1, 4, 5) + BOTH(a, b, 2, 3, 6, 7);
}
#else
INLINE dvec across(const dvec d[VD]) { return BOTH(d[0], d[1], 0, 2) + BOTH(d[0], d[1], 1, 3); }
#endif

extern fac_short_sums FAC_SIMD(fac_short_sums);
void FAC_SIMD(fac_short_sums)(const float *x, int64_t n, int64_t rows, double *sums) {
    int64_t r = 0;
    for (; r + VD <= rows; r += VD) {
        dvec d[VD];
        UNROLL for (int i = 0; i < VD; i++) {
            const float *row = x + (r + i) * n;
            d[i] = widen_f32(row);
            for (int64_t k = VD; k < n; k += VD) d[i] += widen_f32(row + k);
        }
        store_f64(sums + r, across(d));
    }
    for (; r < rows; r++) {
        sums[r] = 0;
        for (int64_t k = 0; k < n; k++) sums[r] += (double)x[r * n + k];
    }
}
