/* Attention on wgmma: y = softmax(scale q k^T + mask) v, block by block of keys, after Dao et al.,
 * "FlashAttention" (2022): when a block raises a row's largest score, what was summed before is
 * scaled down.
 *
 * A group of items has GROUPS times 64 queries of one head, four warps for each 64; one item of
 * four more warps asks for k and v, which come through STAGES of local memory, and, with MAPS, for
 * q.  While the units multiply weights of block j - 1 by v, the items make weights of the products
 * of block j, which were asked for before: they stay in registers, as the A operand of the second
 * product.
 *
 * Options, beside those of nv_attention_tiles.cl: D, E sizes of a row of q and v, multiples of 16;
 * BLOCK keys of a block; CAUSAL; MASKED with M, the type of the mask, and BOOLS; PAIRS: y takes two
 * numbers at once; LSE: that output is wanted.
 * SCORES(d, a, b, i), SUM_E(d, a, b, i): the two products, i = 0 begins a sum where sums begin;
 * WAITn_x(d): attention_text.c. */
/* A tile of queries: where it is, and how many blocks of keys it sees. */
typedef struct tile { int first, b, h, blocks; } tile;
INLINE int blocks_before(const args *a, int query) {
#ifdef CAUSAL
    const int last = query + (int)a->before, keys = last < (int)a->keys ? last : (int)a->keys;
#else
    const int keys = (int)a->keys;
#endif
    return (keys + BLOCK - 1) / BLOCK;
}
INLINE tile tile_of(const args *a, turn u) {
    const int2 place = place_of(u, (int)a->all, TILES(a), true);
    tile t = { place.x * ROWS, place.y / (int)a->H, place.y % (int)a->H, 0 };
    t.blocks = blocks_before(a, t.first + ROWS);
    return t;
}

#ifndef MAPS
/* 64 rows of q, by four warps: asked for, and there.  As they are, where 16 bytes of them can be
 * copied. */
#if defined(ALIGNED) && (defined(SAME) || NUMBER == 4)
#define AS_THEY_ARE
#endif
INLINE void ask_for_q(const args *a, uint to, global const MEMORY(X) *q, tile w, int group,
                      int item) {
    const int first = w.first + group * 64;
    q += a->q + w.b * a->q_batch + w.h * a->q_head;
#ifdef AS_THEY_ARE
    const int c = item & 7, r = item >> 3;
    to += r * 128 + ((c ^ (r & 7)) << 4);
    for (int p = 0; p < PANELS(D); p++) {
        const int left = NUMBER * ((int)a->d - p * PANEL) - 16 * c;
        const int bytes = clamp(left, 0, 16);
        global const MEMORY(X) *from = q + (bytes ? p * PANEL + c * CHUNK : 0);
        for (int i = r; i < 64; i += 16) {
            const bool there = first + i < a->queries;
            const int row = there ? first + i : 0;
            nv_copy16(to + p * (64 * 128) + (i - r) * 128, from + row * a->q_row,
                      there ? bytes : 0);
        }
    }
#else
    for (int u = item; u < PANELS(D) * 64 * 8; u += 128) {
        const int c = u % 8, panel = u / 8 % PANELS(D), r = u / 8 / PANELS(D);
        const int at = panel * PANEL + c * CHUNK;
        uint4 v[PARTS];
        load_chunk(v, q + (first + r) * a->q_row + at, first + r < a->queries ? (int)a->d - at : 0);
        UNROLL for (int k = 0; k < PARTS; k++)
            put_chunk(to + k * Q_BYTES + panel * (64 * 128) + r * 128 + ((c ^ (r & 7)) << 4), v[k]);
    }
#endif
}
INLINE void wait_for_q(uint to, int group, int item) {
    asm volatile("cp.async.wait_all;" ::: "memory");
#if defined(AS_THEY_ARE) && NUMBER == 4
    for (int u = item * 16; u < Q_BYTES; u += 128 * 16) {       /* an item's own pieces */
        const uint at = to + u / 128 * 128 + ((u / 16 ^ u / 128) & 7) * 16;
        uint raw[4];
        uint4 v[PARTS];
        nv_local_load4(raw, at);
        const float x[] = { as_float(raw[0]), as_float(raw[1]), as_float(raw[2]),
                            as_float(raw[3]) };
        chunk_parts(v, x);
        UNROLL for (int k = 0; k < PARTS; k++) put_chunk(at + k * Q_BYTES, v[k]);
    }
#endif
    nv_proxy_fence();
    nv_meet(1 + group, 128);
}
#endif

