/* The register tile of products of one element type.  Parameters: T, and NAME. */

typedef T FAC_JOIN(NAME, vec) __attribute__((vector_size(VL * 4)));
enum { FAC_JOIN(NAME, lanes) = VL * 4 / sizeof(T) };

/* One term of every sum. */
INLINE void FAC_JOIN(NAME, step)(const int m, const T *a, const T *b,
                                 FAC_JOIN(NAME, vec) acc[MR][2]) {
    FAC_JOIN(NAME, vec) w0, w1;
    memcpy(&w0, b, sizeof w0), memcpy(&w1, b + FAC_JOIN(NAME, lanes), sizeof w1);
    UNROLL for (int i = 0; i < m; i++) {
        const FAC_JOIN(NAME, vec) x = a[i * FAC_TYPED_CHUNK] - (FAC_JOIN(NAME, vec)){ 0 };
        acc[i][0] += x * w0;
        acc[i][1] += x * w1;
    }
}

INLINE void FAC_JOIN(NAME, tile)(const int m, const fac_typed_tile *t) {
    enum { L = FAC_JOIN(NAME, lanes), CHUNK = FAC_TYPED_CHUNK };
    FAC_JOIN(NAME, vec) acc[MR][2];
    const T *a = t->a, *b = t->b;
    T *y = t->y;
    UNROLL for (int i = 0; i < m; i++) {
        acc[i][0] = acc[i][1] = (FAC_JOIN(NAME, vec)){ 0 };
        __builtin_prefetch(y + i * t->y_row, 1, 3),
            __builtin_prefetch(y + i * t->y_row + 2 * L - 1, 1, 3);
    }
    int64_t k = 0;
    for (; k + CHUNK <= t->depth; k += CHUNK, a += m * CHUNK)
        UNROLL for (int j = 0; j < CHUNK; j++, b += 2 * L) FAC_JOIN(NAME, step)(m, a + j, b, acc);
    for (; k < t->depth; k++, a++, b += 2 * L) FAC_JOIN(NAME, step)(m, a, b, acc);
    UNROLL for (int i = 0; i < m; i++) {
        /* whole arrays would have to be in memory */
        FAC_JOIN(NAME, vec) y0 = acc[i][0], y1 = acc[i][1], old;
        T *to = y + i * t->y_row;
        if (t->add) memcpy(&old, to, sizeof old), y0 += old;
        if (t->add) memcpy(&old, to + L, sizeof old), y1 += old;
        memcpy(to, &y0, sizeof y0), memcpy(to + L, &y1, sizeof y1);
    }
}

#define CASE(m, name)                                                                              \
    case m:                                                                                        \
        FAC_JOIN(name, tile)(m, t);                                                                \
        return;
static void NAME(const fac_typed_tile *t) {
    switch (t->rows) {
        ALL_ROWS(CASE, NAME)
    default:
        return;
    }
}
#undef CASE
#undef T
#undef NAME
