/* A leg that is a convolution of few pixels on mma.sync, as nv_conv_warps.cl does it: rows of tiles are pixels, columns are channels
 * of y, and the warps of a team share out the terms of the sum.  A 1 x 1 convolution of one pixel is a linear layer.
 *
 *   NAME(x)             x of this code alone
 *   BM, BN, BK          pixels, channels of y and terms of a tile; BM and BN are multiples of 16
 *   DEPTH               k-tiles that a warp loads before it multiplies
 *   STAGE, PARTS        bytes of a k-tile of weights; 2: high and low parts (3XTF32), sums move on after each k-tile
 *   XMEM, RESULT        types of x's and y's elements in memory
 *   MMA(d, a, b)        the instruction
 *   PUT, FOUR_BIAS, FOUR_ADD  how fours of the result and of the two extras are stored and loaded */
#define BLOCKS (BM / 16)
#define LOADS (BK / (int)(64 / sizeof(XMEM)))   /* of 16 bytes, by one lane of a row of a k-tile */
#define ROW_BYTES (BK * (int)sizeof(XMEM))
#define EIGHTS (BN / 8)
#define QUADS (2 * BLOCKS * (BN / 16))          /* fours of sums of a lane */

/* Where tap 0 of a pixel lies in x, and which taps are inside. */
typedef struct { int at; uint inside; } NAME(sight);
INLINE NAME(sight) NAME(sight_of)(local const leg *l, int m) {
    NAME(sight) v;
    const relay_pixel p = relay_pixel_of(l, m);
    const int h = p.row * l->stride[0] + l->origin[0], w = p.column * l->stride[1] + l->origin[1];
    uint inside = 0, bit = 1;
    for (int b = 0; b < l->taps[0]; b++)
        for (int c = 0; c < l->taps[1]; c++, bit <<= 1)
            if ((uint)(h + b * l->far[0]) < (uint)l->in[0] && (uint)(w + c * l->far[1]) < (uint)l->in[1]) inside |= bit;
    v.at = p.image * l->image + h * l->step[0] + w * l->step[1];
    v.inside = m < l->pixels ? inside : 0;
    return v;
}

INLINE void NAME(load_still)(uint *v, global const void *p, int there) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %5, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\nmov.u32 %2, 0;\nmov.u32 %3, 0;\n"
                 "@p ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];\n}\n"
                 : "=&r"(v[0]), "=&r"(v[1]), "=&r"(v[2]), "=&r"(v[3]) : "l"(p), "r"(there));
}
INLINE void NAME(load)(uint *v, global const void *p, int there) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %5, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\nmov.u32 %2, 0;\nmov.u32 %3, 0;\n"
                 "@p ld.global.v4.u32 {%0,%1,%2,%3}, [%4];\n}\n"
                 : "=&r"(v[0]), "=&r"(v[1]), "=&r"(v[2]), "=&r"(v[3]) : "l"(p), "r"(there) : "memory");
}

/* a: [16 pixels][pixel g, g + 8][load][4]; which k-tile: its tap and the first channel of its block. */
INLINE void NAME(load_pixels)(uint *a, local const leg *l, const NAME(sight) *v, int tap, int block, global const XMEM *x, int t,
                              int more) {
    const int far = l->tap[tap] + block;
    UNROLL for (int i = 0; i < 2 * BLOCKS; i++) {
        global const XMEM *from = x + (v[i].at + far);
        UNROLL for (int j = 0; j < LOADS; j++) {
            const int there = more && (v[i].inside >> tap & 1) && block + (4 * j + t) * (int)(16 / sizeof(XMEM)) < l->channels;
            NAME(load)(a + 4 * (i * LOADS + j), from + j * (int)(64 / sizeof(XMEM)), there);
        }
    }
}

/* b: [8 channels][load][4]; w: of lane g, t. */
INLINE void NAME(load_weights)(uint *b, global const uchar *w, int g, int t, int more) {
    const int turn = ROW_BYTES == 128 ? g : g >> 1 & 3;
    UNROLL for (int n = 0; n < EIGHTS; n++) UNROLL for (int j = 0; j < LOADS; j++)
        NAME(load_still)(b + 4 * (n * LOADS + j), w + (8 * n + g) * ROW_BYTES + ((4 * j + t) ^ turn) * 16, more);
}

