/* Eight rows of weights in blocks of 32 at once, for AVX2: they are the lanes of vectors.
 *
 * As with AVX-512 (block_dots_rows.h) a block's sum over k stays within its lane, and eight rows'
 * bytes are transposed once for all rows of x.  Products of pairs of 4-bit codes stay in 16 bits
 * over a whole block, 8 x 2 x 15 x 127, so that widening them, which takes as long as making them,
 * is done once a block.  q8_0 and q6_k are taken by magnitudes: pairs of q8_0 are widened each,
 * while the 16 numbers of q6_k that share a scale, of 32 at most, stay in 16 bits. */
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

/* Block `at` of 32 of eight rows, with m rows of x. */
INLINE void add_block(const enum type t, const int64_t m, const fac_block_rows *r, const facts *f,
                      const __m256i *u, const char *x, int64_t at, __m256 *sum) {
    const int64_t blocks = r->K / 32;
    const float *scales = (const float *)(const void *)(x + r->K) + at;
    x += 32 * at;
    for (int64_t k = 0; k < m; k++, x += r->x_row) {
        const __m256 p = _mm256_cvtepi32_ps(block_sums(t, u, x));
        __m256 to = _mm256_fmadd_ps(p, _mm256_mul_ps(f->d, _mm256_set1_ps(scales[0])), sum[k]);
        if (t != TYPE_Q8_0) to = _mm256_fmadd_ps(f->m, _mm256_set1_ps(scales[blocks]), to);
        sum[k] = to;
        scales = (const float *)(const void *)((const char *)scales + r->x_row);
    }
}

/* ---- q4_k ---- */

/* to[j] has number j of each row. */
INLINE void turn_numbers(const __m256 *from, __m256 *to) {
    __m256 a[8], b[8];
    UNROLL for (int k = 0; k < 4; k++) {
        a[2 * k] = _mm256_unpacklo_ps(from[2 * k], from[2 * k + 1]);
        a[2 * k + 1] = _mm256_unpackhi_ps(from[2 * k], from[2 * k + 1]);
    }
    UNROLL for (int k = 0; k < 2; k++) UNROLL for (int i = 0; i < 2; i++) {
        b[4 * k + 2 * i] = _mm256_shuffle_ps(a[4 * k + i], a[4 * k + i + 2], 0x44);
        b[4 * k + 2 * i + 1] = _mm256_shuffle_ps(a[4 * k + i], a[4 * k + i + 2], 0xee);
    }
    UNROLL for (int k = 0; k < 4; k++) {
        to[k] = _mm256_permute2f128_ps(b[k], b[k + 4], 0x20);
        to[k + 4] = _mm256_permute2f128_ps(b[k], b[k + 4], 0x31);
    }
}

INLINE __m256 eight_bytes(uint64_t v) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)v)));
}

/* Of the eight parts of a block of each row. */
INLINE void facts_of_parts(const char *w, int64_t step, facts *to) {
    __m256 d[8], m[8], all_d[8], all_m[8];
    for (int k = 0; k < ROWS; k++, w += step) {
        const __m128 both = _mm_cvtph_ps(_mm_cvtsi32_si128(four_at(w)));
        uint64_t scale, least;
        unpack_q4_k(w, &scale, &least);
        const __m256 below = _mm256_sub_ps(none(), eight_bytes(least));
        d[k] = _mm256_mul_ps(_mm256_broadcastss_ps(both), eight_bytes(scale));
        m[k] = _mm256_mul_ps(_mm256_broadcastss_ps(_mm_movehdup_ps(both)), below);
    }
    turn_numbers(d, all_d);
    turn_numbers(m, all_m);
    for (int k = 0; k < 8; k++) to[k] = (facts){ all_d[k], all_m[k] };
}

/* A part has the low or the high halves of 32 bytes. */
INLINE void block_of_q4_k(const int64_t m, const fac_block_rows *r, const char *w, const char *x,
                          int64_t at, __m256 *sum) {
    const __m256i low = _mm256_set1_epi8(15);
    facts f[8];
    facts_of_parts(w, r->w_row, f);
    for (int p = 0; p < 8; p += 2) {
        __m256i both[8], u[8];
        turn_rows(w + 16 + 16 * p, r->w_row, both);
        turn_rows(w + 32 + 16 * p, r->w_row, both + 4);
        UNROLL for (int q = 0; q < 8; q++) u[q] = _mm256_and_si256(both[q], low);
        add_block(TYPE_Q4_K, m, r, &f[p], u, x, at + p, sum);
        UNROLL for (int q = 0; q < 8; q++) u[q] =
            _mm256_and_si256(_mm256_srli_epi16(both[q], 4), low);
        add_block(TYPE_Q4_K, m, r, &f[p + 1], u, x, at + p + 1, sum);
    }
}

/* ---- q6_k ---- */

