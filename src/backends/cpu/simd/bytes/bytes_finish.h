/* What comes after the sums of a tile, with AVX-512: bytes of two pixels at a time.  Included by
 * bytes.c, whose finish() is the same for other sets, and for sums that stay i32.
 *
 * Numbers are limited from above alone: below, conversions and packing saturate.  Packing joins
 * quarters of vectors, which one permutation brings in order. */
#ifndef FACULA_CPU_BYTES_FINISH_H
#define FACULA_CPU_BYTES_FINISH_H

/* Of one tile. */
typedef struct ending {
    __m512 factor[2], lo, hi, rv, rz, off, most, zero;
    __m512i shift, flip; /* 16-bit numbers to the range of i8; bytes back */
    __mmask32 there;     /* columns */
    bool whole, sign, z_first;
} ending;

INLINE ending ending_of(const fac_byte_tile *t) {
    const bool sign = t->sum ? t->sum->sign : t->lo + (float)t->y_zero < 0;
    const int shift = sign ? 0 : -128;
    ending e = { .factor = { _mm512_loadu_ps(t->factor), _mm512_loadu_ps(t->factor + VL) },
                 .lo = _mm512_set1_ps(t->lo),
                 .hi = _mm512_set1_ps(t->hi),
                 .shift = _mm512_set1_epi16((short)(t->sum ? shift : shift + t->y_zero)),
                 .flip = _mm512_set1_epi8(sign ? 0 : -128),
                 .there = t->columns < 2 * VL ? (1u << t->columns) - 1 : ~0u,
                 .whole = t->columns == 2 * VL,
                 .sign = sign };
    if (!t->sum) return e;
    e.rv = _mm512_set1_ps(t->sum->rv);
    e.rz = _mm512_set1_ps(t->sum->rz);
    e.off = _mm512_set1_ps(t->sum->off);
    e.most = _mm512_set1_ps(t->sum->hi);
    e.zero = _mm512_set1_ps((float)t->y_zero);
    e.z_first = t->sum->z_first;
    return e;
}

/* Sixteen bytes as numbers. */
INLINE __m512 numbers_at(const ending *e, const uint8_t *z, int vector) {
    const __mmask16 there = (__mmask16)(e->there >> (vector ? VL : 0));
    const __m128i b = e->whole ? _mm_loadu_si128((const __m128i *)(const void *)z)
                               : _mm_maskz_loadu_epi8(there, z);
    return _mm512_cvtepi32_ps(e->sign ? _mm512_cvtepi8_epi32(b) : _mm512_cvtepu8_epi32(b));
}

/* Sums to whole numbers, of which those below the bytes' are too small still. */
INLINE __m512i ended(const ending *e, const bool sums, ivec acc, int vector, const uint8_t *z) {
    const __m512 magic = _mm512_set1_ps(12582912.0f);
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps((__m512i)acc), e->factor[vector]);
    v = _mm512_min_ps(v, e->hi);
    if (!sums) return _mm512_cvtps_epi32(v);
    v = _mm512_add_ps(_mm512_max_ps(v, e->lo), magic);
    v = _mm512_sub_ps(v, _mm512_sub_ps(magic, e->zero));
    const __m512 w = numbers_at(e, z + vector * VL, vector);
    const __m512 y = e->z_first ? _mm512_fmadd_ps(w, e->rz, _mm512_fmadd_ps(v, e->rv, e->off))
                                : _mm512_fmadd_ps(v, e->rv, _mm512_fmadd_ps(w, e->rz, e->off));
    return _mm512_cvtps_epi32(_mm512_min_ps(y, e->most));
}

/* The vectors of one pixel as 16-bit numbers in the range of i8, or beyond it. */
INLINE __m512i words(const ending *e, const bool sums, const int vectors, ivec acc0, ivec acc1,
                     const uint8_t *z) {
    const __m512i a = ended(e, sums, acc0, 0, z);
    const __m512i b = vectors > 1 ? ended(e, sums, acc1, 1, z) : a;
    return _mm512_adds_epi16(_mm512_packs_epi32(a, b), e->shift);
}

INLINE void put_columns(const ending *e, uint8_t *y, __m256i bytes) {
    if (e->whole)
        _mm256_storeu_si256((__m256i *)(void *)y, bytes);
    else
        _mm256_mask_storeu_epi8(y, e->there, bytes);
}

INLINE void put_two(const ending *e, __m512i first, __m512i second, uint8_t *y0, uint8_t *y1) {
    const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const __m512i packed = _mm512_xor_si512(_mm512_packs_epi16(first, second), e->flip);
    const __m512i bytes = _mm512_permutexvar_epi32(order, packed);
    put_columns(e, y0, _mm512_castsi512_si256(bytes));
    if (y1) put_columns(e, y1, _mm512_extracti64x4_epi64(bytes, 1));
}
#endif
