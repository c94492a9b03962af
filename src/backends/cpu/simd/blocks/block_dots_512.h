/* Products of weights in blocks with rows of 8-bit numbers, for AVX-512: block_dots.c says what is
 * computed.
 *
 * Sixteen scales at a time: one gather brings d and m of sixteen blocks, and what belongs to x
 * multiplies them at once. Then vectors of 64 products are added in 32 bits (vpdpbusd, where the
 * machine has it), and a permutation brings each of its blocks its scale.  With one row of x four
 * rows of w share its loads; else up to eight rows of x share those of w. */
#ifndef FACULA_CPU_BLOCK_DOTS_512_H
#define FACULA_CPU_BLOCK_DOTS_512_H
#include <immintrin.h>

enum { TOGETHER = 4, MANY = 8, GROUP = 16, AHEAD = 2048 };

/* Sums of u x in 32 bits. */
INLINE __m512i products(const enum type t, const bool vnni, __m512i u, __m512i x) {
    if (vnni) {
        __m512i sum = _mm512_setzero_si512();
        __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u), "v"(x));
        return sum;
    }
    const __m512i ones = _mm512_set1_epi16(1);
    if (t != TYPE_Q8_0) return _mm512_madd_epi16(_mm512_maddubs_epi16(u, x), ones);
    const __m512i even = _mm512_and_si512(u, _mm512_set1_epi16(255));
    const __m512i odd = _mm512_srli_epi16(u, 8);
    const __m512i first = _mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8);
    const __m512i second = _mm512_srai_epi16(x, 8);
    return _mm512_add_epi32(_mm512_madd_epi16(even, first), _mm512_madd_epi16(odd, second));
}

/* To the nearest, in units of the largest / 127. */
static void round_x(const float *x, int64_t K, char *to) {
    for (int64_t b = 0; b < K / 32; b++, x += 32) {
        const __m512 low = _mm512_loadu_ps(x), high = _mm512_loadu_ps(x + 16);
        const bool strange = _mm512_cmp_ps_mask(low, high, _CMP_UNORD_Q) != 0;
        const float largest =
            _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high)));
        const float most = strange ? NAN : largest, by = factor_of(most);
        const __mmask16 some = by > 0 ? 0xffff : 0;
        const __m512 factor = _mm512_set1_ps(by);
        const __m512i p = _mm512_maskz_cvtps_epi32(some, _mm512_mul_ps(low, factor));
        const __m512i q = _mm512_maskz_cvtps_epi32(some, _mm512_mul_ps(high, factor));
        _mm_storeu_si128((__m128i *)(void *)(to + 32 * b), _mm512_cvtepi32_epi8(p));
        _mm_storeu_si128((__m128i *)(void *)(to + 32 * b + 16), _mm512_cvtepi32_epi8(q));
        put_facts(to, K, b, most, _mm512_reduce_add_epi32(_mm512_add_epi32(p, q)));
    }
}

INLINE __m512i join(__m256i low, __m256i high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

INLINE __m512i nibbles(__m256i low, __m256i high) {
    return _mm512_and_si512(join(low, high), _mm512_set1_epi8(15));
}

/* The low nibbles of 16 bytes, then the high ones. */
INLINE __m256i halves(const char *p) {
    const __m128i x = _mm_loadu_si128((const __m128i *)p);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(x), _mm_srli_epi16(x, 4), 1);
}

INLINE __m256i load32(const char *p) { return _mm256_loadu_si256((const __m256i *)p); }

/* Blocks at and at + 1 of a row as one vector of u; `alone`: the second one is not there. */
INLINE __m512i pair_at(const enum type t, const char *w, int at, bool alone) {
    if (t == TYPE_Q4_K) {
        const __m256i x = load32(w + at / 8 * bytes_of(t) + 16 + at % 8 * 16);
        return nibbles(x, _mm256_srli_epi16(x, 4));
    }
    const char *a = w + at * bytes_of(t) + head_of(t);
    const char *b = alone ? a : a + bytes_of(t);
    if (t == TYPE_Q8_0) return _mm512_xor_si512(join(load32(a), load32(b)), _mm512_set1_epi8(-128));
    return nibbles(halves(a), halves(b));
}

