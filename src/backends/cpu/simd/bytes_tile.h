/* The tile of bytes.c for one kind of dot product: TILE is the function's name, DOT(a, x, w) adds
 * four products to each lane, TARGET says what the function needs. */
#define TILE_PASTE_(a, b) a##b
#define TILE_PASTE(a, b) TILE_PASTE_(a, b)
#define TILE_OF(n) TILE_PASTE(TILE, n)

TARGET INLINE void TILE_OF(_runs)(const fac_byte_tile *t, const int runs, const int n) {
    ivec a[2 * RUN][2];
    UNROLL
    for (int p = 0; p < runs * n; p++) a[p][0] = a[p][1] = (ivec){ 0 };
    const int8_t *w = t->w;
    for (int r = 0; r < t->R; r++)
        for (int s = 0; s < t->S; s++) {
            const int64_t at = r * t->x_row + s * t->x_column;
            const uint8_t *x0 = t->x0 + at, *x1 = runs > 1 ? t->x1 + at : NULL;
            for (int q = 0; q < t->quads; q++, w += 8 * VL, x0 += 4) {
                const WEIGHTS w0 = WEIGHTS_OF(w), w1 = WEIGHTS_OF(w + 4 * VL);
                __builtin_prefetch(w + 1024, 0, 3);
                __builtin_prefetch(w + 1024 + 4 * VL, 0, 3);
                UNROLL
                for (int p = 0; p < runs * n; p++) {
                    const uint8_t *from = p < n ? x0 + p * t->x_pixel : x1 + (p - n) * t->x_pixel;
                    const ivec x = four_bytes(from);
                    a[p][0] = DOT(a[p][0], x, w0);
                    a[p][1] = DOT(a[p][1], x, w1);
                }
                if (runs > 1) x1 += 4;
            }
        }
    UNROLL
    for (int p = 0; p < runs * n; p++) {
        const bool first = p < n;
        const int32_t *sum = first ? t->sum0 : t->sum1;
        uint8_t *y =
            first ? (uint8_t *)t->y0 + p * t->y_pixel : (uint8_t *)t->y1 + (p - n) * t->y_pixel;
        const uint8_t *z = first ? t->z0 : t->z1;
        if (t->sum) z += (first ? p : p - n) * t->z_pixel;
        finish(t, a[p][0], a[p][1], t->zero ? sum[first ? p : p - n] : 0, y, z);
    }
}

#define TILE_CASE(k)                                                                               \
    case k:                                                                                        \
        if (t->x1)                                                                                 \
            TILE_OF(_runs)(t, 2, k);                                                               \
        else                                                                                       \
            TILE_OF(_runs)(t, 1, k);                                                               \
        break;
TARGET static void TILE(const fac_byte_tile *t) {
    switch (t->n) {
        TILE_CASE(1)
        TILE_CASE(2)
#if VL == 16
        TILE_CASE(3)
        TILE_CASE(4)
        TILE_CASE(5)
        TILE_CASE(6)
        TILE_CASE(7)
#endif
    default:
        break;
    }
}

#undef TILE_PASTE_
#undef TILE_PASTE
#undef TILE_OF
#undef TILE_CASE
#undef TILE
#undef TARGET
#undef DOT
#undef WEIGHTS
#undef WEIGHTS_OF
