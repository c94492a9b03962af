/* A leg that is a convolution of few pixels on mma.sync: rows of tiles are pixels, columns are
 * channels of y, and the warps of a team share out the terms of the sum, as in nv_conv_warps.cl
 * (products: nv_warp_products.cl).  A 1 x 1 convolution of images of one pixel is a linear layer.
 *
 * A level is as long as the way of one tile from the meeting on, so all that needs no results of
 * others is done before: where pixels lie, the first weights, biases, where results go.
 *
 *   NAME(x)             x of this code alone
 *   BM, BN, BK          pixels, channels of y and terms of a tile; BM and BN are multiples of 16
 *   DEPTH               k-tiles that a warp loads before it multiplies
 *   STAGE, PARTS        bytes of a k-tile of weights; 2: high and low parts (3XTF32), sums move on
 *                       after each k-tile
 *   WINDOW              there are several taps, or pads; else one tap is all there is, and inside
 *   RAGGED              channels end within a k-tile
 *   XMEM, RESULT        types of x's and y's elements in memory
 *   MMA(d, a, b)        the instruction
 *   PUT, FOUR_BIAS, FOUR_ADD  how fours of the result and of the two extras are stored and
 *                             loaded */
#define ROWS (BM / 8) /* pixels of a lane */
#define ROW_BYTES (BK * (int)sizeof(XMEM))

/* A pixel: where it begins in x (tap 0), in y and in what is added; which taps are inside. */
typedef struct {
    int x, y, add, good;
    uint inside;
} NAME(row);
INLINE NAME(row) NAME(row_of)(local const leg *l, int m) {
    NAME(row) r;
    const relay_pixel p = relay_pixel_of(l, min(m, l->pixels - 1));
    const int h = p.row * l->stride[0] + l->origin[0], w = p.column * l->stride[1] + l->origin[1];
    r.x = p.image * l->image + h * l->step[0] + w * l->step[1];
    r.y = relay_place(p, l->y_step);
    r.add = relay_place(p, l->add_step);
    r.good = m < l->pixels;
    r.inside = 1;
#ifdef WINDOW
    uint across = 0, inside = 0;
    const int taps = l->taps[1];
    for (int c = 0; c < taps; c++)
        across |= (uint)((uint)(w + c * l->far[1]) < (uint)l->in[1]) << c;
    for (int b = 0; b < l->taps[0]; b++)
        if ((uint)(h + b * l->far[0]) < (uint)l->in[0]) inside |= across << b * taps;
    r.inside = r.good ? inside : 0;
#endif
    return r;
}

/* b: [8 channels][load][4]; w: of lane g, t; flip: how far the second chunk of a swizzled row is
 * from the first. */
INLINE void NAME(load_weights)(uint *b, uint *low, global const uchar *w, long flip) {
    UNROLL
    for (int n = 0; n < EIGHTS; n++) UNROLL
    for (int j = 0; j < LOADS; j++) {
        relay_load_still(b + 4 * (n * LOADS + j), w + 8 * n * ROW_BYTES + j * flip);
#if PARTS == 2
        relay_load_still(low + 4 * (n * LOADS + j), w + STAGE / 2 + 8 * n * ROW_BYTES + j * flip);
#endif
    }
}

/* Where the next k-tile of pixels is read; channels: from this lane's on. */
typedef struct {
    global const XMEM *at[ROWS], *zeros;
    int tap, block, channels;
} NAME(walk);

/* a: [pixel][load][4].  Pixels outside are read from a place with zeros: selecting between two
 * addresses is cheaper than a predicated load. */
INLINE void NAME(load_pixels)(uint *a, local const leg *l, const NAME(row) * row, NAME(walk) * k,
                              int more) {
#ifdef WINDOW
    const int far = l->tap[k->tap] + k->block;
#else
    const int far = k->block;
#endif
    UNROLL
    for (int i = 0; i < ROWS; i++) {
#ifdef WINDOW
        const int inside = more && row[i].inside >> k->tap & 1;
#else
        const int inside = more;
#endif
        global const XMEM *from = inside ? k->at[i] + far : k->zeros;
        UNROLL
        for (int j = 0; j < LOADS; j++) {
            global const XMEM *p = from + j * (int)(64 / sizeof(XMEM));
#ifdef RAGGED
            p = inside && k->block + j * (int)(64 / sizeof(XMEM)) < k->channels ? p : k->zeros;
#endif
            relay_load(a + 4 * (i * LOADS + j), p);
        }
    }
#ifdef WINDOW
    if (++k->tap == l->all_taps) {
        k->tap = 0;
        k->block += BK;
    }
#else
    k->block += BK;
#endif
}

