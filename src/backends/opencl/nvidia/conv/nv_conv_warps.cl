/* Convolution of few pixels as a product on mma.sync, made to end soon rather than to fill the
 * units: rows of tiles are pixels, columns are channels of y, and the warps of a group share out
 * the terms of the sum.
 *
 * No operand goes through local memory: lane 4 g + t of a warp reads 16 bytes of its pixels and of
 * its rows of weights, which are in order, so that its registers hold the same channels of both.
 * DEPTH k-tiles are on the way at once.  At the end the warps' sums meet in local memory and are
 * added in their order.
 *
 *   BM, BN, BK          pixels, channels of y and terms of a tile; BM and BN are multiples of 16
 *   WARPS, DEPTH        of a group; k-tiles that a warp loads before it multiplies
 *   STAGE, PARTS        bytes of a k-tile of weights; 2: high and low parts (3XTF32), sums move on
 *                       after each k-tile
 *   XMEM, X16           type of x's elements; it has 16 bits
 *   MMA(d, a, b)        the instruction
 *   RAGGED, SPLIT, DEEP as in nv_conv_rows.cl */
#define BLOCKS (BM / 16)
#define ROW_BYTES (BK * (int)sizeof(XMEM))

INLINE void load16_if(uint *v, global const void *p, int there) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.s32 p, %5, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\n"
        "mov.u32 %2, 0;\nmov.u32 %3, 0;\n"
        "@p ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];\n}\n"
        : "=&r"(v[0]), "=&r"(v[1]), "=&r"(v[2]), "=&r"(v[3])
        : "l"(p), "r"(there));
}

/* a: [16 pixels][pixel g, g + 8][load][4] */
INLINE void load_pixels(uint *a, const look *s, const sight *v, walk *k, global const XMEM *x,
                        local const TAP *taps, int t, int more) {
    UNROLL for (int i = 0; i < 2 * BLOCKS; i++) {
        global const XMEM *from = x + (v[i].at + k->at);
        UNROLL for (int j = 0; j < LOADS; j++) {
            int there = more && (v[i].inside >> k->tap & 1);
#ifdef RAGGED
            there = there && k->block + (4 * j + t) * (int)(16 / sizeof(XMEM)) < s->channels;
#endif
            load16_if(a + 4 * (i * LOADS + j), from + j * (int)(64 / sizeof(XMEM)), there);
        }
    }
    if (++k->tap == s->all_taps) {
        k->tap = 0;
        k->block += BK;
    }
    k->at = taps[k->tap] + k->block;
}

/* b: [8 channels][load][4]; w: of lane g, t. */
INLINE void load_weights(uint *b, global const uchar *w, int g, int t, int more) {
    const int turn = ROW_BYTES == 128 ? g : g >> 1 & 3;
    UNROLL for (int n = 0; n < EIGHTS; n++) UNROLL for (int j = 0; j < LOADS; j++)
        load16_if(b + 4 * (n * LOADS + j), w + (8 * n + g) * ROW_BYTES + ((4 * j + t) ^ turn) * 16,
                  more);
}

kernel GROUP(ITEMS) void conv_rows(const look s, const ends e, global const XMEM *restrict x,
                                   global const uchar *restrict w, global RESULT *y EXTRA_PARAMS) {
    local float4 parts[WARPS * QUADS * 32];
    local TAP taps[TAPS_MOST];
    const int item = get_local_id(0), lane = item & 31, warp = item >> 5, g = lane >> 2,
              t = lane & 3, first = get_group_id(0);
    const int row = get_group_id(1) * BM + g, each = (s.k_tiles + WARPS - 1) / WARPS,
              from = warp * each;
    const int n = min(each, s.k_tiles - from);
    sight v[2 * BLOCKS];
    UNROLL for (int i = 0; i < 2 * BLOCKS; i++) {
        v[i] = sight_of(&s, row + 8 * i);
        v[i].at += t * (int)(16 / sizeof(XMEM));
    }
    fill_taps(&s, taps);
    barrier(CLK_LOCAL_MEM_FENCE);
    walk k;
    k.tap = s.all_taps ? from % s.all_taps : 0;
    k.block = s.all_taps ? from / s.all_taps * BK : 0;
    k.at = taps[k.tap] + k.block;
    x += s.x + (long)(first / s.row_tiles) * s.channels;
    w += s.w + ((size_t)first * s.k_tiles + from) * STAGE;
    float sums[CHAINS * SUMS];
    UNROLL for (int q = 0; q < CHAINS * SUMS; q++) sums[q] = 0;
    for (int u = 0; u < n; u += DEPTH, w += DEPTH * STAGE) {
        uint a[DEPTH][8 * BLOCKS * LOADS], b[DEPTH][4 * EIGHTS * LOADS],
            low[DEPTH][PARTS == 2 ? 4 * EIGHTS * LOADS : 1];
        UNROLL for (int d = 0; d < DEPTH; d++) {
            load_weights(b[d], w + d * STAGE, g, t, u + d < n);
#if PARTS == 2
            load_weights(low[d], w + d * STAGE + STAGE / 2, g, t, u + d < n);
#endif
            load_pixels(a[d], &s, v, &k, x, taps, t, u + d < n);
        }
        UNROLL for (int d = 0; d < DEPTH; d++)
            if (u + d < n) multiply(sums, a[d], b[d], low[d]);
    }
    join(sums);
    UNROLL for (int q = 0; q < QUADS; q++) parts[(warp * QUADS + q) * 32 + lane] = four_of(sums, q);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int q = warp; q < QUADS; q += WARPS) {
        const int c = first % s.row_tiles * BN + 16 * (q % SIXTEENS) + 4 * t,
                  group = first / s.row_tiles * s.rows;
        const int at = row + 8 * (q / SIXTEENS);
        if (c >= s.rows || at >= s.pixels) continue;
        const pixel p = pixel_of(&s, at);
        const spot place = spot_of(&e, p.image, p.depth, p.row, p.column);
        more m;
        more_of_channels(&e, group + c, &m EXTRA_ARGS);
        more_of_pixel(&e, &place, group + c, &m EXTRA_ARGS);
        float4 sum = parts[q * 32 + lane];
        UNROLL for (int z = 1; z < WARPS; z++) sum += parts[(z * QUADS + q) * 32 + lane];
        float f[4] = { sum.s0, sum.s1, sum.s2, sum.s3 };
        finish4(f, &m);
        store4(&e, &place, group + c, f, y);
    }
}
