/* What comes after the sums of a tile, with AVX2: bytes of two pixels at a time, as bytes_finish.h
 * has it for AVX-512.  Included by bytes.c.
 *
 * Numbers are limited from above alone: below, conversions and packing saturate.  Packing joins
 * halves of vectors, which one permutation brings in order. */
#ifndef FACULA_CPU_BYTES_FINISH_AVX2_H
#define FACULA_CPU_BYTES_FINISH_AVX2_H

/* Of one tile. */
typedef struct ending {
    __m256 factor[2], lo, hi, rv, rz, off, most, zero;
    __m256i shift, flip; /* 16-bit numbers to the range of i8; bytes back */
    int columns;
    bool sign, z_first;
} ending;

INLINE ending ending_of(const fac_byte_tile *t) {
    const bool sign = t->sum ? t->sum->sign : t->lo + (float)t->y_zero < 0;
    const int shift = sign ? 0 : -128;
    ending e = { .factor = { _mm256_loadu_ps(t->factor), _mm256_loadu_ps(t->factor + VL) },
                 .lo = _mm256_set1_ps(t->lo),
                 .hi = _mm256_set1_ps(t->hi),
                 .shift = _mm256_set1_epi16((short)(t->sum ? shift : shift + t->y_zero)),
                 .flip = _mm256_set1_epi8(sign ? 0 : -128),
                 .columns = t->columns,
                 .sign = sign };
    if (!t->sum) return e;
    e.rv = _mm256_set1_ps(t->sum->rv);
    e.rz = _mm256_set1_ps(t->sum->rz);
    e.off = _mm256_set1_ps(t->sum->off);
    e.most = _mm256_set1_ps(t->sum->hi);
    e.zero = _mm256_set1_ps((float)t->y_zero);
    e.z_first = t->sum->z_first;
    return e;
}

/* Eight bytes as numbers, those of a vector; beyond the columns nothing is read. */
INLINE __m256 numbers_at(const ending *e, const uint8_t *z, int vector) {
    const int left = e->columns - vector * VL;
    uint64_t bytes = 0;
    if (left >= VL)
        memcpy(&bytes, z + vector * VL, VL);
    else if (left > 0)
        memcpy(&bytes, z + vector * VL, (size_t)left);
    const __m128i b = _mm_cvtsi64_si128((long long)bytes);
    return _mm256_cvtepi32_ps(e->sign ? _mm256_cvtepi8_epi32(b) : _mm256_cvtepu8_epi32(b));
}

/* Sums to whole numbers, of which those below the bytes' are too small still. */
INLINE __m256i ended(const ending *e, const bool sums, ivec acc, int vector, const uint8_t *z) {
    const __m256 magic = _mm256_set1_ps(12582912.0f);
    __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps((__m256i)acc), e->factor[vector]);
    v = _mm256_min_ps(v, e->hi);
    if (!sums) return _mm256_cvtps_epi32(v);
    v = _mm256_add_ps(_mm256_max_ps(v, e->lo), magic);
    v = _mm256_sub_ps(v, _mm256_sub_ps(magic, e->zero));
    const __m256 w = numbers_at(e, z, vector);
    const vec y = e->z_first ? fma_of((vec)w, (vec)e->rz, fma_of((vec)v, (vec)e->rv, (vec)e->off))
                             : fma_of((vec)v, (vec)e->rv, fma_of((vec)w, (vec)e->rz, (vec)e->off));
    return _mm256_cvtps_epi32(_mm256_min_ps((__m256)y, e->most));
}

/* The vectors of one pixel as 16-bit numbers in the range of i8, or beyond it. */
INLINE __m256i words(const ending *e, const bool sums, const int vectors, ivec acc0, ivec acc1,
                     const uint8_t *z) {
    const __m256i a = ended(e, sums, acc0, 0, z);
    const __m256i b = vectors > 1 ? ended(e, sums, acc1, 1, z) : a;
    return _mm256_adds_epi16(_mm256_packs_epi32(a, b), e->shift);
}

/* Apart, so that other pixels need no memory of their own. */
__attribute__((noinline)) static void put_some(uint8_t *y, __m128i bytes, int columns) {
    if (columns == VL)
        _mm_storel_epi64((__m128i *)(void *)y, bytes);
    else
        memcpy(y, &bytes, (size_t)columns);
}

INLINE void put_columns(const ending *e, uint8_t *y, __m128i bytes) {
    if (e->columns == 2 * VL)
        _mm_storeu_si128((__m128i *)(void *)y, bytes);
    else
        put_some(y, bytes, e->columns);
}

INLINE void put_two(const ending *e, __m256i first, __m256i second, uint8_t *y0, uint8_t *y1) {
    const __m256i order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);
    const __m256i packed = _mm256_xor_si256(_mm256_packs_epi16(first, second), e->flip);
    const __m256i bytes = _mm256_permutevar8x32_epi32(packed, order);
    put_columns(e, y0, _mm256_castsi256_si128(bytes));
    if (y1) put_columns(e, y1, _mm256_extracti128_si256(bytes, 1));
}
#endif