/* sums: [16 pixels][8 channels][4] */
INLINE void NAME(multiply)(float *sums, const uint *a, const uint *b, const uint *low) {
    UNROLL for (int m = 0; m < BLOCKS; m++) UNROLL for (int n = 0; n < EIGHTS; n++) {
        float *d = sums + 4 * (m * EIGHTS + n);
#if PARTS == 2
        float part[4] = { 0, 0, 0, 0 };
#endif
        UNROLL for (int j = 0; j < LOADS; j++) UNROLL for (int h = 0; h < 2; h++) {
            const uint *one = a + 4 * (2 * m * LOADS + j) + 2 * h, *other = one + 4 * LOADS;
            const uint *by = b + 4 * (n * LOADS + j) + 2 * h;
            const uint raw[4] = { one[0], other[0], one[1], other[1] };
#if PARTS == 2
            uint high[4], rest[4];
            UNROLL for (int e = 0; e < 4; e++) high[e] = nv_high(as_float(raw[e])), rest[e] = nv_low(as_float(raw[e]));
            nv_mma_tf32(part, rest, by);
            nv_mma_tf32(part, high, low + 4 * (n * LOADS + j) + 2 * h);
            nv_mma_tf32(part, high, by);
#else
            MMA(d, raw, by);
#endif
        }
#if PARTS == 2
        UNROLL for (int e = 0; e < 4; e++) d[e] += part[e];
#endif
    }
}

/* Fours of neighbours of a lane: number q is of pixel 16 (q / (BN / 8)) + g + 8 (q / (BN / 16) % 2), channels 16 (q % (BN / 16)) + 4 t. */
INLINE float4 NAME(four_of)(const float *sums, int q) {
    const int c = q % (BN / 16), i = q / (BN / 16) % 2, m = q / (BN / 8);
    const float *d = sums + 4 * (m * EIGHTS + 2 * c) + 2 * i;
    return (float4)(d[0], d[1], d[4], d[5]);
}

/* Where four results go, and what is added to them. */
typedef struct { int good, y; float bias[4], add[4]; } NAME(end);
INLINE NAME(end) NAME(end_of)(local const leg *l, local const ulong *base, int row, int first, int q, int t) {
    NAME(end) e;
    const int group = first / l->row_tiles, c = (first - group * l->row_tiles) * BN + 16 * (q % (BN / 16)) + 4 * t;
    const int at = row + 16 * (q / (BN / 8)) + 8 * (q / (BN / 16) % 2), channel = group * l->rows + c;
    e.good = c < l->rows && at < l->pixels;
    if (!e.good) return e;
    const relay_pixel p = relay_pixel_of(l, at);
    e.y = p.image * l->y_step[0] + p.row * l->y_step[1] + p.column * l->y_step[2] + channel;
    UNROLL for (int k = 0; k < 4; k++) e.bias[k] = e.add[k] = 0;
    if (l->base[BIAS] >= 0) FOUR_BIAS(e.bias, (global const BIASMEM *)relay_at(l, base, BIAS, l->bias) + channel);
    if (l->base[ADD] >= 0)
        FOUR_ADD(e.add, (global const ADDMEM *)relay_at(l, base, ADD, l->add) + p.image * l->add_step[0] + p.row * l->add_step[1] +
                        p.column * l->add_step[2] + channel);
    return e;
}
INLINE void NAME(put)(local const leg *l, local const ulong *base, const NAME(end) *e, float4 sum) {
    float f[4] = { sum.s0, sum.s1, sum.s2, sum.s3 };
    if (!e->good) return;
    relay_finish(l->finish, f, e->bias, e->add);
    PUT((global RESULT *)relay_at(l, base, Y, l->y) + e->y, f);
}