/* ---- scales ---- */

typedef struct facts {
    __m512 d, m;
} facts; /* of sixteen blocks */

INLINE __m512 wide(__m512i low_halves) {
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(low_halves));
}

/* Of two blocks of 256, or of one: their eight parts each. */
INLINE facts facts_q4_k(const char *w, int n) {
    const char *second = n > 8 ? w + bytes_of(TYPE_Q4_K) : w;
    uint64_t s[2], m[2];
    unpack_q4_k(w, &s[0], &m[0]);
    unpack_q4_k(second, &s[1], &m[1]);
    const __m128i both =
        _mm_set_epi16(0, 0, 0, 0, (short)half_at(second + 2), (short)half_at(w + 2),
                      (short)half_at(second), (short)half_at(w));
    const __m512 four = _mm512_cvtph_ps(_mm256_castsi128_si256(both));
    const __m512i first = _mm512_set_epi32(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m512i last = _mm512_add_epi32(first, _mm512_set1_epi32(2));
    const __m512 scale =
        _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_set_epi64x((int64_t)s[1], (int64_t)s[0])));
    const __m512 least =
        _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_set_epi64x((int64_t)m[1], (int64_t)m[0])));
    const __m512 below = _mm512_mul_ps(_mm512_permutexvar_ps(last, four), least);
    return (facts){ _mm512_mul_ps(_mm512_permutexvar_ps(first, four), scale),
                    _mm512_sub_ps(_mm512_setzero_ps(), below) };
}

/* Of n blocks, those from `at` on; the rest are zeros or belong to no x. */
INLINE facts facts_at(const enum type t, const char *w, int at, int n) {
    if (t == TYPE_Q4_K) return facts_q4_k(w + at / 8 * bytes_of(t), n);
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i where = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(bytes_of(t)));
    const __mmask16 some = (__mmask16)((1u << n) - 1);
    const __m512i both =
        _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), some, where, w + at * bytes_of(t), 1);
    const __m512 d = wide(both);
    if (t == TYPE_Q4_1) return (facts){ d, wide(_mm512_srli_epi32(both, 16)) };
    return (facts){ d, _mm512_mul_ps(d, _mm512_set1_ps(t == TYPE_Q4_0 ? -8 : -128)) };
}

/* ---- rows ---- */

INLINE __m256 half_sum(__m512 x) {
    return _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
}

/* Each of four vectors as the sum of its numbers. */
INLINE __m128 four_sums(const __m512 *x) {
    const __m256 a = _mm256_hadd_ps(half_sum(x[0]), half_sum(x[1]));
    const __m256 b = _mm256_hadd_ps(half_sum(x[2]), half_sum(x[3]));
    const __m256 c = _mm256_hadd_ps(a, b);
    return _mm_add_ps(_mm256_castps256_ps128(c), _mm256_extractf128_ps(c, 1));
}

INLINE void store_sums(const __m512 *sum, const int n, float *y, int64_t step) {
    int k = 0;
    for (; k + 4 <= n; k += 4) {
        const __m128 four = four_sums(sum + k);
        for (int j = 0; j < 4; j++) y[(k + j) * step] = four[j];
    }
    for (; k < n; k++) { /* in the same order, for the same bits */
        const __m512 alone[4] = { sum[k], sum[k], sum[k], sum[k] };
        y[k * step] = four_sums(alone)[0];
    }
}

/* Bytes that are read soon: the gathers of scales would wait for them. */
INLINE void ask_for(const char *p, int bytes) {
    for (int k = 0; k < bytes; k += 64) _mm_prefetch(p + k + AHEAD, _MM_HINT_T0);
}

