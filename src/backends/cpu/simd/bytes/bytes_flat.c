/* Elementwise loops over bytes, which compilers turn into vectors: see backends/cpu/bytes/bytes.h.
 */
#include <math.h>
#include "backends/cpu/bytes/bytes.h"
#include "backends/cpu/simd/vector.h"

/* One rounding, with an instruction or, where there is none, in f64, which holds products of these.
 */
INLINE float fma_of(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, c);
#else
    return (float)((double)a * (double)b + (double)c);
#endif
}

/* To the nearest whole number of those that bytes have. */
INLINE int whole(float v, float lo, float hi) {
    const float magic = 12582912.0f;
    v = v > lo ? v : lo;
    v = v < hi ? v : hi;
    return (int)((v + magic) - magic);
}

/* Limits of a sum that y_zero is added to after rounding. */
#define LOOPS(NAME, T, LEAST, MOST)                                                                \
    INLINE void NAME##_add(const fac_byte_pair *p, size_t n, const T *restrict a, const T *b,      \
                           size_t step, T *y) {                                                    \
        const float ra = p->ra, rb = p->rb, off = p->off;                                          \
        for (size_t k = 0; k < n; k++)                                                             \
            y[k] = (T)whole(fma_of(a[k], ra, fma_of(b[k * step], rb, off)), LEAST, MOST);          \
    }                                                                                              \
    INLINE void NAME##_mul(const fac_byte_pair *p, size_t n, const T *restrict a, const T *b,      \
                           size_t step, T *y) {                                                    \
        const float az = p->a_zero, bz = p->b_zero, m = p->factor, zero = p->y_zero;               \
        for (size_t k = 0; k < n; k++)                                                             \
            y[k] = (T)(whole((a[k] - az) * (b[k * step] - bz) * m, LEAST - zero, MOST - zero) +    \
                       (int)zero);                                                                 \
    }                                                                                              \
    static void NAME##_pair(const fac_byte_pair *p, size_t n, const T *a, const T *b, T *y) {      \
        if (p->mul && p->single)                                                                   \
            NAME##_mul(p, n, a, b, 0, y);                                                          \
        else if (p->mul)                                                                           \
            NAME##_mul(p, n, a, b, 1, y);                                                          \
        else if (p->single)                                                                        \
            NAME##_add(p, n, a, b, 0, y);                                                          \
        else                                                                                       \
            NAME##_add(p, n, a, b, 1, y);                                                          \
    }                                                                                              \
    static void NAME##_most(const fac_byte_most *m, const T *restrict x, T *restrict y) {          \
        const size_t n = m->n;                                                                     \
        for (size_t p = 0; p < m->pixels; p++, x += m->x_pixel, y += m->y_pixel)                   \
            for (size_t k = 0; k < n; k++) y[k] = x[k] > y[k] ? x[k] : y[k];                       \
    }                                                                                              \
    static void NAME##_sum(size_t n, const T *restrict x, int32_t *restrict sum) {                 \
        for (size_t k = 0; k < n; k++) sum[k] += x[k];                                             \
    }
LOOPS(u8, uint8_t, 0.0f, 255.0f)
LOOPS(i8, int8_t, -128.0f, 127.0f)

extern fac_byte_pair_kernel FAC_SIMD(fac_byte_pair);
void FAC_SIMD(fac_byte_pair)(const fac_byte_pair *p, size_t n, const void *a, const void *b,
                             void *y) {
    if (p->sign)
        i8_pair(p, n, a, b, y);
    else
        u8_pair(p, n, a, b, y);
}

extern fac_byte_most_kernel FAC_SIMD(fac_byte_most);
void FAC_SIMD(fac_byte_most)(const fac_byte_most *m, const void *x, void *y) {
    if (m->sign)
        i8_most(m, x, y);
    else
        u8_most(m, x, y);
}

extern fac_byte_sum_kernel FAC_SIMD(fac_byte_sum);
void FAC_SIMD(fac_byte_sum)(size_t n, const void *x, bool sign, int32_t *sum) {
    if (sign)
        i8_sum(n, x, sum);
    else
        u8_sum(n, x, sum);
}
