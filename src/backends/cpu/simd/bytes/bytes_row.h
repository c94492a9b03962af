/* The template of depthwise rows, once for each way to multiply: ROW names it, TARGET is its
 * attribute, ADD(a, x, w) is a + x w of numbers that fit into 16 bits.  Included by bytes.c.
 *
 * STRIP pixels are computed at a time, so that a vector of weights is read once for all of them.
 * Where the window moves by its own columns, neighbours share what they read of x. */
#define ROW_PASTE_(a, b) a##b
#define ROW_PASTE(a, b) ROW_PASTE_(a, b)
#define ROW_OF(n) ROW_PASTE(ROW, n)

TARGET INLINE void ROW_OF(_taps)(const fac_byte_row *t, const uint8_t *x, int c, ivec *a,
                                 const int n) {
    const int32_t *w = t->w + c;
    UNROLL
    for (int k = 0; k < n; k++) a[k] = load_int(t->bias + c);
    for (int r = 0; r < t->R; r++)
        for (int s = 0; s < t->S; s++, w += t->w_tap) {
            const uint8_t *from = x + r * t->x_row + s * t->x_column + c;
            const ivec tap = load_int(w);
            UNROLL
            for (int k = 0; k < n; k++) a[k] = ADD(a[k], wide_bytes(from + k * t->x_pixel), tap);
        }
}

/* Three columns a row, one pixel apart. */
TARGET INLINE void ROW_OF(_three)(const fac_byte_row *t, const uint8_t *x, int c, ivec *a) {
    const int32_t *w = t->w + c;
    ivec v[STRIP + 2];
    UNROLL
    for (int k = 0; k < STRIP; k++) a[k] = load_int(t->bias + c);
    for (int r = 0; r < t->R; r++) {
        UNROLL
        for (int k = 0; k < STRIP + 2; k++)
            v[k] = wide_bytes(x + r * t->x_row + k * t->x_pixel + c);
        UNROLL
        for (int s = 0; s < 3; s++) {
            const ivec tap = load_int(w + s * t->w_tap);
            UNROLL
            for (int k = 0; k < STRIP; k++) a[k] = ADD(a[k], v[k + s], tap);
        }
        w += 3 * t->w_tap;
    }
}

/* n pixels from here on: STRIP of them, or one. */
TARGET INLINE void ROW_OF(_pixels)(const fac_byte_row *t, int64_t first, const int n) {
    const bool three = n == STRIP && t->S == 3 && t->x_pixel == t->x_column;
    const uint8_t *x = t->x + first * t->x_pixel;
    uint8_t *y = (uint8_t *)t->y + first * t->y_pixel;
    for (int c = 0; c < t->channels; c += VL) {
        const int left = t->channels - c < VL ? t->channels - c : VL;
        ivec a[STRIP];
        if (three)
            ROW_OF(_three)(t, x, c, a);
        else
            ROW_OF(_taps)(t, x, c, a, n);
        UNROLL
        for (int k = 0; k < n; k++) put_row(t, a[k], y + k * t->y_pixel, c, left);
    }
}

TARGET static void ROW(const fac_byte_row *t) {
    int64_t p = 0;
    for (; p + STRIP <= t->pixels; p += STRIP) ROW_OF(_pixels)(t, p, STRIP);
    for (; p < t->pixels; p++) ROW_OF(_pixels)(t, p, 1);
}
#undef ROW_PASTE_
#undef ROW_PASTE
#undef ROW_OF
#undef ROW
#undef TARGET
#undef ADD
