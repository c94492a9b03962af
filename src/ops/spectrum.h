/* Discrete Fourier transforms as matrices: what dft and stft share. */
#ifndef FACULA_OPS_SPECTRUM_H
#define FACULA_OPS_SPECTRUM_H
#include <math.h>
#include "facula/op.h"

#define FAC_TAU 6.28318530717958647692528676655900577

/* cos and sin of 2 pi k / n, exact where they are 0 or 1: 0 <= k < n. */
static inline double fac_turn_cos(int64_t k, int64_t n) {
    if (4 * k == n || 4 * k == 3 * n) return 0;
    return cos(FAC_TAU * (double)k / (double)n);
}
static inline double fac_turn_sin(int64_t k, int64_t n) {
    if (2 * k == n) return 0;
    return sin(FAC_TAU * (double)k / (double)n);
}
#endif
