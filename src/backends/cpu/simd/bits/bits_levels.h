/* From numbers to bits: the levels of pixels, by thresholds.  See bits.c, which includes this. */
#include "backends/cpu/simd/bits/bits_kinds.h"

/* Thresholds above 0 cut what a relu would. */
static bool needs_relu(const fac_bit_levels *l) {
    return l->relu && (l->sign || l->threshold[0] < 0);
}

INLINE void pack_as(const fac_bit_pack *t, const int kind, const int planes, const bool relu) {
    const int blocks = (t->channels + VL - 1) / VL;
    const unsigned valid = t->channels < 32 ? (1u << t->channels) - 1 : ~0u;
    const fac_bit_levels l = *t->levels;
    for (int64_t p = 0; p < t->pixels; p++) {
        uint32_t word[FAC_BIT_PLANES] = { 0 };
        UNROLL
        for (int b = 0; b < blocks; b++) {
            unsigned bits[FAC_BIT_PLANES];
            vec x = load(t->x + p * t->x_pixel + b * t->x_block);
            if (relu) x = vmax(x, all(0));
            vector_bits(&l, x, kind, bits);
            for (int j = 0; j < planes; j++) word[j] |= (bits[j] & LANES) << b * VL;
        }
        uint32_t *to = t->to + p * t->to_pixel;
        for (int j = 0; j < planes; j++) to[j * t->to_plane] = word[j] & valid;
    }
}

static void pack(const fac_bit_pack *t) {
    const int kind = kind_of(t->levels);
    if (needs_relu(t->levels) && kind == SIGNS)
        pack_as(t, SIGNS, 1, true);
    else if (needs_relu(t->levels))
        pack_as(t, ANY, t->levels->planes, true);
    else if (kind == SIGNS)
        pack_as(t, SIGNS, 1, false);
    else if (kind == ONE)
        pack_as(t, ONE, 1, false);
    else if (kind == TWO)
        pack_as(t, TWO, 2, false);
    else
        pack_as(t, ANY, t->levels->planes, false);
}
