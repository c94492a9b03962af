/* Convolution as a product on mma.sync (nv_mma_tiles.cl), for sm_80 and newer: rows of tiles are
 * pixels, columns are channels of y.
 *
 * Both operands come into local memory by asynchronous copies, STAGES - 1 k-tiles ahead: pixels by
 * 16 bytes each, what lies outside as zeros, weights as ready images (nvidia/conv/conv.h).  One
 * kernel for any window, stride, dilation and padding: a k-tile is BK channels of one tap.
 *
 *   BM, BN, BK, ITEMS   rows, columns, terms of a k-tile; items of a group
 *   STAGES              k-tiles in local memory; STAGE: bytes of one's weights
 *   XMEM, X16, FEW, RAGGED, SPLIT, DEEP     as in nv_conv_rows.cl */
#define A_BYTES (BM * A_ROW)
#define A_CHUNKS (A_ROW / 16)
#define A_DOWN (ITEMS / A_CHUNKS) /* rows between two that an item copies */
#define ROOM (A_BYTES + STAGE)

#define A_PASSES (BM / A_DOWN)

/* Which k-tile is copied next; where its tap lies. */
typedef struct {
    int block, tap, a, b, c, at;
} place_in;
#ifdef FEW
INLINE place_in place_at(const look *s, int k0) { return (place_in){ 0, k0, 0, 0, 0, 0 }; }

INLINE void copy_pixels(uint to, const look *s, place_in *k, global const XMEM *x, const sight *v,
                        local const TAP *taps) {
    const int chunk = get_local_id(0) % A_CHUNKS, row = get_local_id(0) / A_CHUNKS;
    const int4 tap = taps[k->tap * (BK / 4) + chunk];
    to += row * A_ROW + ((chunk ^ a_turn_of(row)) << 4);
    UNROLL
    for (int i = 0; i < A_PASSES; i++) {
        const int there = sees(s, v + i, tap);
        global const XMEM *from = there ? x + (v[i].at + tap.s0) : x;
#ifdef X16
        uint u[4];
        UNROLL
        for (int c = 0; c < 4; c++)
            u[c] = c < FEW ? load1_or_zero(from + c * s->channel, there) : 0;
        nv_local_store4(to + i * (A_DOWN * A_ROW), u);
#else
        UNROLL
        for (int c = 0; c < 4; c++)
            nv_copy4(to + i * (A_DOWN * A_ROW) + 4 * c, c < FEW ? from + c * s->channel : x,
                     there && c < FEW ? 4 : 0);
#endif
    }
    k->tap++;
}
#else
INLINE int far_of(const look *s, const place_in *k) {
    return k->a * s->far[0] * s->step[0] + k->b * s->far[1] * s->step[1] +
           k->c * s->far[2] * s->step[2] + k->block;
}
INLINE place_in place_at(const look *s, int k0) {
    const int taps = max(s->all_taps, 1), tap = k0 % taps, t2 = max(s->taps[2], 1),
              t1 = max(s->taps[1], 1);
    place_in k = { k0 / taps * BK, tap, tap / t2 / t1, tap / t2 % t1, tap % t2, 0 };
    k.at = far_of(s, &k);
    return k;
}

INLINE void copy_pixels(uint to, const look *s, place_in *k, global const XMEM *x, const sight *v,
                        local const TAP *taps) {
    const int chunk = get_local_id(0) % A_CHUNKS, row = get_local_id(0) / A_CHUNKS;
    to += row * A_ROW + ((chunk ^ a_turn_of(row)) << 4);
#ifdef RAGGED
    const bool in = k->block + chunk * (int)(16 / sizeof(XMEM)) < s->channels;
#else
    const bool in = true;
#endif
    UNROLL
    for (int i = 0; i < A_PASSES; i++) {
        const bool there = in && (v[i].inside >> k->tap & 1);
        nv_copy16_near(to + i * (A_DOWN * A_ROW), x + (there ? v[i].at + k->at : 0),
                       there ? 16 : 0);
    }
    k->tap++;
    if (++k->c == s->taps[2]) k->c = 0, k->b++;
    if (k->b == s->taps[1]) k->b = 0, k->a++;
    if (k->a == s->taps[0]) {
        k->a = k->tap = 0;
        k->block += BK;
    }
    k->at = far_of(s, k);
}
#endif

INLINE void copy_weights(uint to, global const uchar *from) {
    UNROLL
    for (int i = get_local_id(0) * 16; i < STAGE; i += ITEMS * 16) nv_copy16(to + i, from + i, 16);
}

