/* Small floats: f16 is IEEE 754 binary16 (1, 5, 10 bits), bf16 the upper half of an f32 (1, 8, 7
 * bits). To them: round to nearest, ties to even; overflow gives infinity; NaN stays a quiet NaN.
 * Without branches, so that loops over these become vector code. */
#ifndef FACULA_TENSOR_HALF_H
#define FACULA_TENSOR_HALF_H
#include <stdint.h>
#include <string.h>

#define FAC_HALF static inline __attribute__((always_inline, unused))

FAC_HALF uint32_t fac_f32_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
FAC_HALF float fac_f32_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
FAC_HALF uint64_t fac_f64_bits(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
FAC_HALF double fac_f64_of(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Exponent and fraction move to their places in an f32 with the bias 127 - 15 added.  A denormal
 * then lacks the implicit one: it gets the exponent one higher, and a subtraction takes the one
 * away again and normalizes. */
FAC_HALF float fac_f16_to_f32(uint16_t h) {
    uint32_t u = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t normal = u + ((127 - 15) << 23);
    uint32_t special = u + ((255 - 31) << 23); /* infinity and NaN */
    uint32_t denormal = fac_f32_bits(fac_f32_of(u + (113 << 23)) - fac_f32_of(113 << 23));
    uint32_t out = u >= 0x1fu << 23 ? special : normal;
    out = u < 1u << 23 ? denormal : out;
    return fac_f32_of(out | sign);
}

FAC_HALF float fac_bf16_to_f32(uint16_t h) { return fac_f32_of((uint32_t)h << 16); }

/* Rounding is an integer addition of half an ulp, less one when the last kept bit is 0, whose carry
 * runs into the exponent; a denormal result is rounded by the addition of a power of two so large
 * that one ulp of the sum is the least denormal. */
FAC_HALF uint16_t fac_f32_to_f16(float x) {
    uint32_t u = fac_f32_bits(x) & 0x7fffffff, sign = fac_f32_bits(x) >> 16 & 0x8000;
    const uint32_t magic = ((127 - 15) + (23 - 10) + 1)
                           << 23; /* 2^-1: its ulp is 2^-24, the least f16 */
    uint32_t normal = (u - ((127 - 15) << 23) + 0xfff + (u >> 13 & 1)) >> 13;
    uint32_t denormal = fac_f32_bits(fac_f32_of(u) + fac_f32_of(magic)) - magic;
    uint32_t special = u > 0x7f800000 ? 0x7e00 : 0x7c00;
    uint32_t out = u < 113u << 23 ? denormal : normal;
    out = u >= (127u + 16) << 23 ? special : out;
    return (uint16_t)(out | sign);
}

FAC_HALF uint16_t fac_f32_to_bf16(float x) {
    uint32_t u = fac_f32_bits(x);
    uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16, quiet = u >> 16 | 0x40;
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

/* The same from f64 in one rounding, for a type of `fraction` bits and this exponent bias. */
FAC_HALF uint16_t fac_f64_to_small(double x, int fraction, uint64_t bias) {
    uint64_t u = fac_f64_bits(x) & INT64_MAX, sign = fac_f64_bits(x) >> 48 & 0x8000;
    const int shift = 52 - fraction;
    const uint64_t infinity = (2 * bias + 1) << fraction,
                   magic = ((1023 - bias) + (uint64_t)shift + 1) << 52;
    uint64_t normal =
        (u - ((1023 - bias) << 52) + ((UINT64_C(1) << (shift - 1)) - 1) + (u >> shift & 1)) >>
        shift;
    uint64_t denormal = fac_f64_bits(fac_f64_of(u) + fac_f64_of(magic)) - magic;
    uint64_t special =
        u > UINT64_C(0x7ff) << 52 ? infinity | UINT64_C(1) << (fraction - 1) : infinity;
    uint64_t out = u < (1023 - bias + 1) << 52 ? denormal : normal;
    out = u >= (1023 + bias + 1) << 52 ? special : out;
    return (uint16_t)(out | sign);
}
FAC_HALF uint16_t fac_f64_to_f16(double x) { return fac_f64_to_small(x, 10, 15); }
FAC_HALF uint16_t fac_f64_to_bf16(double x) { return fac_f64_to_small(x, 7, 127); }
#endif
