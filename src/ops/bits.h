/* Masks of images as bits: u8[N, ceil(C / 4), H, W], where bit c % 4 of byte c / 4 belongs to
 * channel c. */
#ifndef FACULA_OPS_BITS_H
#define FACULA_OPS_BITS_H
#include "facula/op.h"

enum { FAC_BITS = 4 }; /* channels of a byte */

/* Of an image; symbols stay. */
static inline fac_dims fac_bits_dims(const fac_dims *image) {
    fac_dims d = *image;
    if (d.d[1] >= 0) d.d[1] = (d.d[1] + FAC_BITS - 1) / FAC_BITS;
    return d;
}

/* Where the byte of element `at` of an image lies that is contiguous, as its bits are; *bit: which
 * bit of it. */
static inline int64_t fac_bits_at(const fac_dims *image, int64_t plane, int64_t at, int *bit) {
    const int64_t channels = image->d[1], c = at / plane % channels, n = at / plane / channels;
    *bit = (int)(c % FAC_BITS);
    return (n * ((channels + FAC_BITS - 1) / FAC_BITS) + c / FAC_BITS) * plane + at % plane;
}

/* bits.c: as ops, of images whose sizes are known. */
fac_value *fac_bits_of(fac_value *passes);                    /* from bool[N, C, H, W] */
fac_value *fac_bits_apart(fac_value *bits, int64_t channels); /* to it */
#endif
