/* f16 and bf16 to f32 and back, as integer arithmetic without branches that the compiler makes
 * vectors of (AVX-512 has instructions for f16): the same bits as fac_convert, for NaN some NaN.
 * f32 to half rounds to nearest, ties to even. */
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/device/streams.h"

INLINE float as_float(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
INLINE uint32_t as_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* The exponent's bias is 15 instead of 127: a product with 2^112 sets it right and normalizes small
 * numbers on the way. */
static void widen_f16(const uint16_t *restrict x, float *restrict y, int64_t n) {
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + VL <= n; i += VL)
        _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(x + i))));
#endif
    for (; i < n; i++) {
        uint32_t h = x[i], magnitude = h & 0x7FFF, sign = (h & 0x8000) << 16;
        uint32_t special = magnitude >= 0x7C00 ? 0x7F800000 : 0; /* infinity, NaN */
        y[i] = as_float((as_bits(as_float(magnitude << 13) * 0x1p112f) | special) | sign);
    }
}

static void narrow_f16(const float *restrict x, uint16_t *restrict y, int64_t n) {
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + VL <= n; i += VL)
        _mm256_storeu_si256((__m256i *)(y + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++) {
        uint32_t u = as_bits(x[i]), sign = u >> 16 & 0x8000, a = u & 0x7FFFFFFF;
        /* Below 2^-14 the result is a multiple of 2^-24, which is the last place of numbers around
         * 0.5. */
        uint32_t small = as_bits(as_float(a) + 0.5f) - 0x3F000000;
        uint32_t normal = (a + 0xC8000FFFu + (a >> 13 & 1)) >> 13;
        uint32_t large = a > 0x7F800000 ? 0x7E00 : 0x7C00;
        uint32_t h = a < 0x38800000 ? small : normal;
        h = a >= 0x47800000 ? large : h;
        y[i] = (uint16_t)(sign | h);
    }
}

static void widen_bf16(const uint16_t *restrict x, float *restrict y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = as_float((uint32_t)x[i] << 16);
}

static void narrow_bf16(const float *restrict x, uint16_t *restrict y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t u = as_bits(x[i]), rounded = (u + 0x7FFF + (u >> 16 & 1)) >> 16,
                 nan = u >> 16 | 0x40;
        y[i] = (uint16_t)((u & 0x7FFFFFFF) > 0x7F800000 ? nan : rounded);
    }
}

extern const fac_halves FAC_SIMD(fac_halves);
const fac_halves FAC_SIMD(fac_halves) = { widen_f16, narrow_f16, widen_bf16, narrow_bf16 };