/* Of the sixteen parts of a block of each row, of 16 numbers. */
INLINE void scales_of_parts(const char *w, int64_t step, __m256 *to) {
    __m256 first[8], second[8];
    for (int k = 0; k < ROWS; k++, w += step) {
        const __m128i s = _mm_loadu_si128((const __m128i *)(const void *)(w + 192));
        const __m256 d = _mm256_set1_ps(fac_f16_to_f32(half_at(w + 208)));
        first[k] = _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(s)));
        second[k] =
            _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(s, 8))));
    }
    turn_numbers(first, to);
    turn_numbers(second, to + 8);
}

/* Two parts with m rows of x: a number is at most 32, so that sums of 16 stay in 16 bits. */
INLINE void add_parts(const int64_t m, const fac_block_rows *r, const __m256 *d, const __m256i *w,
                      const char *x, int64_t at, __m256 *sum) {
    const __m256i ones = _mm256_set1_epi16(1);
    const float *scale = (const float *)(const void *)(x + r->K) + at;
    x += 32 * at;
    for (int64_t k = 0; k < m; k++, x += r->x_row) {
        const __m256 dx = _mm256_set1_ps(*scale);
        UNROLL for (int half = 0; half < 2; half++) {
            __m256i p = _mm256_setzero_si256();
            UNROLL for (int q = 4 * half; q < 4 * half + 4; q++) {
                const __m256i four = _mm256_sign_epi8(_mm256_set1_epi32(four_at(x + 4 * q)), w[q]);
                p = _mm256_add_epi16(p, _mm256_maddubs_epi16(_mm256_abs_epi8(w[q]), four));
            }
            const __m256 exact = _mm256_cvtepi32_ps(_mm256_madd_epi16(p, ones));
            sum[k] = _mm256_fmadd_ps(exact, _mm256_mul_ps(d[half], dx), sum[k]);
        }
        scale = (const float *)(const void *)((const char *)scale + r->x_row);
    }
}

/* 32 bytes of each row. */
INLINE void turn_32(const char *w, int64_t step, __m256i *to) {
    turn_rows(w, step, to);
    turn_rows(w + 16, step, to + 4);
}

/* 32 numbers have halves of 32 bytes, and pairs of bits of 32 others. */
INLINE void block_of_q6_k(const int64_t m, const fac_block_rows *r, const char *w, const char *x,
                          int64_t at, __m256 *sum) {
    const __m256i four = _mm256_set1_epi8(15), two = _mm256_set1_epi8(48);
    __m256 d[16];
    scales_of_parts(w, r->w_row, d);
    for (int n = 0; n < 2; n++) {
        __m256i low[2][8], high[8], u[8];
        turn_32(w + 64 * n, r->w_row, low[0]);
        turn_32(w + 64 * n + 32, r->w_row, low[1]);
        turn_32(w + 128 + 32 * n, r->w_row, high);
        UNROLL for (int t = 0; t < 4; t++) {
            UNROLL for (int q = 0; q < 8; q++) {
                const __m256i a = _mm256_srli_epi16(low[t & 1][q], 4 * (t / 2));
                const __m256i b = t < 2 ? _mm256_slli_epi16(high[q], 4 - 2 * t)
                                        : _mm256_srli_epi16(high[q], 2 * t - 4);
                const __m256i all =
                    _mm256_or_si256(_mm256_and_si256(a, four), _mm256_and_si256(b, two));
                u[q] = _mm256_sub_epi8(all, _mm256_set1_epi8(32));
            }
            add_parts(m, r, d + 8 * n + 2 * t, u, x, at + 4 * n + t, sum);
        }
    }
}

/* ---- all ---- */

INLINE void block_of_32(const enum type t, const int64_t m, const fac_block_rows *r, const char *w,
                        const char *x, int64_t at, __m256 *sum) {
    __m256i u[8];
    const facts f = facts_of_rows(t, w, r->w_row);
    block_of_rows(t, w + head_of(t), r->w_row, u);
    add_block(t, m, r, &f, u, x, at, sum);
}

/* With m rows of x. */
INLINE void tile_rows(const enum type t, const int64_t m, const fac_block_rows *r, const char *w,
                      const char *x, float *y) {
    const int bytes = bytes_of(t), parts = t == TYPE_Q4_K || t == TYPE_Q6_K ? 8 : 1;
    const char *soon = w + ROWS * r->w_row;
    __m256 sum[MANY];
    for (int64_t k = 0; k < m; k++) sum[k] = _mm256_setzero_ps();
    for (int64_t at = 0; at < r->K / 32; at += parts, w += bytes, soon += ROWS * bytes) {
        for (int k = 0; k < ROWS * bytes; k += 64) _mm_prefetch(soon + k, _MM_HINT_T0);
        if (t == TYPE_Q4_K)
            block_of_q4_k(m, r, w, x, at, sum);
        else if (t == TYPE_Q6_K)
            block_of_q6_k(m, r, w, x, at, sum);
        else
            block_of_32(t, m, r, w, x, at, sum);
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
