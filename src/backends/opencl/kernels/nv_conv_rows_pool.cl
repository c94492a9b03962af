/* Max pooling of 2 x 2 in the epilogue of nv_conv_rows.cl: four rows of a tile are the pixels of one window (pixel_of in
 * nv_conv_look.cl), and a quarter of the pixels is written. */
#ifdef MOMENTS
#error "moments are of what the convolution makes"
#endif

INLINE float larger(float a, float b) {
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}
INLINE float of_neighbour(float x) {
    float r;
    asm volatile("shfl.sync.bfly.b32 %0, %1, 4, 0x1f, 0xffffffff;" : "=f"(r) : "f"(x));
    return r;
}
INLINE float of_second(float x) {
    float r;
    asm volatile("shfl.sync.bfly.b32 %0, %1, 8, 0x1f, 0xffffffff;" : "=f"(r) : "f"(x));
    return r;
}

/* Lane 4 g + t has rows g and g + 8 of its warp's 16: windows g / 4 and g / 4 + 2.  Of neighbouring lanes g the even one goes on
 * with the first, the odd one with the other, and meets the next pair; the first of the two pairs stores.  row: of this lane. */
INLINE void finish_pooled(const look *s, const ends *e, const float *sums, int row, int first, int t, global RESULT *y EXTRA_PARAMS) {
    const bool odd = row & 1;
    const int mine = (row & ~3) + (odd ? 8 : 0), column = first % s->row_tiles * BN + 4 * t, group = first / s->row_tiles * s->rows;
    const bool stores = !(row & 2) && mine < s->pixels;
    const pixel p = pixel_of(s, mine);
    const spot at = spot_of(e, p.image, p.depth, p.row >> 1, p.column >> 1);
    UNROLL for (int q = 0; q < BN / 16; q++) {
        const int c = column + 16 * q;
        const bool there = stores && c < s->rows;
        more m;
        float v[4];
        if (there) {
            more_of_channels(e, group + c, &m EXTRA_ARGS);
            more_of_pixel(e, &at, group + c, &m EXTRA_ARGS);
        }
        UNROLL for (int k = 0; k < 4; k++) {
            const float near = sums[8 * q + 4 * (k / 2) + k % 2], far = sums[8 * q + 4 * (k / 2) + k % 2 + 2];
            v[k] = larger(odd ? far : near, of_neighbour(odd ? near : far));
            v[k] = larger(v[k], of_second(v[k]));
        }
        if (there) {
            finish4(v, &m);
            store4(e, &at, group + c, v, y);
        }
    }
}