/* Where four results go, what is added to them. */
typedef struct {
    int good, y, add_at;
    float bias[4], add[4];
} NAME(end);
/* c: the first channel of the sixteen, of the whole image; left: channels of the group from there
 * on. */
INLINE NAME(end) NAME(end_of)(local const leg *l, local const ulong *base, const NAME(row) * r,
                              int c, int left, int t) {
    NAME(end) e;
    e.good = r->good && 4 * t < left;
    e.y = r->y + c + 4 * t;
    e.add_at = r->add + c + 4 * t;
    UNROLL
    for (int k = 0; k < 4; k++) e.bias[k] = e.add[k] = 0;
    if (e.good && l->base[BIAS] >= 0)
        FOUR_BIAS(e.bias, (global const BIASMEM *)relay_at(l, base, BIAS, l->bias) + c + 4 * t);
    return e;
}
INLINE void NAME(add_of)(local const leg *l, local const ulong *base, NAME(end) * e) {
    if (e->good && l->base[ADD] >= 0)
        FOUR_ADD(e->add, (global const ADDMEM *)relay_at(l, base, ADD, l->add) + e->add_at);
}
INLINE void NAME(put)(local const leg *l, local const ulong *base, const NAME(end) * e,
                      float4 sum) {
    float f[4] = { sum.s0, sum.s1, sum.s2, sum.s3 };
    if (!e->good) return;
    relay_finish(l->finish, f, e->bias, e->add);
    PUT((global RESULT *)relay_at(l, base, Y, l->y) + e->y, f);
}

