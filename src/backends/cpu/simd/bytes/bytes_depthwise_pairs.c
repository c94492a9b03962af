/* Rows of depthwise convolutions of bytes, with AVX2: see backends/cpu/bytes/bytes.h.
 *
 * Two rows of a window lie side by side as numbers of 16 bits, so that one instruction multiplies
 * and adds both for each channel.  Of windows of three columns next to each other, a column is
 * brought there once and added to the three outputs that see it.
 *
 * Sixteen channels at a time, in two vectors: 0 .. 3 with 8 .. 11, and 4 .. 7 with 12 .. 15, which
 * packing brings in order. */
#include "backends/cpu/bytes/bytes.h"
#include "backends/cpu/simd/vector.h"

#if VL == 8 && defined(__AVX2__)
enum { CHANNELS = 16, PAIRS = FAC_BYTE_ROWS / 2, COLUMNS = 3 };

/* What belongs to these channels. */
typedef struct group {
    const fac_byte_depthwise *t;
    int c;
    __m128i flip;
    __m256i bias[2], shift;
    __m128i unflip;
    __m256 factor[2], hi;
} group;

/* Vector k of the two, out of sixteen numbers. */
INLINE __m256i half_of(const void *from, int k) {
    const __m128i *p = from;
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(p + k)),
                                   _mm_loadu_si128(p + 2 + k), 1);
}

INLINE group group_of(const fac_byte_depthwise *t, int c) {
    const bool sign = t->lo + (float)t->y_zero < 0;
    group g = { .t = t,
                .c = c,
                .flip = _mm_set1_epi8((char)t->flip),
                .shift = _mm256_set1_epi16((short)(t->y_zero - (sign ? 0 : 128))),
                .unflip = _mm_set1_epi8(sign ? 0 : -128),
                .hi = _mm256_set1_ps(t->hi) };
    UNROLL
    for (int k = 0; k < 2; k++) {
        g.bias[k] = half_of(t->bias + c, k);
        g.factor[k] = _mm256_castsi256_ps(half_of(t->factor + c, k));
    }
    return g;
}

/* Weights of rows r and r + 1 of column s; those of a row that is not there are 0. */
INLINE __m256i pair_of(const group *g, int r, int s, int k) {
    const fac_byte_depthwise *t = g->t;
    const int32_t *w = t->taps + g->c + (int64_t)(r * t->S + s) * t->tap;
    const __m256i first = half_of(w, k);
    if (r + 1 >= t->R) return _mm256_and_si256(first, _mm256_set1_epi32(0xffff));
    return _mm256_blend_epi16(first, _mm256_slli_epi32(half_of(w + t->S * t->tap, k), 16), 0xaa);
}

INLINE __m256i bytes_at(const group *g, int r, int64_t column) {
    const fac_byte_depthwise *t = g->t;
    const bool inside = t->row[r] && column >= 0 && column < t->columns;
    const uint8_t *from = (inside ? t->row[r] + column * t->x_pixel : t->zero) + g->c;
    return _mm256_cvtepu8_epi16(
        _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)from), g->flip));
}

/* Rows r and, where `both`, r + 1 of a column. */
INLINE void rows_of(const group *g, int r, const bool both, int64_t column, __m256i *v) {
    const __m256i a = bytes_at(g, r, column);
    const __m256i b = both ? bytes_at(g, r + 1, column) : _mm256_setzero_si256();
    v[0] = _mm256_unpacklo_epi16(a, b);
    v[1] = _mm256_unpackhi_epi16(a, b);
}

INLINE __m256i with(__m256i acc, __m256i x, __m256i w) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(x, w));
}

/* From above numbers are limited here, from below by packing. */
INLINE __m256i ended(const group *g, __m256i acc, int k) {
    const __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(acc), g->factor[k]);
    return _mm256_cvtps_epi32(_mm256_min_ps(v, g->hi));
}

INLINE void put(const group *g, const __m256i *acc, int64_t pixel) {
    const __m256i words =
        _mm256_adds_epi16(_mm256_packs_epi32(ended(g, acc[0], 0), ended(g, acc[1], 1)), g->shift);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    uint8_t *to = (uint8_t *)g->t->y + pixel * g->t->y_pixel + g->c;
    _mm_storeu_si128((__m128i *)(void *)to, _mm_xor_si128(bytes, g->unflip));
}

/* Windows of three rows and columns that move by one. */
static void sliding(const group *g) {
    const fac_byte_depthwise *t = g->t;
    __m256i a[2], b[2], c[2], v[4], w[COLUMNS][4];
    UNROLL
    for (int k = 0; k < 2; k++) {
        b[k] = c[k] = g->bias[k];
        UNROLL
        for (int s = 0; s < COLUMNS; s++) {
            w[s][k] = pair_of(g, 0, s, k);
            w[s][2 + k] = pair_of(g, 2, s, k);
        }
    }
    for (int64_t p = 0; p < t->pixels + 2; p++) {
        rows_of(g, 0, true, p - t->pad, v);
        rows_of(g, 2, false, p - t->pad, v + 2);
        UNROLL
        for (int k = 0; k < 2; k++) {
            a[k] = with(with(g->bias[k], v[k], w[0][k]), v[2 + k], w[0][2 + k]);
            b[k] = with(with(b[k], v[k], w[1][k]), v[2 + k], w[1][2 + k]);
            c[k] = with(with(c[k], v[k], w[2][k]), v[2 + k], w[2][2 + k]);
        }
        if (p > 1) put(g, c, p - 2);
        UNROLL
        for (int k = 0; k < 2; k++) {
            c[k] = b[k];
            b[k] = a[k];
        }
    }
}

/* Windows of up to `most` rows, one after the other. */
INLINE void windows(const group *g, const __m256i *w) {
    const fac_byte_depthwise *t = g->t;
    for (int64_t p = 0; p < t->pixels; p++) {
        __m256i a[2] = { g->bias[0], g->bias[1] }, v[2];
        const __m256i *of = w;
        for (int s = 0; s < t->S; s++) {
            const int64_t column = p * t->stride + s * t->dilation - t->pad;
            for (int r = 0; r < t->R; r += 2, of += 2) {
                if (r + 1 < t->R)
                    rows_of(g, r, true, column, v);
                else
                    rows_of(g, r, false, column, v);
                a[0] = with(a[0], v[0], of[0]);
                a[1] = with(a[1], v[1], of[1]);
            }
        }
        put(g, a, p);
    }
}

static void sixteen(const fac_byte_depthwise *t, int c) {
    const group g = group_of(t, c);
    __m256i w[FAC_BYTE_ROWS * PAIRS * 2];
    if (t->R == COLUMNS && t->S == COLUMNS && t->stride == 1 && t->dilation == 1) {
        sliding(&g);
        return;
    }
    for (int s = 0, n = 0; s < t->S; s++)
        for (int r = 0; r < t->R; r += 2)
            for (int k = 0; k < 2; k++) w[n++] = pair_of(&g, r, s, k);
    windows(&g, w);
}

/* The last sixteen begin earlier where fewer are left: there are at least as many. */
extern fac_byte_depthwise_kernel FAC_SIMD(fac_byte_depthwise_pairs);
void FAC_SIMD(fac_byte_depthwise_pairs)(const fac_byte_depthwise *t) {
    for (int c = 0; c < t->channels; c += CHANNELS)
        sixteen(t, c + CHANNELS <= t->channels ? c : t->channels - CHANNELS);
}
#endif
