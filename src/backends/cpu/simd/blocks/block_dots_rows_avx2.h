/* Eight rows of weights in blocks of 32 at once, for AVX2: they are the lanes of vectors.
 *
 * As with AVX-512 (block_dots_rows.h) a block's sum over k stays within its lane, and eight rows'
 * bytes are transposed once for all rows of x.  Products of pairs of 4-bit codes stay in 16 bits
 * over a whole block, 8 x 2 x 15 x 127, so that widening them, which takes as long as making them,
 * is done once a block.  q8_0 is taken by magnitudes, whose pairs are widened each. */
#ifndef FACULA_CPU_BLOCK_DOTS_ROWS_AVX2_H
#define FACULA_CPU_BLOCK_DOTS_ROWS_AVX2_H

enum { ROWS = 8, MANY = 16 };

INLINE __m256i two_rows(const char *w, int64_t step) {
    const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)w);
    const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(w + 4 * step));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* Of eight rows 16 bytes each: to[q] has the bytes 4 q .. 4 q + 3 of every row. */
INLINE void turn_rows(const char *w, int64_t step, __m256i *to) {
    const __m256i a = two_rows(w, step), b = two_rows(w + step, step);
    const __m256i c = two_rows(w + 2 * step, step), d = two_rows(w + 3 * step, step);
    const __m256i ab = _mm256_unpacklo_epi32(a, b), cd = _mm256_unpacklo_epi32(c, d);
    const __m256i ab2 = _mm256_unpackhi_epi32(a, b), cd2 = _mm256_unpackhi_epi32(c, d);
    to[0] = _mm256_unpacklo_epi64(ab, cd);
    to[1] = _mm256_unpackhi_epi64(ab, cd);
    to[2] = _mm256_unpacklo_epi64(ab2, cd2);
    to[3] = _mm256_unpackhi_epi64(ab2, cd2);
}

/* One block of each row: to[q] has the numbers 4 q .. 4 q + 3. */
INLINE void block_of_rows(const enum type t, const char *w, int64_t step, __m256i *to) {
    turn_rows(w, step, to);
    if (t == TYPE_Q8_0) {
        turn_rows(w + 16, step, to + 4);
        return;
    }
    const __m256i low = _mm256_set1_epi8(15);
    for (int q = 0; q < 4; q++) {
        to[4 + q] = _mm256_and_si256(_mm256_srli_epi16(to[q], 4), low);
        to[q] = _mm256_and_si256(to[q], low);
    }
}

INLINE int32_t four_at(const char *p) {
    int32_t four;
    memcpy(&four, p, sizeof four);
    return four;
}

typedef struct facts {
    __m256 d, m;
} facts; /* of a block of each row */

INLINE facts facts_of_rows(const enum type t, const char *w, int64_t step) {
    const char *far = w + 4 * step;
    const __m256i both = _mm256_setr_epi32(four_at(w), four_at(w + step), four_at(w + 2 * step),
                                           four_at(w + 3 * step), four_at(far), four_at(far + step),
                                           four_at(far + 2 * step), four_at(far + 3 * step));
    const __m256i first = _mm256_and_si256(both, _mm256_set1_epi32(0xffff));
    const __m256i halves = _mm256_packus_epi32(first, _mm256_srli_epi32(both, 16));
    const __m256i apart = _mm256_permute4x64_epi64(halves, 0xd8);
    const __m256 d = _mm256_cvtph_ps(_mm256_castsi256_si128(apart));
    if (t == TYPE_Q4_1) return (facts){ d, _mm256_cvtph_ps(_mm256_extracti128_si256(apart, 1)) };
    return (facts){ d, _mm256_mul_ps(d, _mm256_set1_ps(-8)) };
}

/* Sums of the products of a block's rows with 32 numbers of x. */
INLINE __m256i block_sums(const enum type t, const __m256i *w, const char *x) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum = _mm256_setzero_si256();
    UNROLL for (int q = 0; q < 8; q++) {
        const __m256i four = _mm256_set1_epi32(four_at(x + 4 * q));
        if (t == TYPE_Q8_0)
            sum = _mm256_add_epi32(sum, products(t, w[q], four));
        else
            sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(w[q], four));
    }
    return t == TYPE_Q8_0 ? sum : _mm256_madd_epi16(sum, ones);
}

/* With m rows of x. */
INLINE void tile_rows(const enum type t, const int64_t m, const fac_block_rows *r, const char *w,
                      const char *x, float *y) {
    const int blocks = (int)(r->K / 32), bytes = bytes_of(t);
    const char *soon = w + ROWS * r->w_row;
    __m256 sum[MANY];
    for (int64_t k = 0; k < m; k++) sum[k] = _mm256_setzero_ps();
    for (int at = 0; at < blocks; at++, w += bytes, soon += ROWS * bytes, x += 32) {
        __m256i u[8];
        for (int k = 0; k < ROWS * bytes; k += 64) _mm_prefetch(soon + k, _MM_HINT_T0);
        const facts f = facts_of_rows(t, w, r->w_row);
        block_of_rows(t, w + head_of(t), r->w_row, u);
        const char *of_x = x;
        const float *scales = (const float *)(const void *)(x - 32 * at + r->K) + at;
        for (int64_t k = 0; k < m; k++, of_x += r->x_row) {
            const __m256 p = _mm256_cvtepi32_ps(block_sums(t, u, of_x));
            __m256 to = _mm256_fmadd_ps(p, _mm256_mul_ps(f.d, _mm256_set1_ps(scales[0])), sum[k]);
            if (t != TYPE_Q8_0) to = _mm256_fmadd_ps(f.m, _mm256_set1_ps(scales[blocks]), to);
            sum[k] = to;
            scales = (const float *)(const void *)((const char *)scales + r->x_row);
        }
    }
    for (int64_t k = 0; k < m; k++) _mm256_storeu_ps(y + k * r->y_row, sum[k]);
}

/* Whole eights of rows with all rows of x; those that are left begin there. */
INLINE int64_t eights(const enum type t, const fac_block_rows *r) {
    const int64_t end = r->rows / ROWS * ROWS;
    for (int64_t j = 0; j < r->m; j += MANY) {
        const int64_t m = r->m - j < MANY ? r->m - j : MANY;
        for (int64_t i = 0; i < end; i += ROWS)
            tile_rows(t, m, r, r->w + i * r->w_row, r->x + j * r->x_row, r->y + j * r->y_row + i);
    }
    return end;
}
#endif
