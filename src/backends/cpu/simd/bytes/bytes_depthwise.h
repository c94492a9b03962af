/* The template of bytes_depthwise.c: CHANNELS of them in vectors of WIDTH bits.
 *
 * Vector k of the four that bytes of a vector become has channels 4 k .. 4 k + 3 of each sixteen;
 * packing them again brings channels in order. */
#define DW_PASTE_(a, b) a##b
#define DW_PASTE(a, b) DW_PASTE_(a, b)
#define DW_PASTE3_(a, b, c) a##b##c
#define DW_PASTE3(a, b, c) DW_PASTE3_(a, b, c)
#define OF(name) DW_PASTE3(name, _, CHANNELS)
#if WIDTH == 512
#define INTS __m512i
#define FLOATS __m512
#define MASK __mmask64
#define MM(name) _mm512_##name
#define ZEROS() _mm512_setzero_si512()
#define XOR(a, b) _mm512_xor_si512(a, b)
#else
#define INTS __m256i
#define FLOATS __m256
#define MASK __mmask32
#define MM(name) _mm256_##name
#define ZEROS() _mm256_setzero_si256()
#define XOR(a, b) _mm256_xor_si256(a, b)
#endif

/* What belongs to these channels. */
typedef struct OF(group) {
    const fac_byte_depthwise *t;
    int c;
    MASK there;
    bool whole;
    INTS flip, bias[4], shift, unflip;
    FLOATS factor[4], hi;
    const int8_t *w; /* [S][groups of four rows][4][lanes][4] */
} OF(group);

/* Four numbers of each sixteen, from k 4 on. */
INLINE INTS OF(quarters)(const void *from, int k) {
    int32_t to[CHANNELS / 4];
    for (int l = 0; l < CHANNELS / 16; l++)
        memcpy(to + 4 * l, (const int32_t *)from + 16 * l + 4 * k, 16);
    INTS v;
    memcpy(&v, to, sizeof v);
    return v;
}

WITH_VNNI INLINE OF(group) OF(group_of)(const fac_byte_depthwise *t, int c) {
    const int left = t->channels - c;
    const bool sign = t->lo + (float)t->y_zero < 0;
    OF(group)
    g = { .t = t,
          .c = c,
          .there = left < CHANNELS ? (MASK)(((MASK)1 << left) - 1) : (MASK) ~(MASK)0,
          .whole = left >= CHANNELS,
          .flip = MM(set1_epi8)((char)t->flip),
          .shift = MM(set1_epi16)((short)(t->y_zero - (sign ? 0 : 128))),
          .unflip = MM(set1_epi8)(sign ? 0 : -128),
          .hi = MM(set1_ps)(t->hi),
          .w = t->w + (int64_t)c * t->S * ((t->R + 3) / 4) * 4 };
    for (int k = 0; k < 4; k++) {
        g.bias[k] = OF(quarters)(t->bias + c, k);
        const INTS f = OF(quarters)(t->factor + c, k);
        memcpy(&g.factor[k], &f, sizeof f);
    }
    return g;
}

WITH_VNNI INLINE INTS OF(bytes_at)(const OF(group) * g, int r, int64_t column) {
    const fac_byte_depthwise *t = g->t;
    const bool inside = t->row[r] && column >= 0 && column < t->columns;
    const uint8_t *from = inside ? t->row[r] + column * t->x_pixel : t->zero;
    return XOR(MM(maskz_loadu_epi8)(g->there, from + g->c), g->flip);
}

/* Rows first .. first + 3 of a column, interleaved; n of them are there. */
WITH_VNNI INLINE void OF(column)(const OF(group) * g, int first, const int n, int64_t column,
                                 INTS *v) {
    const INTS a = OF(bytes_at)(g, first, column);
    const INTS b = n > 1 ? OF(bytes_at)(g, first + 1, column) : ZEROS();
    const INTS c = n > 2 ? OF(bytes_at)(g, first + 2, column) : ZEROS();
    const INTS d = n > 3 ? OF(bytes_at)(g, first + 3, column) : ZEROS();
    const INTS ab = MM(unpacklo_epi8)(a, b), cd = MM(unpacklo_epi8)(c, d);
    const INTS ab2 = MM(unpackhi_epi8)(a, b), cd2 = MM(unpackhi_epi8)(c, d);
    v[0] = MM(unpacklo_epi16)(ab, cd);
    v[1] = MM(unpackhi_epi16)(ab, cd);
    v[2] = MM(unpacklo_epi16)(ab2, cd2);
    v[3] = MM(unpackhi_epi16)(ab2, cd2);
}