/* Where there is room the next tile's queries come while this one is at work. */
#if PARTS == 1 && 2 * GROUPS * Q_BYTES + STAGES * STAGE_BYTES <= 230000
#define Q_TILES 2
#else
#define Q_TILES 1
#endif

#ifdef MAPS
enum { Q_MAP, K_MAP, V_MAP, ALL_MAPS };
INLINE void make_maps(const args *a, uint room, global uchar *maps, global const MEMORY(X) *q,
                      global const MEMORY(X) *k, global const MEMORY(X) *v, int item) {
    const long batches = a->all / (TILES(a) * a->H), G = a->H / a->ratio;
    const int map = item >> 5;
    const nv_rows q_rows = ROWS_OF(q, *a, batches, a->H, a->queries, a->d, 64);
    const nv_rows k_rows = ROWS_OF(k, *a, batches, G, a->keys, a->d, BLOCK);
    const nv_rows v_rows = ROWS_OF(v, *a, batches, G, a->keys, a->e, BLOCK);
    if (map == Q_MAP) nv_map_make(room, maps, q_rows, item & 31);
    if (map == K_MAP) nv_map_make(room + 128, maps + 128, k_rows, item & 31);
    if (map == V_MAP) nv_map_make(room + 256, maps + 256, v_rows, item & 31);
    nv_meet(15, 128);
}
#endif

#ifdef MASKED
#define MASK(j) add_mask(&a, &r, s, (j)*BLOCK + 2 * t, m_at)
#else
#define MASK(j)
#endif