/* R rows of w with m rows of x, one of which is 1. */
INLINE void tile(const enum type t, const bool vnni, const int R, const int m,
                 const fac_block_rows *r, const char *w, const char *x, float *y) {
    const int blocks = (int)(r->K / 32), all = R * m;
    const __m512i first = _mm512_set_epi32(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
    __m512 sum[MANY], scale[MANY];
    for (int k = 0; k < all; k++) sum[k] = _mm512_setzero_ps();
    for (int at = 0; at < blocks; at += GROUP) {
        const int n = blocks - at < GROUP ? blocks - at : GROUP;
        const __mmask16 some = (__mmask16)((1u << n) - 1);
        for (int k = 0; k < R; k++)
            ask_for(w + (R + k) * r->w_row + at * bytes_of(t), n * bytes_of(t));
        facts f = { _mm512_setzero_ps(), _mm512_setzero_ps() };
        for (int k = 0; k < all; k++) {
            const float *of_x = (const float *)(const void *)(x + k / R * r->x_row + r->K) + at;
            if (R > 1 || !k) f = facts_at(t, w + k % R * r->w_row, at, n);
            scale[k] = _mm512_mul_ps(f.d, _mm512_maskz_loadu_ps(some, of_x));
            sum[k] = _mm512_fmadd_ps(f.m, _mm512_maskz_loadu_ps(some, of_x + blocks), sum[k]);
        }
        for (int p = 0; p < n; p += 2) {
            const bool alone = p + 1 == n;
            const __mmask64 there = alone ? 0xffffffff : ~(__mmask64)0;
            const __m512i lanes = _mm512_add_epi32(first, _mm512_set1_epi32(p));
            __m512i u = _mm512_setzero_si512(), v = u;
            for (int k = 0; k < all; k++) {
                if (R > 1 || !k) u = pair_at(t, w + k % R * r->w_row, at + p, alone);
                if (R == 1 || !k)
                    v = _mm512_maskz_loadu_epi8(there, x + k / R * r->x_row + 32 * (at + p));
                const __m512 part = _mm512_cvtepi32_ps(products(t, vnni, u, v));
                sum[k] = _mm512_fmadd_ps(part, _mm512_permutexvar_ps(lanes, scale[k]), sum[k]);
            }
        }
    }
    store_sums(sum, all, y, R > 1 ? 1 : r->y_row);
}

/* ---- q6_k: sixteen scales of 16 numbers each, which are signed ---- */

/* The numbers 64 v .. 64 v + 63 of a block, plus 32. */
INLINE __m512i six_bits(const char *w, int v) {
    const __m512i low = _mm512_loadu_si512(w + 64 * (v / 2));
    const __m256i high = load32(w + 128 + 32 * (v / 2));
    const __m512i high2 = v % 2 ? join(high, _mm256_srli_epi16(high, 2))
                                : join(_mm256_slli_epi16(high, 4), _mm256_slli_epi16(high, 2));
    const __m512i low4 = v % 2 ? _mm512_srli_epi16(low, 4) : low;
    return _mm512_or_si512(_mm512_and_si512(low4, _mm512_set1_epi8(15)),
                           _mm512_and_si512(high2, _mm512_set1_epi8(0x30)));
}

INLINE void tile_q6_k(const bool vnni, const int R, const int m, const fac_block_rows *r,
                      const char *w, const char *x, float *y) {
    enum { BYTES = 210 };
    const int all = R * m;
    const __m512i twice = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    const __m512i quarters = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
    __m512 sum[MANY], scale[MANY];
    for (int k = 0; k < all; k++) sum[k] = _mm512_setzero_ps();
    for (int64_t at = 0; at < r->K / 256; at++) {
        for (int k = 0; k < all; k++) {
            const char *of_w = w + k % R * r->w_row + at * BYTES + 192;
            const float *of_x = (const float *)(const void *)(x + k / R * r->x_row + r->K) + 8 * at;
            const __m512i s = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)of_w));
            const __m512 d = _mm512_cvtph_ps(_mm256_set1_epi16((short)half_at(of_w + 16)));
            const __m512 dx =
                _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(_mm256_loadu_ps(of_x)));
            scale[k] = _mm512_mul_ps(_mm512_mul_ps(d, _mm512_cvtepi32_ps(s)), dx);
        }
        for (int p = 0; p < 4; p++) {
            const __m512i lanes = _mm512_add_epi32(quarters, _mm512_set1_epi32(4 * p));
            __m512i u = _mm512_setzero_si512(), v = u, shift = u;
            for (int k = 0; k < all; k++) {
                if (R > 1 || !k) u = six_bits(w + k % R * r->w_row + at * BYTES, p);
                if (R == 1 || !k) {
                    v = _mm512_loadu_si512(x + k / R * r->x_row + 256 * at + 64 * p);
                    shift = products(TYPE_Q6_K, vnni, _mm512_set1_epi8(32), v);
                }
                const __m512i part = _mm512_sub_epi32(products(TYPE_Q6_K, vnni, u, v), shift);
                sum[k] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(part),
                                         _mm512_permutexvar_ps(lanes, scale[k]), sum[k]);
            }
        }
    }
    store_sums(sum, all, y, R > 1 ? 1 : r->y_row);
}

