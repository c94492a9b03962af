/* 2^x and e^x of a vector. */
#ifndef FACULA_CPU_EXP2_H
#define FACULA_CPU_EXP2_H
#include "backends/cpu/simd/vector.h"

/* 2^x = 2^n 2^f,  n = x rounded,  |f| <= 1/2.  The polynomial is a minimax fit of 2^f with a
 * relative error of 7.5e-8, so the result is within 2 units in the last place where it is not
 * denormal. */
enum { EXP2_COUNT = 6 };
static const float EXP2_TERMS[EXP2_COUNT] = { 1.327647116e-3f, 9.675541328e-3f, 5.550713276e-2f,
                                              2.402211972e-1f, 6.931469671e-1f, 1.000000072f };
#define EXP2_MAGIC 12582912.0f /* 1.5 2^23: see base/mathf.h */

/* For x <= 127; x below -126 gives 0, since products with denormal weights, as masks of -100 make
 * them, take a hundred times as long; NaN stays. */
INLINE vec exp2_of(vec x) {
#if defined(__AVX512DQ__)
    const vec f = (vec)_mm512_reduce_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT |
                                                       _MM_FROUND_NO_EXC); /* of -inf: 0 */
#else
    const vec kept = vmax(x, all(-126.0f)), shifted = kept + all(EXP2_MAGIC),
              f = kept - (shifted - all(EXP2_MAGIC));
#endif
    vec p = all(EXP2_TERMS[0]);
    UNROLL for (int k = 1; k < EXP2_COUNT; k++) p = p * f + all(EXP2_TERMS[k]);
#if defined(__AVX512DQ__)
    const __mmask16 keep = _mm512_cmp_ps_mask((__m512)x, (__m512)all(-126.0f), _CMP_NLT_UQ);
    return (vec)_mm512_maskz_scalef_ps(keep, (__m512)p, (__m512)(x - f));
#else
    return (vec)(((ivec)p + ((ivec)shifted << 23)) &
                 ~(x < all(-126.0f))); /* what the magic number has there is shifted out */
#endif
}

/* The same, in fewer steps where 512 bits take two, with its terms in registers.  Above 127 it is
 * 2^127 at least; of -inf NaN or next to nothing, and below -126 less than 2^-125. */
INLINE vec exp2_finite(const vec *c, vec x) {
#if defined(__AVX512F__)
    x = (vec)_mm512_max_ps((__m512)x, (__m512)all(-126.0f)); /* nothing is denormal */
    const vec n = (vec)_mm512_roundscale_ps((__m512)x,
                                            _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
              f = x - n;
#else
    const vec kept = vmin(vmax(x, all(-126.0f)), all(127.0f)), shifted = kept + all(EXP2_MAGIC);
    const vec f = kept - (shifted - all(EXP2_MAGIC));
#endif
    vec p = c[0];
    UNROLL for (int k = 1; k < EXP2_COUNT; k++) p = p * f + c[k];
#if defined(__AVX512F__)
    return (vec)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
    return (vec)((ivec)p + ((ivec)shifted << 23));
#endif
}

/* e^x for x <= 88, likewise, with ln 2 in two parts as in base/mathf.h: within 1.5 units in the
 * last place; x below -87 gives 0. */
INLINE vec exp_of(vec x) {
#if defined(__AVX512F__)
    const __mmask16 keep = _mm512_cmp_ps_mask((__m512)x, (__m512)all(-87.0f), _CMP_NLT_UQ);
#endif
    x = vmax(x, all(-120.0f));
#if defined(__AVX512F__)
    const vec n = (vec)_mm512_roundscale_ps((__m512)(x * 1.44269504f),
                                            _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
    const vec shifted = x * 1.44269504f + all(EXP2_MAGIC), n = shifted - all(EXP2_MAGIC);
#endif
    vec r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    vec p = all(1.394613695e-3f) + r * 1.991847089e-4f;
    p = p * r + all(8.333264202e-3f);
    p = p * r + all(4.166626906e-2f);
    p = p * r + all(1.666666686e-1f);
    p = p * r + all(5.000000078e-1f);
    p = p * (r * r) + (r + 1.0f);
#if defined(__AVX512F__)
    return (vec)_mm512_maskz_scalef_ps(keep, (__m512)p, (__m512)n);
#else
    const ivec bits = (((ivec)shifted - 0x4B400000) + 127) << 23, keep = ~(x < all(-87.0f));
    return (vec)((ivec)(p * (vec)bits) & keep);
#endif
}
#endif