/* Sixteens of columns that are finished together, so that their loads are on the way at once. */
#define TOGETHER (EXTRAS < 2 || NS < 2 ? 1 : 2)
INLINE void finish_tile(const look *s, const ends *e, float (*sum)[8 * NS], int row, int first,
                        int column, global RESULT *y EXTRA_PARAMS) {
    const int group = first / s->row_tiles * s->rows;
    UNROLL
    for (int m = 0; m < MS; m++) {
        spot at[2];
        UNROLL
        for (int i = 0; i < 2; i++) {
            const pixel p = pixel_of(s, row + 16 * m + 8 * i);
            at[i] = spot_of(e, p.image, p.depth, p.row, p.column);
        }
        UNROLL
        for (int q0 = 0; q0 < NS; q0 += TOGETHER) {
            more others[TOGETHER][2];
            UNROLL
            for (int q = 0; q < TOGETHER; q++) UNROLL
            for (int i = 0; i < 2; i++) {
                const int c = column + 16 * (q0 + q);
                if (c >= s->rows || row + 16 * m + 8 * i >= s->pixels) continue;
                more_of_channels(e, group + c, &others[q][i] EXTRA_ARGS);
                more_of_pixel(e, &at[i], group + c, &others[q][i] EXTRA_ARGS);
            }
            UNROLL
            for (int q = 0; q < TOGETHER; q++) UNROLL
            for (int i = 0; i < 2; i++) {
                const int c = column + 16 * (q0 + q), k = 8 * (q0 + q) + 2 * i;
                if (c >= s->rows || row + 16 * m + 8 * i >= s->pixels) continue;
                float v[4] = { sum[m][k], sum[m][k + 1], sum[m][k + 4], sum[m][k + 5] };
                finish4(v, &others[q][i]);
                store4(e, &at[i], group + c, v, y);
            }
        }
    }
}

kernel GROUP(ITEMS) void conv_rows(const look s, const ends e, global const XMEM *restrict x,
                                   global const uchar *restrict w,
                                   global RESULT *y SPLIT_PARAMS EXTRA_PARAMS) {
    local uchar tiles[STAGES * ROOM] __attribute__((aligned(1024)));
#ifdef FEW
    local TAP taps[TAPS_MOST];
    fill_taps(&s, taps);
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    local const TAP *taps = 0;
#endif
#ifdef SPLIT
    const int k0 = get_group_id(2) * s.each_k, rest = s.k_tiles - k0,
              n = rest < s.each_k ? rest : s.each_k;
#else
    const int k0 = 0, n = s.k_tiles;
#endif
    const int item = get_local_id(0), lane = item & 31, warp = item >> 5, first = get_group_id(0),
              row = get_group_id(1) * BM;
    const uint at = LOCAL_AT(tiles);
    const seat me = seat_of(warp, lane);
    sight v[A_PASSES];
    UNROLL
    for (int i = 0; i < A_PASSES; i++) {
        v[i] = sight_of(&s, row + item / A_CHUNKS + i * A_DOWN);
#ifndef FEW
        v[i].at += item % A_CHUNKS * (int)(16 / sizeof(XMEM));
#endif
    }
    place_in k = place_at(&s, k0);
    x += s.x;
#ifndef FEW
    x += (long)(first / s.row_tiles) * s.channels;
#endif
    w += s.w + ((size_t)first * s.k_tiles + k0) * STAGE;
    float sum[MS][8 * NS];
    UNROLL
    for (int m = 0; m < MS; m++) UNROLL
    for (int q = 0; q < 8 * NS; q++) sum[m][q] = 0;
#define FETCH(stage)                                                                               \
    do {                                                                                           \
        copy_pixels(at + (stage)*ROOM, &s, &k, x, v, taps);                                        \
        copy_weights(at + (stage)*ROOM + A_BYTES, w);                                              \
        w += STAGE;                                                                                \
    } while (0)
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < n) FETCH(i);
        NV_COPIES_COMMIT();
    }
    int stage = 0, next = STAGES - 1;
    for (int i = 0; i < n; i++) {
        NV_COPIES_WAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i + STAGES - 1 < n) FETCH(next);
        NV_COPIES_COMMIT();
        multiply(sum, at + stage * ROOM, at + stage * ROOM + A_BYTES, me);
        if (++stage == STAGES) stage = 0;
        if (++next == STAGES) next = 0;
    }
#ifdef SPLIT
    /* nothing reads tiles any more */
    if (!add_parts(sum[0], work + s.work, counters + s.counters, (local uint *)tiles)) return;
#endif
    finish_tile(&s, &e, sum, row + warp % WARPS_M * WM + (lane >> 2), first,
                first % s.row_tiles * BN + warp / WARPS_M * WN + 4 * (lane & 3), y EXTRA_ARGS);
}
