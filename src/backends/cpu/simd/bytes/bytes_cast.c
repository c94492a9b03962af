/* Floats to bytes, bytes to floats, and bytes by a table: see backends/cpu/bytes/bytes.h.
 *
 * x / scale is wanted, rounded twice: to a float, then to a whole number.  Divisions are slow, and
 * x times 1 / scale differs in the last places only; so it is taken, and where it lies next to the
 * middle between two whole numbers, a block of numbers is divided. */
#include <math.h>
#include "backends/cpu/bytes/bytes.h"
#include "backends/cpu/simd/vector.h"

enum { BLOCK = 64 };
static const float ROUND = 12582912.0f;       /* added and taken away: to the nearest, |x| < 2^22 */
static const float NEAR = 0.5f - 1.0f / 8192; /* 2^-13: four places of the numbers below 512 */
/* With these, 1 / scale has all its places and products of it do not overflow early. */
static const float LEAST_SCALE = 1e-30f, MOST_SCALE = 1e30f;

INLINE float within(float q, float lo, float hi) {
    q = q > lo ? q : lo;
    return q < hi ? q : hi;
}

#define LOOPS(NAME, T, LEAST, MOST)                                                                \
    /* Whether all were far enough from the middle. */                                             \
    INLINE bool NAME##_products(size_t n, const float *restrict x, float by, int zero,             \
                                T *restrict y) {                                                   \
        const float lo = (float)(LEAST - zero), hi = (float)(MOST - zero);                         \
        int unsure = 0;                                                                            \
        for (size_t k = 0; k < n; k++) {                                                           \
            const float q = x[k] * by, v = within(q, lo, hi), r = (v + ROUND) - ROUND;             \
            unsure |= (fabsf(v - r) > NEAR) | (q != q);                                            \
            y[k] = (T)((int)r + zero);                                                             \
        }                                                                                          \
        return !unsure;                                                                            \
    }                                                                                              \
    static void NAME##_quotients(size_t n, const float *restrict x, float scale, int zero,         \
                                 T *restrict y) {                                                  \
        const float lo = (float)(LEAST - zero), hi = (float)(MOST - zero);                         \
        for (size_t k = 0; k < n; k++) {                                                           \
            const float q = x[k] / scale, v = (within(q, lo, hi) + ROUND) - ROUND;                 \
            y[k] = (T)(q == q ? (int)v + zero : within(0, LEAST, MOST));                           \
        }                                                                                          \
    }                                                                                              \
    INLINE void NAME##_quantize(const fac_byte_scale *s, size_t n, const float *x, T *y) {         \
        const float by = 1 / s->scale;                                                             \
        const bool usual = fabsf(s->scale) >= LEAST_SCALE && fabsf(s->scale) <= MOST_SCALE;        \
        for (size_t k = 0; k < n; k += BLOCK) {                                                    \
            const size_t left = n - k < BLOCK ? n - k : BLOCK;                                     \
            bool sure = usual;                                                                     \
            if (sure && left == BLOCK)                                                             \
                sure = NAME##_products(BLOCK, x + k, by, s->zero, y + k);                          \
            else if (sure)                                                                         \
                sure = NAME##_products(left, x + k, by, s->zero, y + k);                           \
            if (!sure) NAME##_quotients(left, x + k, s->scale, s->zero, y + k);                    \
        }                                                                                          \
    }                                                                                              \
    INLINE void NAME##_dequantize(const fac_byte_scale *s, size_t n, const T *restrict x,          \
                                  float *restrict y) {                                             \
        const float scale = s->scale;                                                              \
        const int zero = s->zero;                                                                  \
        for (size_t k = 0; k < n; k++) y[k] = (float)(x[k] - zero) * scale;                        \
    }
LOOPS(u8, uint8_t, 0, 255)
LOOPS(i8, int8_t, -128, 127)

extern fac_byte_quantize_kernel FAC_SIMD(fac_byte_quantize);
void FAC_SIMD(fac_byte_quantize)(const fac_byte_scale *s, size_t n, const float *x, void *y) {
    if (s->sign)
        i8_quantize(s, n, x, y);
    else
        u8_quantize(s, n, x, y);
}

extern fac_byte_dequantize_kernel FAC_SIMD(fac_byte_dequantize);
void FAC_SIMD(fac_byte_dequantize)(const fac_byte_scale *s, size_t n, const void *x, float *y) {
    if (s->sign)
        i8_dequantize(s, n, x, y);
    else
        u8_dequantize(s, n, x, y);
}

/* ---- by a table ---- */

#if VL == 16
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512vbmi"))) static void permuted(
    const uint8_t *table, size_t n, const uint8_t *x, uint8_t *y) {
    __m512i part[4];
    for (int k = 0; k < 4; k++) part[k] = _mm512_loadu_si512(table + 64 * k);
    for (size_t k = 0; k < n; k += 64) {
        const __mmask64 there = n - k < 64 ? ((__mmask64)1 << (n - k)) - 1 : ~(__mmask64)0;
        const __m512i at = _mm512_maskz_loadu_epi8(there, x + k);
        const __m512i low = _mm512_permutex2var_epi8(part[0], at, part[1]);
        const __m512i high = _mm512_permutex2var_epi8(part[2], at, part[3]);
        const __m512i v = _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high);
        _mm512_mask_storeu_epi8(y + k, there, v);
    }
}
#endif

extern fac_byte_table_kernel FAC_SIMD(fac_byte_table);
void FAC_SIMD(fac_byte_table)(const uint8_t *table, size_t n, const uint8_t *x, uint8_t *y) {
#if VL == 16
    if (__builtin_cpu_supports("avx512vbmi")) {
        permuted(table, n, x, y);
        return;
    }
#endif
    for (size_t k = 0; k < n; k++) y[k] = table[x[k]];
}