/* One tile; this warp is number me of its team.  parts: of the team's first warp. */
INLINE void NAME(tile)(local const leg *l, local const ulong *base, int line, int first, int lane,
                       int me, int id, local float4 *parts, meetings *met) {
    const int g = lane >> 2, t = lane & 3, team = l->team;
    const int begin = me * l->each, n = min(l->each, l->k_tiles - begin),
              from = min(begin, l->k_tiles - 1);
    const int group = l->columns == l->row_tiles ? 0 : first / l->row_tiles,
              c = (first - group * l->row_tiles) * BN;
    const int turn = ROW_BYTES == 128 ? t ^ g : t ^ (g >> 1 & 3);
    const long flip = ROW_BYTES == 128 && (g & 4) ? -64 : 64;
    global const uchar *w = relay_at(l, base, W, l->w) +
                            ((size_t)first * l->k_tiles + from) * STAGE + g * ROW_BYTES + turn * 16;
    uint a[DEPTH][4 * ROWS * LOADS], b[DEPTH][4 * EIGHTS * LOADS],
        low[DEPTH][PARTS == 2 ? 4 * EIGHTS * LOADS : 1];
    /* Load every register unconditionally: otherwise the compiler keeps it live across all legs. */
    UNROLL
    for (int d = 0; d < DEPTH; d++)
        NAME(load_weights)(b[d], low[d], w + max(min(d, n - 1), 0) * STAGE, flip);
    NAME(row) row[ROWS];
    UNROLL
    for (int i = 0; i < ROWS; i++) row[i] = NAME(row_of)(l, line * BM + g + 8 * i);
    global const XMEM *x = (global const XMEM *)relay_at(l, base, X, l->x) +
                           (long)group * l->channels + t * (int)(16 / sizeof(XMEM));
    NAME(walk) k;
    k.zeros = (global const XMEM *)base[ZEROS];
    k.channels = l->channels - t * (int)(16 / sizeof(XMEM));
    UNROLL
    for (int i = 0; i < ROWS; i++) k.at[i] = x + row[i].x;
#ifdef WINDOW
    k.block = relay_quotient(from, l->by_taps[0], l->by_taps[1]);
    k.tap = from - k.block * l->all_taps;
    k.block *= BK;
#else
    k.tap = 0;
    k.block = from * BK;
#endif
    NAME(row) mine = row[0];
    NAME(end) e;
    if (team > 1) {
        UNROLL
        for (int i = 1; i < ROWS; i++)
            if (me / SIXTEENS == i) mine = row[i];
        const int to = c + 16 * (me % SIXTEENS);
        mine.good &= me < QUADS;
        e = NAME(end_of)(l, base, &mine, group * l->rows + to, l->rows - to, t);
    }
    float sums[CHAINS * SUMS];
    UNROLL
    for (int q = 0; q < CHAINS * SUMS; q++) sums[q] = 0;
    relay_wait(met);
    if (team > 1) NAME(add_of)(l, base, &e);
    UNROLL
    for (int d = 0; d < DEPTH; d++) NAME(load_pixels)(a[d], l, row, &k, d < n);
    for (int u = 0; u < n;
         u += DEPTH) { /* a k-tile is multiplied, and another one asked for in its place */
        w += DEPTH * STAGE;
        UNROLL
        for (int d = 0; d < DEPTH; d++) {
            if (u + d >= n) break;
            NAME(multiply)(sums, a[d], b[d], low[d]);
            if (u + d + DEPTH >= n) continue;
            NAME(load_weights)(b[d], low[d], w + d * STAGE, flip);
            NAME(load_pixels)(a[d], l, row, &k, 1);
        }
    }
    NAME(join)(sums);
    if (team == 1) {
        UNROLL
        for (int q = 0; q < QUADS; q++) {
            const int to = c + 16 * (q % SIXTEENS);
            NAME(end)
            each = NAME(end_of)(l, base, &row[q / SIXTEENS], group * l->rows + to, l->rows - to, t);
            NAME(add_of)(l, base, &each);
            NAME(put)(l, base, &each, NAME(four_of)(sums, q));
        }
        return;
    }
    /* the parts of the tile before this one are read: all have met since */
    local float4 *these = parts + met->turn * (WARPS * PARTS_FLOATS / 4);
    met->turn ^= 1;
    UNROLL
    for (int q = 0; q < QUADS; q++)
        these[me * (PARTS_FLOATS / 4) + q * 32 + lane] = NAME(four_of)(sums, q);
    nv_meet(id, 32 * team);
    for (int q = me; q < QUADS; q += team) {
        if (q != me) {
            NAME(row) other = row[0];
            UNROLL
            for (int i = 1; i < ROWS; i++)
                if (q / SIXTEENS == i) other = row[i];
            const int to = c + 16 * (q % SIXTEENS);
            e = NAME(end_of)(l, base, &other, group * l->rows + to, l->rows - to, t);
            NAME(add_of)(l, base, &e);
        }
        float4 part[WARPS], sum = these[q * 32 + lane];
        UNROLL
        for (int z = 1; z < WARPS; z++)
            part[z] =
                z < team ? these[z * (PARTS_FLOATS / 4) + q * 32 + lane] : (float4)(0, 0, 0, 0);
        UNROLL
        for (int z = 1; z < WARPS; z++) sum += part[z];
        NAME(put)(l, base, &e, sum);
    }
}

/* The teams of a group take a block of neighbouring tiles, down x across of them, at a time: they
 * read the same pixels and weights at about the same time, which then come through the first cache,
 * since the second one cannot bring each tile its own. */
INLINE void NAME(leg)(local const leg *l, local const ulong *base, local float4 *parts,
                      meetings *m) {
    const int item = relay_item(), warp = item >> 5, size = l->team, team = warp / size,
              groups = get_num_groups(0);
    const int group = (int)get_group_id(0) - l->shift, all = l->tiles, down = team / l->across,
              across = team - down * l->across;
    m->turn = 0;
    if (!l->early) relay_wait(m);
    if (!l->fresh)
        nv_meet(WARPS + 2, ITEMS); /* teams of the leg before may be others, and still read parts */
    for (int block = group < 0 ? group + groups : group; block < all; block += groups) {
        const int high = relay_quotient(block, l->by_columns[0], l->by_columns[1]);
        const int line = high * (WARPS / size / l->across) + down,
                  first = (block - high * l->wide) * l->across + across;
        if (line < l->lines && first < l->columns) NAME(tile)
        (l, base, line, first, item & 31, warp - team * size, 2 + team,
         parts + team * size * (PARTS_FLOATS / 4), m);
    }
}
#undef ROWS
#undef LOADS
#undef ROW_BYTES
#undef EIGHTS
#undef SIXTEENS
#undef SUMS
#undef CHAINS
#undef QUADS
