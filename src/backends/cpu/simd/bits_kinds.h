/* From the thresholds that are exceeded to the bits of codes: see bits.c and bits_tables.c. */
#ifndef FACULA_SIMD_BITS_KINDS_H
#define FACULA_SIMD_BITS_KINDS_H
#include "backends/cpu/bits/bits.h"
#include "backends/cpu/simd/vector.h"

/* The bits of each plane, of a bit for each threshold that is exceeded. */
INLINE void bits_of(const fac_bit_levels *l, const unsigned m[FAC_BIT_THRESHOLDS],
                    unsigned bits[FAC_BIT_PLANES]) {
    for (int j = 0; j < l->planes; j++) {
        bits[j] = l->start >> j & 1 ? ~0u : 0;
        for (int k = 0; k < l->thresholds; k++) bits[j] ^= l->flips[j] >> k & 1 ? m[k] : 0;
    }
}

/* What activations mostly are: signs; one plane of one threshold; two of three, whose codes
 * grow. */
enum { ANY, SIGNS, ONE, TWO };
static int kind_of(const fac_bit_levels *l) {
    if (l->sign) return SIGNS;
    if (l->start) return ANY;
    if (l->planes == 1 && l->flips[0] == 1) return ONE;
    return l->planes == 2 && l->flips[0] == 7 && l->flips[1] == 2 ? TWO : ANY;
}
#endif
