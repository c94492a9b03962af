/* dk and dv of 64 GROUPS keys: see nv_attention_grad.cl. */
/* Two sums 128 wide leave no registers to keep the weights: they are taken from the pairs. */
#define SCARCE (NUMBER == 2 && D + E > 192)

/* A tile of keys of one head: the first, and from which block of queries on it is seen. */
typedef struct tile {
    int first, b, head, begin, each;
} tile;
#define TILES(a) (((int)(a)->keys + 64 * GROUPS - 1) / (64 * GROUPS))
INLINE tile tile_of(const args *a, turn u) {
    const int2 place = place_of(u, (int)a->all, TILES(a), false);
    const int G = (int)(a->H / a->ratio), blocks = ((int)a->queries + BLOCK - 1) / BLOCK;
    tile w = { place.x * 64 * GROUPS, place.y / G, place.y % G, 0, 0 };
#ifdef CAUSAL
    w.begin = between((w.first - (int)a->before) / BLOCK, 0, blocks);
#endif
    w.each = blocks - w.begin;
    return w;
}
/* Products to weights, keys in rows.  edge: some key is after some query's own. */
INLINE void weights(const args *a, float *s, uint stats, float c, int q0, int key0,
                    global const MEMORY(M) * m_at, const bool edge) {
    const int ahead = key0 - q0 - (int)a->before;
    UNROLL
    for (int i = 0; i < BLOCK / 8; i++) {
        uint n[4];
        nv_local_load4(n, stats + i * 64);
        UNROLL
        for (int u = 0; u < 4; u++) {
            const int query = q0 + 8 * i + (u & 1), key = key0 + (u & 2) * 4;
            float w = fma(s[4 * i + u], c, -as_float(n[(u & 1) * 2]));
#ifdef MASKED
            if (query < a->queries && key < a->keys)
                w += mask_at(m_at + query * a->m_row + key * a->m_key);
#endif
            if (edge) w = nv_hidden(w, ahead, 8 * i + (u & 1) - (u & 2) * 4);
            s[4 * i + u] = nv_exp2(w);
        }
    }
}

/* What four warps work with: operands, barriers, numbers of rows; sums, products, weights. */
typedef struct team {
    ulong da_k, da_v, db_q, db_dy, dt_q, dt_dy;
    uint q_full, q_empty, dy_full, dy_empty, qt_full, qt_empty, dyt_full, dyt_empty, stats;
    int lane, t, boss, group, key0;
    float c, *sk, *sv, *s, *ds;
    uint *p, *x;
} team;

/* A block of queries, the n-th one of all, from query q0 on.  held: the one before was not freed,
 * sums may still read it. */