/* One tile; this warp is number me of its team.  parts: of the team's first warp. */
INLINE void NAME(tile)(local const leg *l, local const ulong *base, int tile, int me, int id, local float4 *parts, meetings *met) {
    const int lane = get_local_id(0) & 31, g = lane >> 2, t = lane & 3, team = l->team, all_taps = l->all_taps;
    const int first = tile % l->columns, row = tile / l->columns * BM + g, each = (l->k_tiles + team - 1) / team, from = me * each;
    const int n = min(each, l->k_tiles - from);
    NAME(sight) v[2 * BLOCKS];
    UNROLL for (int i = 0; i < 2 * BLOCKS; i++) {
        v[i] = NAME(sight_of)(l, row + 8 * i);
        v[i].at += t * (int)(16 / sizeof(XMEM));
    }
    int block = from / all_taps, tap = from - block * all_taps;
    block *= BK;
    global const XMEM *x = (global const XMEM *)relay_at(l, base, X, l->x) + (long)(first / l->row_tiles) * l->channels;
    global const uchar *w = relay_at(l, base, W, l->w) + ((size_t)first * l->k_tiles + from) * STAGE;
    float sums[4 * BLOCKS * EIGHTS];
    UNROLL for (int q = 0; q < 4 * BLOCKS * EIGHTS; q++) sums[q] = 0;
    for (int u = 0; u < n; u += DEPTH, w += DEPTH * STAGE) {
        uint a[DEPTH][8 * BLOCKS * LOADS], b[DEPTH][4 * EIGHTS * LOADS], low[DEPTH][PARTS == 2 ? 4 * EIGHTS * LOADS : 1];
        UNROLL for (int d = 0; d < DEPTH; d++) {
            NAME(load_weights)(b[d], w + d * STAGE, g, t, u + d < n);
#if PARTS == 2
            NAME(load_weights)(low[d], w + d * STAGE + STAGE / 2, g, t, u + d < n);
#endif
        }
        relay_wait(met);
        UNROLL for (int d = 0; d < DEPTH; d++) {
            NAME(load_pixels)(a[d], l, v, tap, block, x, t, u + d < n);
            if (++tap == all_taps) tap = 0, block += BK;
        }
        UNROLL for (int d = 0; d < DEPTH; d++)
            if (u + d < n) NAME(multiply)(sums, a[d], b[d], low[d]);
    }
    relay_wait(met);
    if (team == 1) {
        UNROLL for (int q = 0; q < QUADS; q++) {
            const NAME(end) e = NAME(end_of)(l, base, row, first, q, t);
            NAME(put)(l, base, &e, NAME(four_of)(sums, q));
        }
        return;
    }
    NAME(end) e = NAME(end_of)(l, base, row, first, min(me, QUADS - 1), t);
    UNROLL for (int q = 0; q < QUADS; q++) parts[me * (PARTS_FLOATS / 4) + q * 32 + lane] = NAME(four_of)(sums, q);
    nv_meet(id, 32 * team);
    for (int q = me; q < QUADS; q += team) {
        if (q != me) e = NAME(end_of)(l, base, row, first, q, t);
        float4 sum = parts[q * 32 + lane];
        for (int z = 1; z < team; z++) sum += parts[z * (PARTS_FLOATS / 4) + q * 32 + lane];
        NAME(put)(l, base, &e, sum);
    }
    nv_meet(id, 32 * team);                     /* the parts are read: the next tile may write its own */
}

/* Tiles go round the groups before they go round the teams of a group, so that few tiles have a unit each. */
INLINE void NAME(leg)(local const leg *l, local const ulong *base, local float4 *parts, meetings *m) {
    const int warp = get_local_id(0) >> 5, team = warp / l->team, teams = WARPS / l->team, groups = get_num_groups(0);
    const int group = (int)get_group_id(0) - l->shift, at = group < 0 ? group + groups : group;
    for (int tile = team * groups + at; tile < l->tiles; tile += teams * groups)
        NAME(tile)(l, base, tile, warp - team * l->team, 2 + team, parts + team * l->team * (PARTS_FLOATS / 4), m);
}
#undef BLOCKS
#undef LOADS
#undef ROW_BYTES
#undef EIGHTS
#undef QUADS