#include "backends/cpu/simd/blocks/block_dots_rows.h"

/* ---- all ---- */

INLINE void any_tile(const enum type t, const bool vnni, const int R, const int m,
                     const fac_block_rows *r, const char *w, const char *x, float *y) {
    if (t == TYPE_Q6_K)
        tile_q6_k(vnni, R, m, r, w, x, y);
    else
        tile(t, vnni, R, m, r, w, x, y);
}

/* Whole sixteens of rows; those that are left begin there. */
INLINE int64_t sixteens(const enum type t, const bool vnni, const int m, const fac_block_rows *r,
                        const char *x, float *y) {
    int64_t i = 0;
    if (t == TYPE_Q4_K || t == TYPE_Q6_K || r->w_row > INT32_MAX / ROWS) return 0;
    for (; i + ROWS <= r->rows; i += ROWS) tile_rows(t, vnni, m, r, r->w + i * r->w_row, x, y + i);
    return i;
}

INLINE void one_row(const enum type t, const bool vnni, const fac_block_rows *r, const char *x,
                    float *y) {
    int64_t i = sixteens(t, vnni, 1, r, x, y);
    for (; i + TOGETHER <= r->rows; i += TOGETHER)
        any_tile(t, vnni, TOGETHER, 1, r, r->w + i * r->w_row, x, y + i);
    for (; i < r->rows; i++) any_tile(t, vnni, 1, 1, r, r->w + i * r->w_row, x, y + i);
}

/* m rows of x, which share each row of w. */
INLINE void some_rows(const enum type t, const bool vnni, const int m, const fac_block_rows *r,
                      const char *x, float *y) {
    for (int64_t i = sixteens(t, vnni, m, r, x, y); i < r->rows; i++)
        any_tile(t, vnni, 1, m, r, r->w + i * r->w_row, x, y + i);
}

INLINE void rows(const enum type t, const bool vnni, const fac_block_rows *r) {
    for (int64_t j = 0; j < r->m;) {
        const int64_t left = r->m - j;
        const char *x = r->x + j * r->x_row;
        float *y = r->y + j * r->y_row;
        int m = left < 4 ? (int)left : 4;
        if (left >= MANY) m = MANY;
        if (m == 8) some_rows(t, vnni, 8, r, x, y);
        if (m == 4) some_rows(t, vnni, 4, r, x, y);
        if (m == 3) some_rows(t, vnni, 3, r, x, y);
        if (m == 2) some_rows(t, vnni, 2, r, x, y);
        if (m == 1) one_row(t, vnni, r, x, y);
        j += m;
    }
}
#endif
