/* Tables of sums of bits, from codes: see bits_tables.c, which includes this. */
#if VL == 16
enum { GROUP = 6, CODES = 0, PART = 0, EVEN = 1, AT_ONCE = 4, BLOCK = 64 };

/* A byte for each channel of a row of pixels. */
INLINE_TABLES void spread_codes(const fac_bit_build *t, uint8_t *to, int64_t bytes_of_pixel) {
    for (int64_t p = 0; p < t->pixels; p++)
        for (int64_t c = 0; c < bytes_of_pixel; c += BLOCK) {
            __m512i code = _mm512_setzero_si512();
            for (int j = 0; j < t->planes; j++) {
                uint64_t bits;
                memcpy(&bits, t->bits[j] + p * t->bits_pixel + c / 32, sizeof bits);
                code = _mm512_mask_add_epi8(code, bits, code, _mm512_set1_epi8((char)t->times[j]));
            }
            _mm512_storeu_si512(to + p * bytes_of_pixel + c, code);
        }
}

/* Of three channels first all sums: entry 16 g + 8 h + e of a vector has those of channels 3 h of
 * group g.  A table is the sum of two of these, by the lower and by the upper bits of its index. */
typedef struct ways {
    __m512i of[3], lower[AT_ONCE], upper[AT_ONCE];
} ways;

INLINE_TABLES ways ways_of(void) {
    uint8_t b[64];
    ways w;
    for (int k = 0; k < 3; k++) {
        for (int e = 0; e < 64; e++) b[e] = (uint8_t)(e / 16 * GROUP + e / 8 % 2 * 3 + k);
        w.of[k] = _mm512_loadu_si512(b);
    }
    for (int g = 0; g < AT_ONCE; g++) {
        for (int e = 0; e < 64; e++) b[e] = (uint8_t)(g * 16 + (e & 7));
        w.lower[g] = _mm512_loadu_si512(b);
        for (int e = 0; e < 64; e++) b[e] = (uint8_t)(g * 16 + 8 + (e >> 3));
        w.upper[g] = _mm512_loadu_si512(b);
    }
    return w;
}

INLINE_TABLES void build_some(const ways *w, const uint8_t *from, uint8_t *to, const int n) {
    static const uint64_t second = 0xaaaaaaaaaaaaaaaa, third = 0xcccccccccccccccc,
                          last = 0xf0f0f0f0f0f0f0f0;
    const __m512i x = _mm512_loadu_si512(from);
    const __m512i a = _mm512_maskz_permutexvar_epi8(second, w->of[0], x),
                  b = _mm512_maskz_permutexvar_epi8(third, w->of[1], x),
                  c = _mm512_maskz_permutexvar_epi8(last, w->of[2], x);
    const __m512i sums = _mm512_add_epi8(_mm512_add_epi8(a, b), c);
    UNROLL
    for (int k = 0; k < n; k++)
        _mm512_storeu_si512(to + k * TABLE,
                            _mm512_add_epi8(_mm512_permutexvar_epi8(w->lower[k], sums),
                                            _mm512_permutexvar_epi8(w->upper[k], sums)));
}

TARGET static void build(const fac_bit_build *t) {
    const int64_t each = (int64_t)(t->groups * GROUP + BLOCK - 1) / BLOCK * BLOCK;
    const ways w = ways_of();
    spread_codes(t, t->room, each);
    for (int64_t p = 0; p < t->pixels; p++) {
        const uint8_t *from = t->room + p * each;
        uint8_t *to = t->to + p * t->to_pixel;
        int left = t->groups;
        for (; left >= AT_ONCE; left -= AT_ONCE, from += AT_ONCE * GROUP, to += AT_ONCE * TABLE)
            build_some(&w, from, to, AT_ONCE);
        if (left) build_some(&w, from, to, left);
    }
}
#else
enum { GROUP = 4, EACH = 4, BYTES = 4, MASK = 255, CODES = 256, PART = 32, EVEN = 2 };
enum { SHIFT = GROUP * EVEN, BLOCK = 0 }; /* pairs of groups */

/* `second`: each byte has sums of this pixel and of that which is as far away as `second` says. */
INLINE_TABLES void build_of(const fac_bit_build *t, const int planes, const bool second) {
    const int all = t->groups / EVEN;
    for (int64_t p = 0; p < t->pixels; p++) {
        uint8_t *to = t->to + p * t->to_pixel;
        for (int g = 0; g < all; g += EACH) {
            uint64_t x[FAC_TABLE_PLANES] = { 0 }, y = 0;
            const int n = all - g < EACH ? all - g : EACH;
            for (int j = 0; j < planes; j++)
                memcpy(&x[j], (const uint8_t *)(t->bits[j] + p * t->bits_pixel) + g / EACH * BYTES,
                       sizeof x[j]);
            if (second)
                memcpy(&y, (const uint8_t *)(t->second + p * t->bits_pixel) + g / EACH * BYTES,
                       sizeof y);
            for (int k = 0; k < n; k++, to += PART) {
                bytes sum = LOAD(t->parts[0] + (x[0] & MASK) * PART);
                UNROLL
                for (int j = 1; j < planes; j++)
                    sum = ADD(sum, LOAD(t->parts[j] + (x[j] & MASK) * PART));
                if (second) sum = ADD(sum, UP_4(LOAD(t->parts[0] + (y & MASK) * PART)));
                STORE(to, sum);
                for (int j = 0; j < planes; j++) x[j] >>= SHIFT;
                y >>= SHIFT;
            }
        }
    }
}

TARGET static void build(const fac_bit_build *t) {
    if (t->second)
        build_of(t, 1, true);
    else if (t->planes == 1)
        build_of(t, 1, false);
    else if (t->planes == 2)
        build_of(t, 2, false);
    else
        build_of(t, t->planes, false);
}
#endif
