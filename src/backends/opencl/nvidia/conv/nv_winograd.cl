/* Winograd's convolution F(4 x 4, 3 x 3) around products on matrix units, channels last
 * (winograd.cl has the algebra):
 *
 *   V[tile][point][channel] = B' d B     M[tile][point][row] = V U, by point     y = A' M A
 *
 * One item does neighbouring channels of one tile, so that whole lines are read and written. */
#define HALF_ROOT 0.70710678118654752f
#define ROOT 1.4142135623730951f
#define EACH _Pragma("unroll")

typedef struct {
    long x, v; /* where they begin, elements */
    int image, row, column, height, width, pad_h, pad_w, down, across, first, tiles, channels;
} tiles;

#ifdef INPUTS
static inline void to_points(const float2 *d, float2 *v) {
    const float2 a = d[4] - 2 * d[2], b = HALF_ROOT * d[3] - ROOT * d[1], c = d[4] - 0.5f * d[2],
                 e = ROOT * d[3] - HALF_ROOT * d[1];
    v[0] = d[4] - 2.5f * d[2] + d[0];
    v[1] = a + b;
    v[2] = a - b;
    v[3] = c + e;
    v[4] = c - e;
    v[5] = d[5] - 2.5f * d[3] + d[1];
}

kernel void input_tiles(const tiles s, global const float *restrict x, global float *restrict v) {
    const int pairs = s.channels / 2, i = get_global_id(0), tile = i / pairs, c = 2 * (i % pairs);
    if (tile >= s.tiles) return;
    const int column = tile % s.across * 4 - s.pad_w, line = tile / s.across % s.down * 4 - s.pad_h;
    float2 half_way[6][6];
    x += s.x + (long)(s.first + tile / s.across / s.down) * s.image + c;
    EACH for (int i = 0; i < 6; i++) {
        float2 d[6];
        EACH for (int j = 0; j < 6; j++) {
            const bool here =
                ((uint)(line + i) < (uint)s.height) & ((uint)(column + j) < (uint)s.width);
            d[j] = here ? *(global const float2 *)(x + (line + i) * s.row + (column + j) * s.column)
                        : (float2)(0);
        }
        to_points(d, half_way[i]);
    }
    v += s.v + (long)tile * 36 * s.channels + c;
    EACH for (int j = 0; j < 6; j++) {
        float2 d[6], r[6];
        EACH for (int i = 0; i < 6; i++) d[i] = half_way[i][j];
        to_points(d, r);
        EACH for (int i = 0; i < 6; i++) * (global float2 *)(v + (i * 6 + j) * s.channels) = r[i];
    }
}
#endif

#ifdef RESULTS
static inline void from_points(const float4 *m, float4 *y) {
    const float4 a = m[1] + m[2], b = m[1] - m[2], c = m[3] + m[4], d = m[3] - m[4];
    y[0] = m[0] + a + c;
    y[1] = HALF_ROOT * b + ROOT * d;
    y[2] = 0.5f * a + 2 * c;
    y[3] = 0.5f * HALF_ROOT * b + 2 * ROOT * d + m[5];
}

/* s: of M and y; channels are rows. */
kernel void output_tiles(const tiles s, const ends e, global const float *restrict m,
                         global RESULT *y EXTRA_PARAMS) {
    const int fours = s.channels / 4, item = get_global_id(0), tile = item / fours,
              c = 4 * (item % fours);
    if (tile >= s.tiles) return;
    const int left = tile % s.across * 4, top = tile / s.across % s.down * 4,
              image = s.first + tile / s.across / s.down;
    float4 half_way[4][6];
    m += s.v + (long)tile * 36 * s.channels + c;
    EACH for (int j = 0; j < 6; j++) {
        float4 d[6], r[4];
        EACH for (int i = 0; i < 6; i++) d[i] =
            *(global const float4 *)(m + (i * 6 + j) * s.channels);
        from_points(d, r);
        EACH for (int i = 0; i < 4; i++) half_way[i][j] = r[i];
    }
    more more_here;
    more_of_channels(&e, c, &more_here EXTRA_ARGS);
    EACH for (int i = 0; i < 4; i++) {
        float4 r[4];
        from_points(half_way[i], r);
        EACH for (int j = 0; j < 4; j++) {
            if (top + i >= s.height || left + j >= s.width) continue;
            const spot at = spot_of(&e, image, 0, top + i, left + j);
            more_of_pixel(&e, &at, c, &more_here EXTRA_ARGS);
            float out[4] = { r[j].s0, r[j].s1, r[j].s2, r[j].s3 };
            finish4(out, &more_here);
            store4(&e, &at, c, out, y);
        }
    }
}
#endif
