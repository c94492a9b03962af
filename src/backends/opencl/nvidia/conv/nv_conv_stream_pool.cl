/* Max pooling of 2 x 2 in the epilogue of nv_conv_stream.cl, which stands between that text and
 * nv_conv_stream_use.cl: a quarter of the pixels is written, and nothing reads them again to pool
 * them.
 *
 * A position is a pair of pixels, one below the other: line h of positions is lines 2 h and 2 h + 1
 * of the image, so a consumer has the upper pixels of its 64 positions in one block of rows and the
 * lower ones in the other, and a lane holds both of each pair.  Lines are filled up with columns of
 * zeros, at least one, to an even length: the right padding of a line is the left one of the next,
 * and a window's two columns are neighbouring rows of a block, in lanes whose numbers differ in one
 * bit.  What lies after the last whole window is not multiplied.
 *
 * A stage of A is four parts of SPAN rows, the lines 2 h - 1 .. 2 h + 2 of the tile's positions and
 * of one more on both sides: tap (i, j) of the upper pixels is part i from row j on, of the lower
 * ones the part after it. */
#if ROWS != 2 || !HALO || SLOTS || SPLIT || MOMENTS
#error "pooling is for two blocks of rows with a halo, written directly"
#endif

/* Where the window that begins at position p, an even one, is in y; false: nowhere. */
INLINE bool find_window(const sizes *s, const ends *e, int p, spot *to) {
    const pixel at = pixel_of(s, p);
    *to = spot_of(e, at.n, 0, at.h, at.w >> 1);
    return p < s->positions && at.w + 1 < s->wide.out;
}

/* Lane 4 g + t has columns g and g + 8 of its warp's 16: of two neighbouring lanes g the even one
 * takes the window of both columns g, the odd one that of both columns g + 8.  Extras are of the
 * pooled image.  place0: this consumer's first position. */
INLINE void finish_pooled(const sizes *s, const ends *e, float sums[2][BN / 2], global RESULT *y,
                          int tile, int place0, int warp, int lane EXTRA_PARAMS) {
    const int g = lane >> 2, t = lane & 3, first = tile % s->across * BN;
    const bool odd = g & 1;
    spot to;
    const bool there = find_window(s, e, place0 + 16 * warp + (g & 6) + (odd ? 8 : 0), &to);
    UNROLL
    for (int q0 = 0; q0 < BN / 16; q0 += AHEAD) {
        more with[AHEAD];
        asm volatile("" ::: "memory");
        UNROLL
        for (int q = 0; q < AHEAD; q++) {
            const int channel = first + 16 * (q0 + q) + 4 * t;
            if (!there || channel >= s->rows) continue;
            more_of_channels(e, channel, &with[q] EXTRA_ARGS);
            more_of_pixel(e, &to, channel, &with[q] EXTRA_ARGS);
        }
        UNROLL
        for (int q = 0; q < AHEAD; q++) {
            const int channel = first + 16 * (q0 + q) + 4 * t;
            float v[4];
            UNROLL
            for (int k = 0; k < 4; k++) {
                const int at = 8 * (q0 + q) + 4 * (k / 2) + k % 2;
                const float near = nv_larger(sums[0][at], sums[1][at]),
                            far = nv_larger(sums[0][at + 2], sums[1][at + 2]);
                v[k] = nv_larger_of_lanes(near, far, odd, 4);
            }
            if (there && channel < s->rows) {
                finish4(v, &with[q]);
                store4(e, &to, channel, v, y);
            }
        }
    }
}