WITH_VNNI INLINE INTS OF(ended)(const OF(group) * g, INTS acc, int k) {
    const FLOATS v = MM(mul_ps)(MM(cvtepi32_ps)(acc), g->factor[k]);
    return MM(cvtps_epi32)(MM(min_ps)(v, g->hi));
}

WITH_VNNI INLINE void OF(put)(const OF(group) * g, const INTS *acc, int64_t pixel) {
    const INTS low = MM(packs_epi32)(OF(ended)(g, acc[0], 0), OF(ended)(g, acc[1], 1));
    const INTS high = MM(packs_epi32)(OF(ended)(g, acc[2], 2), OF(ended)(g, acc[3], 3));
    const INTS y = XOR(
        MM(packs_epi16)(MM(adds_epi16)(low, g->shift), MM(adds_epi16)(high, g->shift)), g->unflip);
    uint8_t *to = (uint8_t *)g->t->y + pixel * g->t->y_pixel + g->c;
    if (g->whole)
        memcpy(to, &y, sizeof y);
    else
        MM(mask_storeu_epi8)(to, g->there, y);
}

WITH_VNNI INLINE INTS OF(weights)(const OF(group) * g, int at, int k) {
    INTS w;
    memcpy(&w, g->w + (4 * at + k) * (int64_t)sizeof w, sizeof w);
    return w;
}

/* Windows of at most four rows and three columns that move by one. */
WITH_VNNI INLINE void OF(sliding)(const OF(group) * g, const int R) {
    const fac_byte_depthwise *t = g->t;
    INTS a[4], b[4], c[4], v[4], w[3][4];
    UNROLL
    for (int k = 0; k < 4; k++) {
        b[k] = c[k] = g->bias[k];
        UNROLL
        for (int s = 0; s < 3; s++) w[s][k] = OF(weights)(g, s, k);
    }
    for (int64_t p = 0; p < t->pixels + 2; p++) {
        OF(column)(g, 0, R, p - t->pad, v);
        UNROLL
        for (int k = 0; k < 4; k++) {
            a[k] = MM(dpbusd_epi32)(g->bias[k], v[k], w[0][k]);
            b[k] = MM(dpbusd_epi32)(b[k], v[k], w[1][k]);
            c[k] = MM(dpbusd_epi32)(c[k], v[k], w[2][k]);
        }
        if (p > 1) OF(put)(g, c, p - 2);
        UNROLL
        for (int k = 0; k < 4; k++) {
            c[k] = b[k];
            b[k] = a[k];
        }
    }
}

WITH_VNNI INLINE void OF(windows)(const OF(group) * g) {
    const fac_byte_depthwise *t = g->t;
    const int groups = (t->R + 3) / 4;
    for (int64_t p = 0; p < t->pixels; p++) {
        INTS a[4], v[4];
        UNROLL
        for (int k = 0; k < 4; k++) a[k] = g->bias[k];
        for (int s = 0; s < t->S; s++) {
            const int64_t column = p * t->stride + s * t->dilation - t->pad;
            for (int r = 0; r < groups; r++) {
                const int left = t->R - 4 * r;
                if (left > 3)
                    OF(column)(g, 4 * r, 4, column, v);
                else if (left == 3)
                    OF(column)(g, 4 * r, 3, column, v);
                else if (left == 2)
                    OF(column)(g, 4 * r, 2, column, v);
                else
                    OF(column)(g, 4 * r, 1, column, v);
                UNROLL
                for (int k = 0; k < 4; k++)
                    a[k] = MM(dpbusd_epi32)(a[k], v[k], OF(weights)(g, s * groups + r, k));
            }
        }
        OF(put)(g, a, p);
    }
}

WITH_VNNI static void OF(row)(const fac_byte_depthwise *t, int c) {
    const OF(group) g = OF(group_of)(t, c);
    if (t->S == 3 && t->R == 3 && t->stride == 1 && t->dilation == 1)
        OF(sliding)(&g, 3);
    else
        OF(windows)(&g);
}
#undef DW_PASTE_
#undef DW_PASTE
#undef DW_PASTE3_
#undef DW_PASTE3
#undef OF
#undef INTS
#undef FLOATS
#undef MASK
#undef MM
#undef ZEROS
#undef XOR
#undef WIDTH
#undef CHANNELS
