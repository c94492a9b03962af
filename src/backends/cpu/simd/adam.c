/* One step of Adam: see fac_adam_numbers in streams.h.
 *
 * All in registers: what limits it is memory, then the square root and the division.  Compiled
 * without contraction of a b + c (cmake/simd.cmake), so that the bits are those of the ops one by
 * one. */
#include <math.h>
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/device/streams.h"

extern fac_adam_kernel FAC_SIMD(fac_adam);
void FAC_SIMD(fac_adam)(const fac_adam_numbers *t, const float *g, const float *const in[3],
                        float *const out[3], int64_t n) {
    const float weight = t->weight, keep = t->keep, fresh = t->fresh, rate = t->rate,
                inverse = t->inverse, epsilon = t->epsilon;
    const float *p = in[0], *m = in[1], *v = in[2];
    float *to_p = out[0], *to_m = out[1], *to_v = out[2];
    IN_PLACE for (int64_t i = 0; i < n; i++) {
        const float mean = m[i] + (g[i] - m[i]) * weight,
                    square = v[i] * keep + g[i] * g[i] * fresh;
        to_p[i] = p[i] - rate * (mean / (sqrtf(square) * inverse + epsilon));
        to_m[i] = mean;
        to_v[i] = square;
    }
}
