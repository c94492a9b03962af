/* Rows of weights in blocks of 4 bits as a panel, as products with rounded rows of x want them: see
 * product/nbits.h.
 *
 * Sixteen bytes of a row, their low halves and their high ones, are four words of eight codes, of
 * one block of 32 (q4_0, q4_1) or of two (q4_k); four rows are transposed together. */
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/product/block_dots.h"
#include "tensor/half.h"

#if defined(__AVX2__)
enum { ROWS = 2 * VL };
enum type { TYPE_Q4_0, TYPE_Q4_1, TYPE_Q4_K };

INLINE int bytes_of(const enum type t) {
    static const int bytes[] = { 18, 20, 144 };
    return bytes[t];
}

/* ---- codes ---- */

INLINE __m128i four_words(const char *p) {
    const __m128i low = _mm_set1_epi8(15), v = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128 a = _mm_castsi128_ps(_mm_and_si128(v, low));
    const __m128 b = _mm_castsi128_ps(_mm_and_si128(_mm_srli_epi16(v, 4), low));
    const __m128i even = _mm_castps_si128(_mm_shuffle_ps(a, b, 0x88));
    const __m128i odd = _mm_castps_si128(_mm_shuffle_ps(a, b, 0xdd));
    return _mm_or_si128(even, _mm_slli_epi16(odd, 4));
}

INLINE void put(uint32_t *to, __m128i v) { _mm_storeu_si128((__m128i *)(void *)to, v); }

/* Sixteen bytes of each of four rows: words 0 and 1 go to `first`, the others to `second`. */
INLINE void transpose_rows(const char *const *w, int64_t at, uint32_t *first, uint32_t *second) {
    const __m128i a = four_words(w[0] + at), b = four_words(w[1] + at);
    const __m128i c = four_words(w[2] + at), d = four_words(w[3] + at);
    const __m128i ab = _mm_unpacklo_epi32(a, b), cd = _mm_unpacklo_epi32(c, d);
    const __m128i ab2 = _mm_unpackhi_epi32(a, b), cd2 = _mm_unpackhi_epi32(c, d);
    put(first, _mm_unpacklo_epi64(ab, cd));
    put(first + ROWS, _mm_unpackhi_epi64(ab, cd));
    put(second, _mm_unpacklo_epi64(ab2, cd2));
    put(second + ROWS, _mm_unpackhi_epi64(ab2, cd2));
}

INLINE void codes_of(const enum type t, const char *const *w, int64_t K, uint32_t *to) {
    const int head = t == TYPE_Q4_1 ? 4 : 2;
    for (int64_t k = 0; k < K / 32; k++) {
        if (t == TYPE_Q4_K) { /* bytes of blocks 2 j and 2 j + 1 */
            const int64_t j = k / 2, half = k % 2;
            uint32_t *block = to + (8 * j + 2 * half) * ROWS;
            transpose_rows(w, k / 8 * bytes_of(t) + 16 + k % 8 * 16, block, block + 4 * ROWS);
        } else {
            transpose_rows(w, k * bytes_of(t) + head, to + 4 * k * ROWS, to + (4 * k + 2) * ROWS);
        }
    }
}

/* ---- scales ---- */

/* A half of each row. */
INLINE void halves_of(const char *const *w, int rows, int64_t at, float *to) {
    uint16_t some[ROWS] = { 0 };
    for (int r = 0; r < rows; r++) memcpy(some + r, w[r] + at, sizeof *some);
    for (int r = 0; r < ROWS; r++) to[r] = fac_f16_to_f32(some[r]);
}

/* Eight scales and eight minima of 6 bits from twelve bytes. */
INLINE void unpack(const char *p, uint8_t *scales, uint8_t *minima) {
    uint32_t a, b, c;
    memcpy(&a, p, 4);
    memcpy(&b, p + 4, 4);
    memcpy(&c, p + 8, 4);
    const uint32_t words[4] = { a & 0x3f3f3f3f, (c & 0x0f0f0f0f) | (a >> 6 & 0x03030303) << 4,
                                b & 0x3f3f3f3f,
                                (c >> 4 & 0x0f0f0f0f) | (b >> 6 & 0x03030303) << 4 };
    memcpy(scales, words, 8);
    memcpy(minima, words + 2, 8);
}

INLINE void scales_of_large(const char *const *w, int rows, int64_t at, float *scale,
                            float *offset) {
    uint8_t scales[ROWS][8] = { { 0 } }, minima[ROWS][8] = { { 0 } };
    float d[ROWS], m[ROWS];
    halves_of(w, rows, at, d);
    halves_of(w, rows, at + 2, m);
    for (int r = 0; r < rows; r++) unpack(w[r] + at + 4, scales[r], minima[r]);
    for (int i = 0; i < 8; i++)
        for (int r = 0; r < ROWS; r++) {
            scale[i * ROWS + r] = d[r] * (float)scales[r][i];
            offset[i * ROWS + r] = -m[r] * (float)minima[r][i];
        }
}

INLINE void scales_of(const enum type t, const char *const *w, int rows, int64_t K, float *scale,
                      float *offset) {
    const int block = t == TYPE_Q4_K ? 256 : 32;
    for (int64_t b = 0; b < K / block; b++) {
        const int64_t at = b * bytes_of(t);
        if (t == TYPE_Q4_K) {
            scales_of_large(w, rows, at, scale + 8 * b * ROWS, offset + 8 * b * ROWS);
            continue;
        }
        halves_of(w, rows, at, scale + b * ROWS);
        if (t == TYPE_Q4_1) halves_of(w, rows, at + 2, offset + b * ROWS);
    }
}

/* ---- all ---- */

/* Columns without a row have scales 0, and the codes of the last row. */
INLINE void panel(const enum type t, const char *w, int64_t w_row, int rows, int64_t K,
                  const fac_block_panel *to) {
    const char *of[ROWS];
    for (int r = 0; r < ROWS; r++) of[r] = w + (r < rows ? r : rows - 1) * w_row;
    for (int r = 0; r < ROWS; r += 4) codes_of(t, of + r, K, to->codes + r);
    scales_of(t, of, rows, K, to->scale, to->offset);
}

#define PANEL(name, type)                                                                          \
    static void name(const char *w, int64_t w_row, int rows, int64_t K,                            \
                     const fac_block_panel *to) {                                                  \
        panel(type, w, w_row, rows, K, to);                                                        \
    }
PANEL(panel_q4_0, TYPE_Q4_0)
PANEL(panel_q4_1, TYPE_Q4_1)
PANEL(panel_q4_k, TYPE_Q4_K)

fac_block_panel_maker *const FAC_SIMD(fac_block_panels)[FAC_DTYPES] = {
    [FAC_Q4_0] = panel_q4_0,
    [FAC_Q4_1] = panel_q4_1,
    [FAC_Q4_K] = panel_q4_k,
};
#else
fac_block_panel_maker *const FAC_SIMD(fac_block_panels)[FAC_DTYPES] = { NULL };
#endif
