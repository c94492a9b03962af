/* A tile of bits for each number of pixels: simd/bits/bits.c sets TILE, TARGET and BODY. */
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        if (t->x1)                                                                                 \
            BODY(t, 2, n);                                                                         \
        else                                                                                       \
            BODY(t, 1, n);                                                                         \
        break;

TARGET static void TILE(const fac_bit_tile *t) {
    switch (t->n) {
        CASE(1)
        CASE(2)
#if VL == 16
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
#endif
    }
}
#undef CASE
#undef TILE
#undef TARGET
#undef BODY
