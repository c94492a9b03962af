/* From the thresholds that are exceeded to the bits of codes: see bits.c and bits_tables.c. */
#ifndef FACULA_SIMD_BITS_KINDS_H
#define FACULA_SIMD_BITS_KINDS_H
#include "backends/cpu/bits/bits.h"
#include "backends/cpu/simd/vector.h"

#define LANES ((1u << VL) - 1)

/* A bit for each lane. */
INLINE unsigned above(vec x, float t) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(t), _CMP_GT_OQ);
#elif defined(__AVX2__)
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps((__m256)x, _mm256_set1_ps(t), _CMP_GT_OQ));
#else
    const ivec more = x > t;
    unsigned bits = 0;
    for (int k = 0; k < VL; k++) bits |= (unsigned)(more[k] & 1) << k;
    return bits;
#endif
}

INLINE unsigned below_zero(vec x) { return above(-x, 0); }

/* The bits of each plane, of a bit for each threshold that is exceeded. */
INLINE void bits_of(const fac_bit_levels *l, const unsigned m[FAC_BIT_THRESHOLDS],
                    unsigned bits[FAC_BIT_PLANES]) {
    for (int j = 0; j < l->planes; j++) {
        bits[j] = l->start >> j & 1 ? ~0u : 0;
        for (int k = 0; k < l->thresholds; k++) bits[j] ^= l->flips[j] >> k & 1 ? m[k] : 0;
    }
}

/* What activations mostly are: signs; one plane of one threshold; two of three, whose codes
 * grow. */
enum { ANY, SIGNS, ONE, TWO };

/* bits_of, where the kind is known. */
INLINE void bits_as(const fac_bit_levels *l, const int kind, const unsigned *m, unsigned *bits) {
    if (kind == ANY)
        bits_of(l, m, bits);
    else if (kind == TWO) {
        bits[0] = m[0] ^ m[1] ^ m[2];
        bits[1] = m[1];
    } else
        bits[0] = m[0];
}

static int kind_of(const fac_bit_levels *l) {
    if (l->sign) return SIGNS;
    if (l->start) return ANY;
    if (l->planes == 1 && l->flips[0] == 1) return ONE;
    return l->planes == 2 && l->flips[0] == 7 && l->flips[1] == 2 ? TWO : ANY;
}

/* The bits of a vector in each plane, with more than LANES of them. */
INLINE void vector_bits(const fac_bit_levels *l, vec x, const int kind,
                        unsigned bits[FAC_BIT_PLANES]) {
    unsigned m[FAC_BIT_THRESHOLDS];
    if (kind == SIGNS)
        bits[0] = ~below_zero(x);
    else if (kind == ONE)
        bits[0] = above(x, l->threshold[0]);
    else if (kind == TWO) {
        /* thresholds rise: bit 0 says on which side of the outer one of the half x lies */
#if defined(__AVX512F__)
        const __mmask16 upper =
            _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(l->threshold[1]), _CMP_GT_OQ);
        const __m512 outer = _mm512_mask_blend_ps(upper, _mm512_set1_ps(l->threshold[0]),
                                                  _mm512_set1_ps(l->threshold[2]));
        bits[0] = _mm512_cmp_ps_mask((__m512)x, outer, _CMP_GT_OQ);
        bits[1] = upper;
#else
        const unsigned m1 = above(x, l->threshold[1]);
        bits[0] = above(x, l->threshold[0]) ^ m1 ^ above(x, l->threshold[2]);
        bits[1] = m1;
#endif
    } else {
        for (int k = 0; k < l->thresholds; k++) m[k] = above(x, l->threshold[k]);
        bits_of(l, m, bits);
    }
}
#endif
