/* Elementary functions of one float, written so that gcc and clang turn a loop over them into
 * vector code: no branches, no tables, no library calls, selections instead of conditions; float
 * bits through memcpy, floats to integers by adding 1.5 * 2^23 (the sum's low bits are the rounded
 * integer), which is defined for NaN and infinity too. inf, NaN, signed zeros, overflow and
 * denormal results are as in math.h; largest errors in units in the last place, found by
 * tests/base/test_mathf.c over all of their range:
 *   exp 1   log 1   expm1 3.5   log1p 3   tanh 1.5   erf 5   1 / (1 + e^-x) 2.5
 * and for GELU, where 1 + erf cancels, absolute ones: 1.3e-6, of its slope 4e-7 The polynomials are
 * minimax fits (Lawson iteration in double) of the functions named beside them. */
#ifndef FACULA_BASE_MATHF_H
#define FACULA_BASE_MATHF_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#define FAC_MATHF static inline __attribute__((always_inline, unused))

FAC_MATHF int32_t fac_bits_of_float(float x) {
    int32_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}
FAC_MATHF float fac_float_of_bits(int32_t i) {
    float x;
    memcpy(&x, &i, sizeof x);
    return x;
}

/* 2^k for k from -126 to 127, anything for another k. */
FAC_MATHF float fac_power_of_2(int32_t k) {
    return fac_float_of_bits((int32_t)((uint32_t)(k + 127) << 23));
}

/* e^x = 2^k e^r,  |r| <= ln 2 / 2;  2^k in two factors, so that k from -150 to 128 overflows and
 * underflows by itself. */
FAC_MATHF float fac_expf(float x) {
    const float magic = 12582912.0f;
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    float shifted = x * 1.44269504f + magic;
    int32_t k = fac_bits_of_float(shifted) - 0x4B400000;
    float n = shifted - magic;
    float r = x - n * 0.693359375f; /* ln 2 in two parts, the first of few bits: n * it is exact */
    r = r - n * -2.12194440e-4f;
    float p = 1.991847089e-4f; /* (e^r - 1 - r) / r^2 */
    p = p * r + 1.394613695e-3f;
    p = p * r + 8.333264202e-3f;
    p = p * r + 4.166626906e-2f;
    p = p * r + 1.666666686e-1f;
    p = p * r + 5.000000078e-1f;
    p = p * (r * r) + r + 1.0f;
    int32_t half = k >> 1;
    return p * fac_power_of_2(half) * fac_power_of_2(k - half);
}

/* ln x = k ln 2 + ln(1 + f),  1 + f in [sqrt(1/2), sqrt(2)) */
FAC_MATHF float fac_logf(float x) {
    float tiny = x < 1.17549435e-38f ? 1.0f : 0.0f;
    float scaled = x * (tiny * 8388607.0f + 1.0f); /* denormals: times 2^23 */
    int32_t bits =
        (int32_t)((uint32_t)fac_bits_of_float(scaled) - 0x3F3504F3u); /* those of sqrt(1/2) */
    int32_t k = bits >> 23;
    float f = fac_float_of_bits((bits & 0x7FFFFF) + 0x3F3504F3) - 1.0f;
    float n = (float)k - tiny * 23.0f;
    float p = 6.746638096e-2f; /* (ln(1 + f) - f + f^2 / 2) / f^3 */
    p = p * f - 1.167565115e-1f;
    p = p * f + 1.188816301e-1f;
    p = p * f - 1.240558908e-1f;
    p = p * f + 1.421955228e-1f;
    p = p * f - 1.666799584e-1f;
    p = p * f + 2.000211866e-1f;
    p = p * f - 2.500000960e-1f;
    p = p * f + 3.333331260e-1f;
    float s = f * f;
    float y = n * -2.12194440e-4f + p * f * s;
    y = y - 0.5f * s;
    y = n * 0.693359375f + (f + y);
    y = x == INFINITY ? x : y;
    y = x == 0.0f ? -INFINITY : y;
    y = x < 0.0f ? NAN : y;
    return x != x ? x : y;
}

/* e^x - 1 without cancellation: below 0.34 the polynomial of fac_expf, above the difference. */
FAC_MATHF float fac_expm1f(float x) {
    float p = 1.991847089e-4f;
    p = p * x + 1.394613695e-3f;
    p = p * x + 8.333264202e-3f;
    p = p * x + 4.166626906e-2f;
    p = p * x + 1.666666686e-1f;
    p = p * x + 5.000000078e-1f;
    float small = x + x * x * p, large = fac_expf(x) - 1.0f;
    return copysignf(fabsf(x) < 0.3465f ? small : large, x);
}

/* ln(1 + x): the rounding of w = 1 + x is undone by the factor x / (w - 1).  (Kahan; see Goldberg,
 * "What every computer scientist should know about floating-point arithmetic", theorem 4) */
FAC_MATHF float fac_log1pf(float x) {
    float w = 1.0f + x, d = w - 1.0f;
    float y = fac_logf(w) * (x / d);
    y = x == INFINITY ? x : y;
    return d == 0.0f ? x : y;
}

