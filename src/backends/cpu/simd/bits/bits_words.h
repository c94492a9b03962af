/* A word of codes at once, by whole numbers, where two vectors are 32 channels.  See bits.c, which
 * includes this. */
#if VL == 16
INLINE void words_as(const fac_bit_word *t, const int kind, const int thresholds,
                     const int planes) {
    const fac_bit_levels *l = t->codes;
    const ivec invert[] = { load_counts(t->limits), load_counts(t->limits + VL) };
    const int of_codes = planes_of(l, kind);
    for (int p = 0; p < t->n; p++) {
        unsigned m[FAC_BIT_THRESHOLDS], bits[FAC_BIT_PLANES];
        ivec d[2];
        UNROLL
        for (int v = 0; v < 2; v++) {
            d[v] = (ivec){ 0 };
            UNROLL
            for (int j = 0; j < planes; j++) {
                const ivec a = load_counts(t->acc + j * t->plane + p * t->pixel + v * VL);
                const ivec product = a + a - t->sums[j * FAC_BIT_RUN + p];
                d[v] += planes > 1 ? t->times[j] * product : product;
            }
            d[v] ^= invert[v];
        }
        UNROLL
        for (int k = 0; k < thresholds; k++) {
            const int32_t *limit = t->limits + (k + 1) * t->limits_row;
            m[k] = at_least(d[0], load_counts(limit)) | at_least(d[1], load_counts(limit + VL))
                                                            << VL;
        }
        bits_as(l, kind, m, bits);
        for (int j = 0; j < of_codes; j++)
            t->q[p * t->q_pixel + j * t->q_plane] = bits[j] & t->valid;
    }
}

static void codes_of_words(const fac_bit_word *t) {
    const int kind = kind_of(t->codes);
    if (kind == ANY)
        words_as(t, ANY, t->codes->thresholds, t->planes);
    else if (kind == TWO && t->planes == 2)
        words_as(t, TWO, 3, 2);
    else if (kind == TWO)
        words_as(t, TWO, 3, t->planes);
    else if (t->planes == 1)
        words_as(t, ONE, 1, 1);
    else
        words_as(t, ONE, 1, t->planes);
}
#else
#define codes_of_words NULL
#endif