INLINE void add_block(const args *a, const team *w, int n, int q0, bool held,
                      global const MEMORY(M) * m_at, const bool edge) {
    const int at = n % STAGES, before = (n + STAGES - 1) % STAGES;
    const uint phase = n / STAGES & 1, stats = w->stats + at * (BLOCK * 8) + 16 * w->t;
    float *s = w->s, *ds = w->ds;
    nv_barrier_wait(w->q_full + 8 * at, phase);
    NV_WGMMA_FENCE();
    UNROLL
    for (int i = 0; i < D / STEP; i++)
        SCORES(s, w->da_k + ALONG(i, 64), w->db_q + at * (B_D / 16) + ALONG(i, BLOCK), i);
    NV_WGMMA_COMMIT();
    nv_barrier_wait(w->dy_full + 8 * at, phase);
    NV_WGMMA_FENCE();
    UNROLL
    for (int i = 0; i < E / STEP; i++)
        SCORES(ds, w->da_v + ALONG(i, 64), w->db_dy + at * (B_E / 16) + ALONG(i, BLOCK), i);
    NV_WGMMA_COMMIT();
    WAIT1_S(s); /* the sums into dk of the step before are done, too */
#if NUMBER == 4
    nv_barrier_arrive_if(w->qt_empty + 8 * ((n + STAGES_T - 1) % STAGES_T), held && w->boss);
#else
    nv_barrier_arrive_if(w->q_empty + 8 * before, held && w->lane == 0);
#endif
    weights(a, s, stats, w->c, q0 + 2 * w->t, w->key0, m_at, edge);
    as_operand(w->p, s);
    WAIT0_S(ds);
#if NUMBER == 4
    nv_barrier_arrive_if(w->dy_empty + 8 * at, w->boss);
    nv_barrier_wait(w->dyt_full + 8 * (n % STAGES_T), n / STAGES_T & 1);
#endif
    NV_WGMMA_FENCE();
    UNROLL
    for (int i = 0; i < BLOCK / STEP; i++)
#if NUMBER == 4
        SUM_E(w->sv, w->p + 4 * i, w->dt_dy + n % STAGES_T * (T_E / 16) + DOWN(i, E), 1);
#else
        SUM_E(w->sv, w->p + 4 * i, w->dt_dy + at * (B_E / 16) + DOWN(i, E), 1);
#endif
    NV_WGMMA_COMMIT();
    UNROLL
    for (int i = 0; i < BLOCK / 8; i++) {
        uint number[4];
        nv_local_load4(number, stats + i * 64);
        float was[4];
#if SCARCE
        FAC_CAT(apart_, KIND)(was, w->p[2 * i]), FAC_CAT(apart_, KIND)(was + 2, w->p[2 * i + 1]);
#else
        UNROLL
        for (int u = 0; u < 4; u++) was[u] = s[4 * i + u];
#endif
        UNROLL
        for (int u = 0; u < 4; u++)
            ds[4 * i + u] = was[u] * (ds[4 * i + u] - as_float(number[(u & 1) * 2 + 1]));
    }
    as_operand(w->x, ds);
#if NUMBER == 4
    nv_barrier_arrive_if(w->q_empty + 8 * at, w->lane == 0); /* after the last look at stats */
    nv_barrier_wait(w->qt_full + 8 * (n % STAGES_T), n / STAGES_T & 1);
#endif
    NV_WGMMA_FENCE();
    UNROLL
    for (int i = 0; i < BLOCK / STEP; i++)
#if NUMBER == 4
        SUM_D(w->sk, w->x + 4 * i, w->dt_q + n % STAGES_T * (T_D / 16) + DOWN(i, D), 1);
#else
        SUM_D(w->sk, w->x + 4 * i, w->dt_q + at * (B_D / 16) + DOWN(i, D), 1);
#endif
    NV_WGMMA_COMMIT();
    WAIT1_E(w->sv);
#if NUMBER == 4
    nv_barrier_arrive_if(w->dyt_empty + 8 * (n % STAGES_T), w->boss);
#else
    nv_barrier_arrive_if(w->dy_empty + 8 * at, w->boss);
#endif
}
/* A block that sees none of these keys: all four warps wait, since parity tells two phases only,
 * and then free it. */
INLINE void pass_block(const team *w, int n) {
    const int at = n % STAGES;
    nv_barrier_wait(w->q_full + 8 * at, n / STAGES & 1);
    nv_barrier_wait(w->dy_full + 8 * at, n / STAGES & 1);
#if NUMBER == 4
    nv_barrier_wait(w->dyt_full + 8 * (n % STAGES_T), n / STAGES_T & 1);
    nv_barrier_wait(w->qt_full + 8 * (n % STAGES_T), n / STAGES_T & 1);
#endif
    nv_meet(1 + w->group, 128);
    nv_barrier_arrive_if(w->q_empty + 8 * at, w->lane == 0);
    nv_barrier_arrive_if(w->dy_empty + 8 * at, w->boss);
#if NUMBER == 4
    nv_barrier_arrive_if(w->dyt_empty + 8 * (n % STAGES_T), w->boss);
    nv_barrier_arrive_if(w->qt_empty + 8 * (n % STAGES_T), w->boss);
#endif
}

