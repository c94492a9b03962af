/* Sixteen rows of weights in blocks of 32 at once, for AVX-512: they are the lanes of vectors.
 *
 * A block's sum over k stays within its lane, so what scales it is a vector of the rows' own scales
 * times one number of x, and nothing is permuted: of m rows of x each takes eight products, and
 * four steps for both scales.  Sixteen rows' bytes are transposed once for all rows of x. */
#ifndef FACULA_CPU_BLOCK_DOTS_ROWS_H
#define FACULA_CPU_BLOCK_DOTS_ROWS_H

enum { ROWS = 16 };

/* More sums of u x in 32 bits. */
INLINE __m512i more_products(const enum type t, const bool vnni, __m512i sum, __m512i u,
                             __m512i x) {
    if (!vnni) return _mm512_add_epi32(sum, products(t, vnni, u, x));
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u), "v"(x));
    return sum;
}

INLINE __m512i four_rows(const char *w, int64_t step) {
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)w));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(w + 4 * step)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(w + 8 * step)), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(w + 12 * step)), 3);
}

/* Of sixteen rows 16 bytes each: to[q] has the bytes 4 q .. 4 q + 3 of every row. */
INLINE void turn_rows(const char *w, int64_t step, __m512i *to) {
    const __m512i a = four_rows(w, step), b = four_rows(w + step, step);
    const __m512i c = four_rows(w + 2 * step, step), d = four_rows(w + 3 * step, step);
    const __m512i ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
    const __m512i ab2 = _mm512_unpackhi_epi32(a, b), cd2 = _mm512_unpackhi_epi32(c, d);
    to[0] = _mm512_unpacklo_epi64(ab, cd);
    to[1] = _mm512_unpackhi_epi64(ab, cd);
    to[2] = _mm512_unpacklo_epi64(ab2, cd2);
    to[3] = _mm512_unpackhi_epi64(ab2, cd2);
}

/* u of one block of each row: to[q] has the numbers 4 q .. 4 q + 3. */
INLINE void block_of_rows(const enum type t, const char *w, int64_t step, __m512i *to) {
    turn_rows(w, step, to);
    if (t == TYPE_Q8_0) {
        turn_rows(w + 16, step, to + 4);
        for (int q = 0; q < 8; q++) to[q] = _mm512_xor_si512(to[q], _mm512_set1_epi8(-128));
        return;
    }
    const __m512i low = _mm512_set1_epi8(15);
    for (int q = 0; q < 4; q++) {
        to[4 + q] = _mm512_and_si512(_mm512_srli_epi16(to[q], 4), low);
        to[q] = _mm512_and_si512(to[q], low);
    }
}

INLINE facts facts_of_rows(const enum type t, const char *w, __m512i where) {
    const __m512i both = _mm512_i32gather_epi32(where, w, 1);
    const __m512 d = wide(both);
    if (t == TYPE_Q4_1) return (facts){ d, wide(_mm512_srli_epi32(both, 16)) };
    return (facts){ d, _mm512_mul_ps(d, _mm512_set1_ps(t == TYPE_Q4_0 ? -8 : -128)) };
}

INLINE __m512i four_numbers(const char *x) {
    int32_t four;
    memcpy(&four, x, sizeof four);
    return _mm512_set1_epi32(four);
}

/* With m rows of x. */
INLINE void tile_rows(const enum type t, const bool vnni, const int m, const fac_block_rows *r,
                      const char *w, const char *x, float *y) {
    const int blocks = (int)(r->K / 32), bytes = bytes_of(t);
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i where = _mm512_mullo_epi32(lanes, _mm512_set1_epi32((int)r->w_row));
    const char *soon = w + ROWS * r->w_row;
    __m512 sum[MANY];
    for (int k = 0; k < m; k++) sum[k] = _mm512_setzero_ps();
    for (int at = 0; at < blocks; at++, w += bytes, soon += ROWS * bytes) {
        __m512i u[8];
        for (int k = 0; k < ROWS * bytes; k += 64) _mm_prefetch(soon + k, _MM_HINT_T0);
        const facts f = facts_of_rows(t, w, where);
        block_of_rows(t, w + head_of(t), r->w_row, u);
        for (int k = 0; k < m; k++) {
            const char *of_x = x + k * r->x_row;
            const float *scales = (const float *)(const void *)(of_x + r->K) + at;
            __m512i p = _mm512_setzero_si512();
            for (int q = 0; q < 8; q++)
                p = more_products(t, vnni, p, u[q], four_numbers(of_x + 32 * at + 4 * q));
            const __m512 scale = _mm512_mul_ps(f.d, _mm512_set1_ps(scales[0]));
            sum[k] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(p), scale, sum[k]);
            sum[k] = _mm512_fmadd_ps(f.m, _mm512_set1_ps(scales[blocks]), sum[k]);
        }
    }
    for (int k = 0; k < m; k++) _mm512_storeu_ps(y + k * r->y_row, sum[k]);
}
#endif
