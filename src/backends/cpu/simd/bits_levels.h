/* From numbers to bits: the levels of pixels, by thresholds.  See bits.c, which includes this. */
#include "backends/cpu/simd/bits_kinds.h"

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

/* Thresholds above 0 cut what a relu would. */
static bool needs_relu(const fac_bit_levels *l) {
    return l->relu && (l->sign || l->threshold[0] < 0);
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

INLINE void pack_as(const fac_bit_pack *t, const int kind, const int planes, const bool relu) {
    const int blocks = (t->channels + VL - 1) / VL;
    const unsigned valid = t->channels < 32 ? (1u << t->channels) - 1 : ~0u;
    const fac_bit_levels l = *t->levels;
    for (int64_t p = 0; p < t->pixels; p++) {
        uint32_t word[FAC_BIT_PLANES] = { 0 };
        UNROLL
        for (int b = 0; b < blocks; b++) {
            unsigned bits[FAC_BIT_PLANES];
            vec x = load(t->x + p * t->x_pixel + b * t->x_block);
            if (relu) x = vmax(x, all(0));
            vector_bits(&l, x, kind, bits);
            for (int j = 0; j < planes; j++) word[j] |= (bits[j] & LANES) << b * VL;
        }
        uint32_t *to = t->to + p * t->to_pixel;
        for (int j = 0; j < planes; j++) to[j * t->to_plane] = word[j] & valid;
    }
}

static void pack(const fac_bit_pack *t) {
    const int kind = kind_of(t->levels);
    if (needs_relu(t->levels) && kind == SIGNS)
        pack_as(t, SIGNS, 1, true);
    else if (needs_relu(t->levels))
        pack_as(t, ANY, t->levels->planes, true);
    else if (kind == SIGNS)
        pack_as(t, SIGNS, 1, false);
    else if (kind == ONE)
        pack_as(t, ONE, 1, false);
    else if (kind == TWO)
        pack_as(t, TWO, 2, false);
    else
        pack_as(t, ANY, t->levels->planes, false);
}