kernel GROUP(ITEMS) void attention_grad_keys(const args a, global const STREAM *q,
                                             global const STREAM *k, global const STREAM *v,
                                             global const STREAM *dy, global const uchar *qt,
                                             global const uchar *dyt, global const float2 *stats,
                                             global const MEMORY(M) * mask, global MEMORY(X) * dk,
                                             global MEMORY(X) * dv, global uchar *maps) {
    local uchar memory[A_TILES * A_BYTES + STAGES * (B_D + B_E) + STAGED_T]
        __attribute__((aligned(1024)));
    local uchar numbers[STAGES * BLOCK * 8] __attribute__((aligned(16)));
    local ulong bars[2 * A_TILES + 4 * STAGES + 4 * STAGES_T];
#ifdef MAPS
    local uchar room[ALL_MAPS * 128] __attribute__((aligned(128)));
#endif
    const int lid = get_local_id(0), lane = lid & 31, item = lid & 127, all = (int)a.all,
              tiles = TILES(&a);
    const uint a_at = LOCAL_AT(memory), q_at = a_at + A_TILES * A_BYTES,
               dy_at = q_at + STAGES * B_D;
    const uint qt_at = dy_at + STAGES * B_E, dyt_at = qt_at + STAGES_T * T_D,
               stats_at = LOCAL_AT(numbers);
    const uint a_full = LOCAL_AT(bars), a_empty = a_full + 8 * A_TILES,
               q_full = a_empty + 8 * A_TILES;
    const uint q_empty = q_full + 8 * STAGES, dy_full = q_empty + 8 * STAGES;
    const uint dy_empty = dy_full + 8 * STAGES, qt_full = dy_empty + 8 * STAGES,
               qt_empty = qt_full + 8 * STAGES_T;
    const uint dyt_full = qt_empty + 8 * STAGES_T, dyt_empty = dyt_full + 8 * STAGES_T;
    int n = 0, turns = 0; /* blocks and tiles before */
    if (lid == 0) {
        for (int i = 0; i < A_TILES; i++)
            nv_barrier_init(a_full + 8 * i, 1), nv_barrier_init(a_empty + 8 * i, 4 * GROUPS);
        for (int i = 0; i < STAGES; i++) {
            nv_barrier_init(q_full + 8 * i, 1), nv_barrier_init(dy_full + 8 * i, 1);
            nv_barrier_init(q_empty + 8 * i, 4 * GROUPS), nv_barrier_init(dy_empty + 8 * i, GROUPS);
        }
        for (int i = 0; i < STAGES_T; i++) {
            nv_barrier_init(qt_full + 8 * i, 1), nv_barrier_init(dyt_full + 8 * i, 1);
            nv_barrier_init(qt_empty + 8 * i, GROUPS), nv_barrier_init(dyt_empty + 8 * i, GROUPS);
        }
        nv_barriers_made();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid >= 128 * GROUPS) {
#ifdef MAPS
        global uchar *map = maps_at(maps, a.maps, ALL_MAPS);
        make_maps(&a, LOCAL_AT(room), map, q, k, v, dy, a.all / (tiles * (a.H / a.ratio)), item);
#endif
        LESS();
        if (item) return;
        for (turn u = first_turn(); is_turn(u, all, tiles); u = next_turn(u, all, tiles), turns++) {
            const tile w = tile_of(&a, u);
            const int b = w.b, head = w.head, first = w.first, G = (int)(a.H / a.ratio);
            const source k_from = SOURCE(k, head, G, k_tiles, D),
                         v_from = SOURCE(v, head, G, k_tiles, E);
            const uint at = a_at + turns % A_TILES * A_BYTES, ready = a_full + turns % A_TILES * 8;
            nv_barrier_wait(a_empty + turns % A_TILES * 8, turns / A_TILES & 1 ^ 1);
            nv_barrier_expect(ready, A_BYTES);
            for (int i = 0; i < GROUPS; i++) {
                fetch(at + i * A_D, k_from, first + i * 64, 64, ready);
                fetch(at + GROUPS * A_D + i * A_E, v_from, first + i * 64, 64, ready);
            }
            const int end = (w.begin + w.each) * BLOCK;
            for (int h = head * (int)a.ratio; h < (head + 1) * (int)a.ratio; h++) {
                const source q_from = SOURCE(q, h, a.H, q_tiles, D),
                             dy_from = SOURCE(dy, h, a.H, q_tiles, E);
                global const float2 *numbers_from =
                    stats + a.stats + ((long)b * a.H + h) * a.q_tiles * TILE;
                for (int row = w.begin * BLOCK; row < end; row += BLOCK, n++) {
                    const int s = n % STAGES;
                    const uint phase = n / STAGES & 1 ^ 1;
                    nv_barrier_wait(q_empty + 8 * s, phase);
                    nv_barrier_expect(q_full + 8 * s, B_D + BLOCK * 8);
                    fetch(q_at + s * B_D, q_from, row, BLOCK, q_full + 8 * s);
                    nv_bulk_load(stats_at + s * (BLOCK * 8), numbers_from + row, BLOCK * 8,
                                 q_full + 8 * s);
                    nv_barrier_wait(dy_empty + 8 * s, phase);
                    nv_barrier_expect(dy_full + 8 * s, B_E);
                    fetch(dy_at + s * B_E, dy_from, row, BLOCK, dy_full + 8 * s);
#if NUMBER == 4
                    const long tile_at = ((long)b * a.H + h) * a.q_tiles + row / TILE;
                    const int t = n % STAGES_T;
                    const uint phase_t = n / STAGES_T & 1 ^ 1;
                    nv_barrier_wait(dyt_empty + 8 * t, phase_t);
                    nv_barrier_expect(dyt_full + 8 * t, T_E);
                    nv_bulk_load(dyt_at + t * T_E, dyt + a.dyt + tile_at * TRANSPOSED_TILE(E), T_E,
                                 dyt_full + 8 * t);
                    nv_barrier_wait(qt_empty + 8 * t, phase_t);
                    nv_barrier_expect(qt_full + 8 * t, T_D);
                    nv_bulk_load(qt_at + t * T_D, qt + a.qt + tile_at * TRANSPOSED_TILE(D), T_D,
                                 qt_full + 8 * t);
#endif
                }
            }
        }
        return;
    }
    MORE();
    const int group = lid >> 7, t = lane & 3, mine = group * 64 + (item >> 5) * 16 + (lane >> 2);
    float sk[D / 2], sv[E / 2], s[BLOCK / 2], ds[BLOCK / 2];
    uint p[BLOCK * NUMBER / 8], x[BLOCK * NUMBER / 8];
    const float scale = as_float((int)a.scale);
    team w4 = {
        .db_q = describe(q_at, 1),
        .db_dy = describe(dy_at, 1),
#if NUMBER == 4
        .dt_q = describe(qt_at, 1),
        .dt_dy = describe(dyt_at, 1),
#else
        .dt_q = describe(q_at, DOWN_LEAD),
        .dt_dy = describe(dy_at, DOWN_LEAD),
#endif
        .q_full = q_full,
        .q_empty = q_empty,
        .dy_full = dy_full,
        .dy_empty = dy_empty,
        .qt_full = qt_full,
        .qt_empty = qt_empty,
        .dyt_full = dyt_full,
        .dyt_empty = dyt_empty,
        .stats = stats_at,
        .lane = lane,
        .t = t,
        .boss = item == 0,
        .group = group,
        .c = scale * LOG2E,
        .sk = sk,
        .sv = sv,
        .s = s,
        .ds = ds,
        .p = p,
        .x = x
    };
    for (turn u = first_turn(); is_turn(u, all, tiles); u = next_turn(u, all, tiles), turns++) {
        const tile w = tile_of(&a, u);
        const uint here = a_at + turns % A_TILES * A_BYTES;
        const int key0 = w.first + mine, end = (w.begin + w.each) * BLOCK;
        w4.da_k = describe(here + group * A_D, 1);
        w4.da_v = describe(here + GROUPS * A_D + group * A_E, 1);
        w4.key0 = key0;
        UNROLL
        for (int i = 0; i < D / 2; i++) sk[i] = 0;
        UNROLL
        for (int i = 0; i < E / 2; i++) sv[i] = 0;
        nv_barrier_wait(a_full + turns % A_TILES * 8, turns / A_TILES & 1);
        for (int h = 0; h < (int)a.ratio; h++) {
            bool held = false;
            int at = w.begin * BLOCK;
#ifdef MASKED
            global const MEMORY(M) *m_at = mask + MASK_OF(a, w.b, w.head * a.ratio + h);
#endif
#ifdef CAUSAL
            /* Queries before these keys, and those among them: without a branch around the
             * products, which ptxas would let run one after the other only. */
            const int first = w.first + group * 64 - (int)a.before;
            const int none = between(blocks_before(first - BLOCK + 1) * BLOCK, at, end);
            const int some = between(blocks_before(first + 63) * BLOCK, at, end);
            for (; at < none; at += BLOCK, n++) pass_block(&w4, n);
            for (; at < some; at += BLOCK, n++, held = true)
                add_block(&a, &w4, n, at, held, MASK_AT, true);
#endif
            for (; at < end; at += BLOCK, n++, held = true)
                add_block(&a, &w4, n, at, held, MASK_AT, false);
            WAIT0_D(sk);
#if NUMBER == 4
            nv_barrier_arrive_if(qt_empty + 8 * ((n + STAGES_T - 1) % STAGES_T), held && item == 0);
#else
            nv_barrier_arrive_if(q_empty + 8 * ((n + STAGES - 1) % STAGES), held && lane == 0);
#endif
        }
        /* every warp: a tile that no query sees has no product that would keep them together, and
         * parity tells two phases only */
        nv_barrier_arrive_if(a_empty + turns % A_TILES * 8, lane == 0);
        put_rows(dk + a.y0 + w.b * a.y0_batch + w.head * a.y0_head, a.y0_row, key0, (int)a.keys,
                 (int)a.d, D, t, sk, scale);
        put_rows(dv + a.y1 + w.b * a.y1_batch + w.head * a.y1_head, a.y1_row, key0, (int)a.keys,
                 (int)a.e, E, t, sv, 1);
    }
}
