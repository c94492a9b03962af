/* What this instruction set can do at best: arithmetic without memory, reading without arithmetic
 * to speak of. */
#include "backends/cpu/simd/vector.h"

/* As many independent chains as there are registers for: four cycles of latency times two units
 * need at least eight. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { CHAINS = 24 };
#else
enum { CHAINS = 12 };
#endif

/* Every element stays at 1: x * 0.5 + 0.5. */
static float multiply_add(int64_t times) {
    vec x[CHAINS], sum = all(0);
    float half = 0.5f;
    __asm__ volatile("" : "+m"(half)); /* or the compiler would see through it */
    const vec a = all(half);
    for (int k = 0; k < CHAINS; k++) x[k] = all(1);
    for (int64_t i = 0; i < times; i++) {
        UNROLL for (int k = 0; k < CHAINS; k++) x[k] = x[k] * a + a;
    }
    for (int k = 0; k < CHAINS; k++) sum += x[k];
    return sum[0];
}

static float read(const float *p, size_t n) {
    vec a = all(0), b = a, c = a, d = a;
    for (size_t i = 0; i + 4 * VL <= n; i += 4 * VL) {
        a += load(p + i);
        b += load(p + i + VL);
        c += load(p + i + 2 * VL);
        d += load(p + i + 3 * VL);
    }
    const vec sum = (a + b) + (c + d);
    return sum[0];
}

extern const fac_peak_kernels FAC_SIMD(fac_peak);
const fac_peak_kernels FAC_SIMD(fac_peak) = { multiply_add, 2.0 * CHAINS *VL, read };
