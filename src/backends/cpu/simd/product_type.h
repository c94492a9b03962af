/* The register tile of products of one element type.  Parameters: T, and NAME. */

typedef T FAC_JOIN(NAME, vec) __attribute__((vector_size(VL * 4)));
enum { FAC_JOIN(NAME, lanes) = VL * 4 / sizeof(T) };

INLINE void FAC_JOIN(NAME, tile)(const int m, const fac_typed_tile *t) {
    enum { L = FAC_JOIN(NAME, lanes) };
    FAC_JOIN(NAME, vec) acc[TYPED_ROWS][2];
    const T *a = t->a, *b = t->b;
    T *y = t->y;
    UNROLL for (int i = 0; i < m; i++) acc[i][0] = acc[i][1] = (FAC_JOIN(NAME, vec)){ 0 };
    for (int64_t k = 0; k < t->depth; k++, b += 2 * L) {
        FAC_JOIN(NAME, vec) w0, w1;
        memcpy(&w0, b, sizeof w0), memcpy(&w1, b + L, sizeof w1);
        UNROLL for (int i = 0; i < m; i++) {
            const FAC_JOIN(NAME, vec) x = a[i * t->a_row + k] - (FAC_JOIN(NAME, vec)){ 0 };
            acc[i][0] += x * w0;
            acc[i][1] += x * w1;
        }
    }
    UNROLL for (int i = 0; i < m; i++) {
        const FAC_JOIN(NAME, vec) y0 = acc[i][0], y1 = acc[i][1];       /* whole arrays would have to be in memory */
        memcpy(y + i * 2 * L, &y0, sizeof y0), memcpy(y + i * 2 * L + L, &y1, sizeof y1);
    }
}

static void NAME(const fac_typed_tile *t) {
    switch (t->rows) {
    case 1: FAC_JOIN(NAME, tile)(1, t); return;
    case 2: FAC_JOIN(NAME, tile)(2, t); return;
    case 3: FAC_JOIN(NAME, tile)(3, t); return;
    case 4: FAC_JOIN(NAME, tile)(4, t); return;
    case 5: FAC_JOIN(NAME, tile)(5, t); return;
    case 6: FAC_JOIN(NAME, tile)(6, t); return;
    case 7: FAC_JOIN(NAME, tile)(7, t); return;
    default: FAC_JOIN(NAME, tile)(8, t); return;
    }
}
#undef T
#undef NAME