/* tanh x: below 0.625 a polynomial, above 1 - 2 / (e^2|x| + 1) */
FAC_MATHF float fac_tanhf(float x) {
    float a = fabsf(x), z = x * x;
    float p = 2.144878072e-3f; /* (tanh(sqrt z) / sqrt z - 1) / z */
    p = p * z - 8.179873366e-3f;
    p = p * z + 2.170187963e-2f;
    p = p * z - 5.394701468e-2f;
    p = p * z + 1.333320834e-1f;
    p = p * z - 3.333333087e-1f;
    float small = x + x * (z * p);
    float large = 1.0f - 2.0f / (fac_expf(a + a) + 1.0f);
    return copysignf(a > 0.625f ? large : small, x);
}

/* erf x: x times a polynomial of x^2 up to 3.92, where erf is 1 in float.  Its variable is shifted
 * to -1..1, so that nothing cancels. */
FAC_MATHF float fac_erff(float x) {
    float a = fabsf(x), c = a > 3.9192059f ? 3.9192059f : a;
    float u = c * c * 0.1302068508f - 1.0f;
    float p = -8.407296264e-4f; /* erf(c) / c */
    p = p * u + 2.091481118e-3f;
    p = p * u - 1.392270671e-3f;
    p = p * u + 1.919611008e-3f;
    p = p * u - 7.645375095e-3f;
    p = p * u + 1.418450195e-2f;
    p = p * u - 1.997279190e-2f;
    p = p * u + 2.967545576e-2f;
    p = p * u - 4.341254756e-2f;
    p = p * u + 5.837683007e-2f;
    p = p * u - 7.401130348e-2f;
    p = p * u + 9.060014039e-2f;
    p = p * u - 1.091933846e-1f;
    p = p * u + 1.341086030e-1f;
    p = p * u - 1.801443100e-1f;
    p = p * u + 3.608098030e-1f;
    float y = c * p;
    y = a > 3.9192f ? 1.0f : y; /* NaN stays */
    return copysignf(y > 1.0f ? 1.0f : y, x);
}

/* 1 / (1 + e^-x):  e^-x as in fac_expf, but one factor 2^k will do for what 1 is added to. */
FAC_MATHF float fac_sigmoidf(float x) {
    const float magic = 12582912.0f;
    float y = x > 87.0f ? -87.0f : -x;
    float shifted = y * 1.44269504f + magic;
    float n = shifted - magic;
    float r = y - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    float p = 1.991847089e-4f;
    p = p * r + 1.394613695e-3f;
    p = p * r + 8.333264202e-3f;
    p = p * r + 4.166626906e-2f;
    p = p * r + 1.666666686e-1f;
    p = p * r + 5.000000078e-1f;
    p = p * (r * r) + r + 1.0f;
    float e = p * fac_power_of_2(fac_bits_of_float(shifted) - 0x4B400000);
    e = x < -88.0f ? INFINITY : e;
    return 1.0f / (1.0f + e);
}

/* x (1 + erf(x / sqrt 2)) / 2 = h + |h| erf(sqrt 2 |h|),  h = x / 2,  and erf as |h| times a
 * quotient of polynomials of h^2 whose coefficients are all positive.  It exceeds 1 a little before
 * |h| = 2.9, from where on the least of both is 1 exactly. */
FAC_MATHF float fac_geluf(float x) {
    float h = 0.5f * x, a = fabsf(h), c = a > 2.9f ? 2.9f : a, t = c * c;
    float p = 8.797346482e-5f;
    p = p * t + 6.471781384e-3f;
    p = p * t + 4.545258538e-2f;
    p = p * t + 3.027726964e-1f;
    p = p * t + 5.569326627e-1f;
    p = p * t + 1.595769069f;
    float q = 1.185364852e-3f;
    q = q * t + 1.943742723e-2f;
    q = q * t + 1.238544230e-1f;
    q = q * t + 4.668691212e-1f;
    q = q * t + 1.015670401f;
    q = q * t + 1.0f;
    float y = c * p / q;
    y = y > 1.0f ? 1.0f : y;
    return h + a * y;
}

/* Its slope  F(x) + x f(x),  F and f being the normal distribution and its density:  1/2 and an odd
 * function of x, which is |x| times a quotient of polynomials of x^2 up to 5.6 and 1/2 after. */
FAC_MATHF float fac_gelu_slopef(float x) {
    float a = fabsf(x), c = a > 5.6f ? 5.6f : a, t = c * c;
    float p = 4.752193556e-8f;
    p = p * t + 8.522654690e-6f;
    p = p * t + 3.102270018e-5f;
    p = p * t + 3.294453728e-3f;
    p = p * t + 6.698378741e-3f;
    p = p * t + 1.503778077e-1f;
    p = p * t + 7.978844892e-1f;
    float q = 2.147815919e-6f;
    q = q * t + 4.953701231e-5f;
    q = q * t + 9.842436398e-4f;
    q = q * t + 1.266799037e-2f;
    q = q * t + 1.073348293e-1f;
    q = q * t + 5.218025419e-1f;
    q = q * t + 1.0f;
    float y = c * p / q;
    y = a > 5.6f ? 0.5f : y;
    return 0.5f + copysignf(y, x);
}
#endif
