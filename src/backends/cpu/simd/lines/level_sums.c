/* How many numbers lie on each level of a basis, and their sums, of one instruction set: see
 * fac_level_sums in streams.h. */
#include "backends/cpu/simd/widen.h"
#include "backends/cpu/device/streams.h"

enum { PART = 32 }; /* vectors that stay in the first cache; a lane adds up so many in f32 */

/* Of whole vectors: those above `low` and not above `high`; NULL: no bound. */
INLINE void of_level(const float *x, int vectors, const float *low, const float *high,
                     double *count, double *sum) {
    ivec n = { 0 };
    vec s = { 0 };
    for (int i = 0; i < vectors; i++) {
        const vec v = load(x + i * VL);
        ivec here = ~(ivec){ 0 };
        if (low) here &= v > all(*low);
        if (high) here &= ~(v > all(*high));
        n -= here;
        s += (vec)(here & (ivec)v);
    }
    int all_lanes = 0;
    for (int k = 0; k < VL; k++) all_lanes += n[k];
    *count += all_lanes;
    *sum += total(s);
}

extern fac_level_kernel FAC_SIMD(fac_level_sums);
void FAC_SIMD(fac_level_sums)(const float *x, int64_t n, const float *threshold, int levels,
                              double *count, double *sum) {
    for (; n >= VL;) {
        const int vectors = n / VL < PART ? (int)(n / VL) : PART;
        of_level(x, vectors, NULL, threshold, count, sum);
        for (int k = 1; k + 1 < levels; k++)
            of_level(x, vectors, threshold + k - 1, threshold + k, count + k, sum + k);
        of_level(x, vectors, threshold + levels - 2, NULL, count + levels - 1, sum + levels - 1);
        x += vectors * VL;
        n -= vectors * VL;
    }
    for (int64_t i = 0; i < n; i++) {
        int k = 0;
        for (int t = 0; t + 1 < levels; t++) k += x[i] > threshold[t];
        count[k] += 1;
        sum[k] += (double)x[i];
    }
}
