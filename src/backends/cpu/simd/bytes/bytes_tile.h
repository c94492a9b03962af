/* The tile of bytes.c for one kind of dot product: TILE is the function's name, DOT(a, x, w) adds
 * four products to each lane, TARGET says what the function needs. */
#define TILE_PASTE_(a, b) a##b
#define TILE_PASTE(a, b) TILE_PASTE_(a, b)
#define TILE_OF(n) TILE_PASTE(TILE, n)

/* Where pixel p of both runs is. */
#define TILE_AT(v, p, n)                                                                           \
    ((p) < (n) ? (uint8_t *)(uintptr_t)t->v##0 + (p)*t->v##_pixel                                  \
               : (uint8_t *)(uintptr_t)t->v##1 + ((p) - (n)) * t->v##_pixel)
#if BY_TWO
/* Bytes of pixel p, and of the next one. */
#define TILE_PUT(sums)                                                                             \
    UNROLL                                                                                         \
    for (int p = 0; p < runs * n; p += 2) {                                                        \
        const bool two = p + 1 < runs * n;                                                         \
        const int b = two ? p + 1 : p;                                                             \
        const WIDE u = words(&e, sums, vectors, a[p][0], a[p][1], TILE_AT(z, p, n));               \
        const WIDE v = two ? words(&e, sums, vectors, a[b][0], a[b][1], TILE_AT(z, b, n)) : u;     \
        put_two(&e, u, v, TILE_AT(y, p, n), two ? TILE_AT(y, b, n) : NULL);                        \
    }
#endif

/* Accumulators begin with the bias. */
TARGET INLINE void TILE_OF(_runs)(const fac_byte_tile *t, const int vectors, const int runs,
                                  const int n) {
    ivec a[2 * RUN][2];
    const ivec b0 = load_int(t->bias), b1 = load_int(t->bias + VL);
    UNROLL
    for (int p = 0; p < runs * n; p++) {
        a[p][0] = b0;
        a[p][1] = b1;
    }
    if (t->sum) { /* a line of each pixel, far apart: on their way while the products are made */
        UNROLL
        for (int p = 0; p < runs * n; p++) __builtin_prefetch(TILE_AT(z, p, n), 0, 3);
    }
    const int8_t *w = t->w;
    for (int r = 0; r < t->R; r++)
        for (int s = 0; s < t->S; s++) {
            const int64_t at = r * t->x_row + s * t->x_column;
            const uint8_t *x0 = t->x0 + at, *x1 = runs > 1 ? t->x1 + at : NULL;
            for (int q = 0; q < t->quads; q++, w += 8 * VL, x0 += 4) {
                const WEIGHTS w0 = WEIGHTS_OF(w), w1 = WEIGHTS_OF(vectors > 1 ? w + 4 * VL : w);
                __builtin_prefetch(w + 1024, 0, 3);
                __builtin_prefetch(w + 1024 + 4 * VL, 0, 3);
                UNROLL
                for (int p = 0; p < runs * n; p++) {
                    const uint8_t *from = p < n ? x0 + p * t->x_pixel : x1 + (p - n) * t->x_pixel;
                    const ivec x = four_bytes(from);
                    a[p][0] = DOT(a[p][0], x, w0);
                    if (vectors > 1) a[p][1] = DOT(a[p][1], x, w1);
                }
                if (runs > 1) x1 += 4;
            }
        }
    if (t->zero) {
        const ivec z0 = load_int(t->zero), z1 = load_int(t->zero + VL);
        UNROLL
        for (int p = 0; p < runs * n; p++) {
            const int32_t sum = p < n ? t->sum0[p] : t->sum1[p - n];
            a[p][0] -= sum * z0;
            a[p][1] -= sum * z1;
        }
    }
#if BY_TWO
    if (t->factor) {
        const ending e = ending_of(t);
        if (t->sum) {
            TILE_PUT(true)
        } else {
            TILE_PUT(false)
        }
        return;
    }
#endif
    UNROLL
    for (int p = 0; p < runs * n; p++)
        finish(t, a[p][0], a[p][1], TILE_AT(y, p, n), t->sum ? TILE_AT(z, p, n) : NULL);
}

/* A function for each size: in one for all, compilers give up on keeping sums in registers. */
#define TILE_SIZE(k)                                                                               \
    TARGET __attribute__((noinline)) static void TILE_OF(_##k)(const fac_byte_tile *t) {           \
        if (t->x1)                                                                                 \
            TILE_OF(_runs)(t, 2, 2, k);                                                            \
        else                                                                                       \
            TILE_OF(_runs)(t, 2, 1, k);                                                            \
    }                                                                                              \
    TARGET __attribute__((noinline)) static void TILE_OF(_half_##k)(const fac_byte_tile *t) {      \
        if (t->x1)                                                                                 \
            TILE_OF(_runs)(t, 1, 2, k);                                                            \
        else                                                                                       \
            TILE_OF(_runs)(t, 1, 1, k);                                                            \
    }
TILE_SIZE(1)
TILE_SIZE(2)
#if VL == 16
TILE_SIZE(3)
TILE_SIZE(4)
TILE_SIZE(5)
TILE_SIZE(6)
TILE_SIZE(7)
#endif

static void TILE(const fac_byte_tile *t) {
    static fac_byte_tile_kernel *const sizes[][2] = {
        { TILE_OF(_half_1), TILE_OF(_1) },
        { TILE_OF(_half_2), TILE_OF(_2) },
#if VL == 16
        { TILE_OF(_half_3), TILE_OF(_3) },
        { TILE_OF(_half_4), TILE_OF(_4) },
        { TILE_OF(_half_5), TILE_OF(_5) },
        { TILE_OF(_half_6), TILE_OF(_6) },
        { TILE_OF(_half_7), TILE_OF(_7) },
#endif
    };
    sizes[t->n - 1][t->columns > VL](t);
}

#undef TILE_PASTE_
#undef TILE_PUT
#undef TILE_AT
#undef TILE_PASTE
#undef TILE_OF
#undef TILE_SIZE
#undef TILE
#undef TARGET
#undef DOT
#undef WEIGHTS
#undef WEIGHTS_OF
