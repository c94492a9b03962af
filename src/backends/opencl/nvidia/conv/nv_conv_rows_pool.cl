/* Max pooling of 2 x 2 in the epilogue of nv_conv_rows.cl: four rows of a tile are the pixels of
 * one window (pixel_of in nv_conv_look.cl), and a quarter of the pixels is written. */
#ifdef MOMENTS
#error "moments are of what the convolution makes"
#endif

/* Lane 4 g + t has rows g and g + 8 of its warp's 16: windows g / 4 and g / 4 + 2.  Of neighbouring
 * lanes g the even one goes on with the first, the odd one with the other, and meets the next pair;
 * the first of the two pairs stores.  row: of this lane. */
INLINE void finish_pooled(const look *s, const ends *e, const float *sums, int row, int first,
                          int t, global RESULT *y EXTRA_PARAMS) {
    const bool odd = row & 1;
    const int mine = (row & ~3) + (odd ? 8 : 0);
    const int column = first % s->row_tiles * BN + 4 * t, group = first / s->row_tiles * s->rows;
    const bool stores = !(row & 2) && mine < s->pixels;
    const pixel p = pixel_of(s, mine);
    const spot at = spot_of(e, p.image, p.depth, p.row >> 1, p.column >> 1);
    UNROLL
    for (int q = 0; q < BN / 16; q++) {
        const int c = column + 16 * q;
        const bool there = stores && c < s->rows;
        more m;
        float v[4];
        if (there) {
            more_of_channels(e, group + c, &m EXTRA_ARGS);
            more_of_pixel(e, &at, group + c, &m EXTRA_ARGS);
        }
        UNROLL
        for (int k = 0; k < 4; k++) {
            const float near = sums[8 * q + 4 * (k / 2) + k % 2],
                        far = sums[8 * q + 4 * (k / 2) + k % 2 + 2];
            v[k] = nv_larger_of_lanes(near, far, odd, 4);
            v[k] = nv_larger(v[k], nv_of_lane(v[k], 8));
        }
        if (there) {
            finish4(v, &m);
            store4(e, &at, group + c, v, y);
        }
    }
}
