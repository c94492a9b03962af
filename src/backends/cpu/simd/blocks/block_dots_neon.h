/* Products of weights in blocks with rows of 8-bit numbers, for NEON: block_dots.c says what is
 * computed.  Numbers of 4 bits are 0..15, others as they are.  sdot adds four products at a time to
 * 32 bits; without it two products fit 16 bits, for x is never -128. */
#ifndef FACULA_CPU_BLOCK_DOTS_NEON_H
#define FACULA_CPU_BLOCK_DOTS_NEON_H

/* sum and the products of sixteen bytes, by fours. */
INLINE int32x4_t add_products(const bool dots, int32x4_t sum, int8x16_t u, int8x16_t x) {
    if (dots) {
        __asm__(".arch armv8.2-a+dotprod\n\tsdot %0.4s, %1.16b, %2.16b"
                : "+w"(sum)
                : "w"(u), "w"(x));
        return sum;
    }
    const int16x8_t low = vmull_s8(vget_low_s8(u), vget_low_s8(x));
    return vpadalq_s16(sum, vmlal_high_s8(low, u, x));
}

INLINE int8x16_t bytes_at(const void *p) { return vld1q_s8((const int8_t *)p); }

INLINE int8x16x2_t block_of(const enum type t, const char *w) {
    int8x16x2_t u;
    if (t == TYPE_Q8_0) {
        u.val[0] = bytes_at(w);
        u.val[1] = bytes_at(w + 16);
        return u;
    }
    const uint8x16_t x = vld1q_u8((const uint8_t *)w);
    u.val[0] = vreinterpretq_s8_u8(vandq_u8(x, vdupq_n_u8(15)));
    u.val[1] = vreinterpretq_s8_u8(vshrq_n_u8(x, 4));
    return u;
}

INLINE void part(const enum type t, const bool dots, const int m, const char *w, int n,
                 const float *d, const char *const *x, const float *const *dx, float32x4_t *sum) {
    const int bytes = bytes_of(t);
    w += head_of(t);
    for (int b = 0; b < n; b++) {
        const int8x16x2_t u = block_of(t, w + b * bytes);
        for (int j = 0; j < m; j++) {
            int32x4_t p = vdupq_n_s32(0);
            p = add_products(dots, p, u.val[0], bytes_at(x[j] + 32 * b));
            p = add_products(dots, p, u.val[1], bytes_at(x[j] + 32 * b + 16));
            sum[j] = vfmaq_n_f32(sum[j], vcvtq_f32_s32(p), d[b] * dx[j][b]);
        }
    }
}
typedef float32x4_t sums;
INLINE sums none(void) { return vdupq_n_f32(0); }
INLINE float total(sums v) { return vaddvq_f32(v); }

/* ---- blocks of 256 ---- */

INLINE void numbers_q4_k(const unsigned char *q, signed char *to) {
    for (int k = 0; k < 128; k += 16) {
        const uint8x16_t x = vld1q_u8(q + k);
        signed char *at = to + k / 32 * 64 + k % 32;
        vst1q_s8((int8_t *)at, vreinterpretq_s8_u8(vandq_u8(x, vdupq_n_u8(15))));
        vst1q_s8((int8_t *)at + 32, vreinterpretq_s8_u8(vshrq_n_u8(x, 4)));
    }
}

INLINE void numbers_q6_k(const unsigned char *low, const unsigned char *high, signed char *to) {
    for (int k = 0; k < 256; k += 16) {
        const int n = k / 128, t = k % 128 / 32, c = k % 32;
        const uint8x16_t four = vld1q_u8(low + 64 * n + 32 * (t & 1) + c);
        const uint8x16_t two = vld1q_u8(high + 32 * n + c);
        const uint8x16_t below = t < 2 ? vandq_u8(four, vdupq_n_u8(15)) : vshrq_n_u8(four, 4);
        const uint8x16_t above =
            vandq_u8(vshlq_u8(two, vdupq_n_s8((int8_t)(-2 * t))), vdupq_n_u8(3));
        const uint8x16_t all = vorrq_u8(below, vshlq_n_u8(above, 4));
        vst1q_s8((int8_t *)to + k, vsubq_s8(vreinterpretq_s8_u8(all), vdupq_n_s8(32)));
    }
}

INLINE float large_products(const bool dots, const int part_, const signed char *w, const char *x,
                            const float *d, const float *dx) {
    float32x4_t sum = vdupq_n_f32(0);
    for (int k = 0; k < 256; k += part_) {
        int32x4_t p = vdupq_n_s32(0);
        for (int i = 0; i < part_; i += 16)
            p = add_products(dots, p, bytes_at(w + k + i), bytes_at(x + k + i));
        sum = vfmaq_n_f32(sum, vcvtq_f32_s32(p), d[k / part_] * dx[k / 32]);
    }
    return vaddvq_f32(sum);
}
#endif