/* As many groups of items as there are compute units, one tile after the other. */
kernel GROUP(ITEMS) void attention(const args a, global const MEMORY(X) *q, global const STREAM *k,
                                   global const STREAM *v, global const MEMORY(M) *mask,
                                   global MEMORY(X) *y, global float *lse, global uchar *maps) {
    local uchar memory[Q_TILES * PARTS * GROUPS * Q_BYTES + STAGES * STAGE_BYTES]
        __attribute__((aligned(1024)));
    local ulong bars[4 * STAGES + 2 * Q_TILES];
#ifdef MAPS
    local uchar room[ALL_MAPS * 128] __attribute__((aligned(128)));
#endif
    const int lid = get_local_id(0), item = lid & 127, all = (int)a.all, tiles = TILES(&a);
    const uint q_at = LOCAL_AT(memory), k_at = q_at + Q_TILES * PARTS * GROUPS * Q_BYTES;
    const uint v_at = k_at + STAGES * PARTS * K_BYTES;
    const uint k_full = LOCAL_AT(bars), k_empty = k_full + 8 * STAGES;
    const uint v_full = k_empty + 8 * STAGES, v_empty = v_full + 8 * STAGES;
    const uint q_full = v_empty + 8 * STAGES, q_empty = q_full + 8 * Q_TILES;
    int n = 0, turns = 0;                       /* blocks and tiles before */
    if (lid == 0) {
        UNROLL for (int i = 0; i < STAGES; i++) {
            nv_barrier_init(k_full + 8 * i, 1), nv_barrier_init(v_full + 8 * i, 1);
            nv_barrier_init(k_empty + 8 * i, GROUPS), nv_barrier_init(v_empty + 8 * i, GROUPS);
        }
        UNROLL for (int i = 0; i < Q_TILES; i++)
            nv_barrier_init(q_full + 8 * i, 1), nv_barrier_init(q_empty + 8 * i, GROUPS);
        nv_barriers_made();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid >= 128 * GROUPS) {
#ifdef MAPS
        global uchar *at = maps_at(maps, a.maps, ALL_MAPS);
        make_maps(&a, LOCAL_AT(room), at, q, k, v, item);
#endif
        LESS();
        if (item) return;
        for (turn u = first_turn(); is_turn(u, all, tiles); u = next_turn(u, all, tiles), turns++) {
            const tile w = tile_of(&a, u);
            const int kv = w.h / (int)a.ratio;
#ifdef MAPS
            const int place = turns % Q_TILES;
            nv_barrier_wait(q_empty + 8 * place, turns / Q_TILES & 1 ^ 1);
            nv_barrier_expect(q_full + 8 * place, GROUPS * Q_BYTES);
            for (int i = 0; i < GROUPS; i++)
                bring_box(q_at + (place * GROUPS + i) * Q_BYTES, at + Q_MAP * 128, PANELS(D), 64,
                          w.first + i * 64, w.h, w.b, q_full + 8 * place);
#else
            const long from = ((long)w.b * (a.H / a.ratio) + kv) * a.tiles;
            global const uchar *k_tile = k + a.k + from * (PARTS * K_BYTES),
                               *v_tile = v + a.v + from * (PARTS * V_BYTES);
#endif
            for (int j = 0; j < w.blocks; j++, n++) {
                const int s = n % STAGES;
                const uint phase = n / STAGES & 1 ^ 1;
                nv_barrier_wait(k_empty + 8 * s, phase);
                nv_barrier_expect(k_full + 8 * s, PARTS * K_BYTES);
#ifdef MAPS
                bring_box(k_at + s * K_BYTES, at + K_MAP * 128, PANELS(D), BLOCK, j * BLOCK, kv,
                          w.b, k_full + 8 * s);
#else
                nv_bulk_load(k_at + s * (PARTS * K_BYTES), k_tile + (size_t)j * (PARTS * K_BYTES),
                             PARTS * K_BYTES, k_full + 8 * s);
#endif
                nv_barrier_wait(v_empty + 8 * s, phase);
                nv_barrier_expect(v_full + 8 * s, PARTS * V_BYTES);
#ifdef MAPS
                bring_box(v_at + s * V_BYTES, at + V_MAP * 128, PANELS(E), BLOCK, j * BLOCK, kv,
                          w.b, v_full + 8 * s);
#else
                nv_bulk_load(v_at + s * (PARTS * V_BYTES), v_tile + (size_t)j * (PARTS * V_BYTES),
                             PARTS * V_BYTES, v_full + 8 * s);
#endif
            }
        }
        return;
    }
    MORE();
    const int group = lid >> 7, lane = lid & 31, t = lane & 3;
    const int mine = group * 64 + (item >> 5) * 16 + (lane >> 2);
    const ulong dk = describe(k_at, 1), dv = describe(v_at, V_LEAD);
    float s[BLOCK / 2], o[E / 2];
    uint p[PARTS * BLOCK * NUMBER / 8];
#ifdef SPLIT
    float more[E / 2];
#else
    float *const more = o;
#endif
    turn u = first_turn();
#ifndef MAPS
    if (is_turn(u, all, tiles))
        ask_for_q(&a, q_at + group * (PARTS * Q_BYTES), q, tile_of(&a, u), group, item);
#endif
    for (; is_turn(u, all, tiles); turns++) {
        const tile w = tile_of(&a, u);
        const int place = turns % Q_TILES;
        const uint here = q_at + (place * GROUPS + group) * (PARTS * Q_BYTES);
        u = next_turn(u, all, tiles);
#ifdef MAPS
        nv_barrier_wait(q_full + 8 * place, turns / Q_TILES & 1);
#else
        wait_for_q(here, group, item);
        if (Q_TILES == 2 && is_turn(u, all, tiles))
            ask_for_q(&a, q_at + ((place ^ 1) * GROUPS + group) * (PARTS * Q_BYTES), q,
                      tile_of(&a, u), group, item);
#endif
        const ulong dq = describe(here, 1);
        const int row0 = w.first + mine, seen = blocks_before(&a, w.first + group * 64 + 64);
        const int blocks = seen < w.blocks ? seen : w.blocks;       /* of these four warps */
        UNROLL for (int i = 0; i < E / 2; i++) o[i] = 0;
        rows r = {
            .top = { -INFINITY, -INFINITY }, .first = w.first + group * 64, .row0 = row0, .t = t
        };
#ifdef MASKED
        r.scale = 1;
        global const MEMORY(M) *m_at = mask + MASK_OF(a, w.b, w.h);
#else
        r.scale = as_float((int)a.scale) * LOG2E;
        global const MEMORY(M) *m_at = 0;
#endif
        nv_barrier_wait(k_full + 8 * (n % STAGES), n / STAGES & 1);
        NV_WGMMA_FENCE();
        multiply_k(s, dq, dk + n % STAGES * (PARTS * K_BYTES / 16));
        WAIT0_S(s);
        nv_barrier_arrive_if(k_empty + 8 * (n % STAGES), item == 0);
        MASK(0);
        weigh(&a, &r, s, 0);
        as_operand(p, s);
        for (int j = 1; j < blocks; j++) {
            const int at = (n + j) % STAGES, before = (n + j - 1) % STAGES;
            nv_barrier_wait(k_full + 8 * at, (n + j) / STAGES & 1);
            NV_WGMMA_FENCE();
            multiply_k(s, dq, dk + at * (PARTS * K_BYTES / 16));
            nv_barrier_wait(v_full + 8 * before, (n + j - 1) / STAGES & 1);
            NV_WGMMA_FENCE();
            multiply_v(more, p, dv + before * (PARTS * V_BYTES / 16));
            WAIT1_S(s);
            nv_barrier_arrive_if(k_empty + 8 * at, item == 0);
            MASK(j);
            weigh(&a, &r, s, j);
            WAIT0_E(more);
            nv_barrier_arrive_if(v_empty + 8 * before, item == 0);
            scale_down(o, more, &r);
            as_operand(p, s);
        }
        const int last = (n + blocks - 1) % STAGES;
        nv_barrier_wait(v_full + 8 * last, (n + blocks - 1) / STAGES & 1);
        NV_WGMMA_FENCE();
        multiply_v(more, p, dv + last * (PARTS * V_BYTES / 16));
        WAIT0_E(more);
        nv_barrier_arrive_if(v_empty + 8 * last, item == 0);
#ifdef MAPS
        nv_barrier_arrive_if(q_empty + 8 * place, item == 0);
#else
        if (Q_TILES == 1 && is_turn(u, all, tiles)) {
            nv_meet(1 + group, 128);            /* nothing reads this one's queries any more */
            ask_for_q(&a, here, q, tile_of(&a, u), group, item);
        }
#endif
        UNROLL for (int k = 0; k < 2; k++) {
            r.sum[k] += nv_other_lane(r.sum[k], 1);
            r.sum[k] += nv_other_lane(r.sum[k], 2);
            r.factor[k] = r.sum[k] > 0 ? 1 / r.sum[k] : 0; /* a query that saw no key gives zeros */
        }
        scale_down(o, more, &r);
        put_rows(y + a.y + w.b * a.y_batch + w.h * a.y_head, a.y_row, row0, (int)a.queries,
                 (int)a.e, E, t, o, 1);
#ifdef LSE
        UNROLL for (int k = 0; k < 2; k++)
            if (t == 0 && row0 + 8 * k < a.queries)
                lse[a.lse + ((long)w.b * a.H + w.h) * a.queries + row0 + 8 * k] =
                    r.sum[k] > 0 ? LN2 * (r.top[k] * r.scale + log2(r.sum[k])) : 0;
#endif
#ifdef CAUSAL
        /* Blocks that only other warps of the group see: all four wait, since parity tells two
         * phases only, and then free them. */
        for (int j = blocks; j < w.blocks; j++) {
            const int at = (n + j) % STAGES;
            nv_barrier_wait(k_full + 8 * at, (n + j) / STAGES & 1);
            nv_barrier_wait(v_full + 8 * at, (n + j) / STAGES & 1);
            nv_meet(1 + group, 128);
            nv_barrier_arrive_if(k_empty + 8 * at, item == 0);
            nv_barrier_arrive_if(v_empty + 8 * at, item == 0);
        }
#endif
        n += w.blocks;
    }
}
