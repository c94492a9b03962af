/* Floats of 8 and 4 bits, a byte each (OCP 8-bit and microscaling formats; ONNX's float8 types).
 *
 * To them: round to nearest, ties to even.  A finite number beyond the largest becomes the largest.
 * Infinity stays infinity where there is one, else it becomes NaN; NaN where there is none becomes
 * -0, as in ml_dtypes.  E8M0 is a power of two: no sign, no zero. */
#ifndef FACULA_TENSOR_SMALL_H
#define FACULA_TENSOR_SMALL_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct fac_small {
    int fraction, bias;
    uint8_t sign, largest; /* codes: of the sign's bit, of the largest number */
    int nan, infinity;     /* codes without sign; -1: there is none            */
    bool unsigned_zero;    /* the code of -0 is NaN                            */
} fac_small;

#define FAC_SMALL_E4M3                                                                             \
    (fac_small) { 3, 7, 0x80, 0x7e, 0x7f, -1, false }
#define FAC_SMALL_E4M3UZ                                                                           \
    (fac_small) { 3, 8, 0x80, 0x7f, 0x80, -1, true }
#define FAC_SMALL_E5M2                                                                             \
    (fac_small) { 2, 15, 0x80, 0x7b, 0x7e, 0x7c, false }
#define FAC_SMALL_E5M2UZ                                                                           \
    (fac_small) { 2, 16, 0x80, 0x7f, 0x80, -1, true }
#define FAC_SMALL_E2M1                                                                             \
    (fac_small) { 1, 1, 0x8, 0x7, -1, -1, false }
#define FAC_SMALL_E8M0                                                                             \
    (fac_small) { 0, 127, 0, 0xfe, 0xff, -1, false }

static inline double fac_small_to_f64(fac_small f, uint8_t code) {
    const int magnitude = code & (f.sign ? f.sign - 1 : 0xff);
    const int exponent = magnitude >> f.fraction;
    const int part = magnitude & ((1 << f.fraction) - 1);
    if (code == f.nan || (!f.unsigned_zero && magnitude == f.nan)) return NAN;
    double x = exponent || !f.sign ? ldexp((1 << f.fraction) + part, exponent - f.bias - f.fraction)
                                   : ldexp(part, 1 - f.bias - f.fraction);
    if (f.infinity >= 0 && magnitude >= f.infinity) x = magnitude > f.infinity ? NAN : INFINITY;
    return code & f.sign ? -x : x;
}

/* The code of a finite x >= 0: numbers of one sign are in the order of their codes. */
static inline uint8_t fac_small_code(fac_small f, double x) {
    int e = x > 0 ? ilogb(x) : -2000;
    const int least = f.sign ? 1 - f.bias : -f.bias;
    if (e < least) e = least;
    /* In units of the last place: from 2^fraction on, unless x is denormal. */
    const double units = nearbyint(ldexp(x, f.fraction - e));
    const double code = units + ldexp(e - least, f.fraction) + (f.sign ? 0 : -1);
    if (code > f.largest) return f.largest;
    return code > 0 ? (uint8_t)code : 0;
}

static inline uint8_t fac_f64_to_small_float(fac_small f, double x) {
    const uint8_t sign = signbit(x) ? f.sign : 0;
    if (isnan(x) && f.nan < 0) return f.sign;
    if (isnan(x)) return (uint8_t)(f.unsigned_zero ? f.nan : f.nan | sign);
    if (isinf(x) && f.infinity >= 0) return (uint8_t)(f.infinity | sign);
    if (isinf(x)) return (uint8_t)((f.nan >= 0 ? f.nan : f.largest) | sign);
    const uint8_t code = fac_small_code(f, fabs(x));
    return code || !f.unsigned_zero ? (uint8_t)(code | sign) : 0;
}
#endif
