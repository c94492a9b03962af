/* dk and dv of 64 GROUPS keys: see nv_attention_grad.cl. */
/* Two sums 128 wide leave no registers to keep the weights: they are taken from the pairs. */
#define SCARCE (NUMBER == 2 && D + E > 192)

/* A tile of keys of one head: the first, and what queries it is seen by. */
typedef struct tile { int first, b, head, begin, each, steps; } tile;
INLINE tile tile_of(const args *a, int id) {
    const int2 place = place_of(id, (int)a->all, ((int)a->keys + 64 * GROUPS - 1) / (64 * GROUPS), false);
    const int G = (int)(a->H / a->ratio), blocks = ((int)a->queries + BLOCK - 1) / BLOCK;
    tile w = { place.x * 64 * GROUPS, place.y / G, place.y % G, 0, 0, 0 };
#ifdef CAUSAL
    w.begin = (w.first - (int)a->before) / BLOCK;
    w.begin = w.begin < 0 ? 0 : w.begin > blocks ? blocks : w.begin;
#endif
    w.each = blocks - w.begin, w.steps = w.each * (int)a->ratio;
    return w;
}
/* Products to weights, keys in rows.  edge: some key is behind some query's own. */
INLINE void weights(const args *a, float *s, uint stats, float c, int q0, int key0, global const MEMORY(M) *m_at,
                    const bool edge) {
    UNROLL for (int i = 0; i < BLOCK / 8; i++) {
        uint n[4];
        nv_local_load4(n, stats + i * 64);
        UNROLL for (int u = 0; u < 4; u++) {
            const int query = q0 + 8 * i + (u & 1), key = key0 + (u & 2) * 4;
            float w = fma(s[4 * i + u], c, -as_float(n[(u & 1) * 2]));
#ifdef MASKED
            if (query < a->queries && key < a->keys) w += mask_at(m_at + query * a->m_row + key * a->m_key);
#endif
            if (edge) w = nv_hidden(w, key, query + (int)a->before);
            s[4 * i + u] = nv_exp2(w);
        }
    }
}

kernel GROUP(ITEMS) void attention_grad_keys(const args a, global const STREAM *q, global const STREAM *k, global const STREAM *v,
                                             global const STREAM *dy, global const uchar *qt, global const uchar *dyt,
                                             global const float2 *stats, global const MEMORY(M) *mask, global MEMORY(X) *dk,
                                             global MEMORY(X) *dv) {
    local uchar memory[A_TILES * A_BYTES + STAGES * (B_D + B_E) + STAGED_T] __attribute__((aligned(1024)));
    local uchar numbers[STAGES * BLOCK * 8] __attribute__((aligned(16)));
    local ulong bars[2 * A_TILES + 4 * STAGES + 4 * STAGES_T];
    const int lid = get_local_id(0), lane = lid & 31, item = lid & 127;
    const uint a_at = LOCAL_AT(memory), q_at = a_at + A_TILES * A_BYTES, dy_at = q_at + STAGES * B_D;
    const uint qt_at = dy_at + STAGES * B_E, dyt_at = qt_at + STAGES_T * T_D, stats_at = LOCAL_AT(numbers);
    const uint a_full = LOCAL_AT(bars), a_empty = a_full + 8 * A_TILES, q_full = a_empty + 8 * A_TILES;
    const uint q_empty = q_full + 8 * STAGES, dy_full = q_empty + 8 * STAGES;
    const uint dy_empty = dy_full + 8 * STAGES, qt_full = dy_empty + 8 * STAGES, qt_empty = qt_full + 8 * STAGES_T;
    const uint dyt_full = qt_empty + 8 * STAGES_T, dyt_empty = dyt_full + 8 * STAGES_T;
    int n = 0, turn = 0;                        /* blocks and tiles before */
    if (lid == 0) {
        for (int i = 0; i < A_TILES; i++) nv_barrier_init(a_full + 8 * i, BRINGERS), nv_barrier_init(a_empty + 8 * i, 4 * GROUPS);
        for (int i = 0; i < STAGES; i++) {
            nv_barrier_init(q_full + 8 * i, BRINGERS), nv_barrier_init(dy_full + 8 * i, BRINGERS);
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
        LESS();
        if (BRINGERS == 1 && item) return;
        for (int id = (int)get_group_id(0); id < (int)a.all; id += (int)get_num_groups(0), turn++) {
            const tile w = tile_of(&a, id);
            const int b = w.b, head = w.head, first = w.first, G = (int)(a.H / a.ratio);
            const source k_from = SOURCE(k, head, G, k_tiles, keys, d, D), v_from = SOURCE(v, head, G, k_tiles, keys, e, E);
            const uint at = a_at + turn % A_TILES * A_BYTES, ready = a_full + turn % A_TILES * 8;
            nv_barrier_wait(a_empty + turn % A_TILES * 8, turn / A_TILES & 1 ^ 1);
            expect(ready, A_BYTES);
            for (int i = 0; i < GROUPS; i++) {
                fetch(at + i * A_D, k_from, first + i * 64, 64, ready, item);
                fetch(at + GROUPS * A_D + i * A_E, v_from, first + i * 64, 64, ready, item);
            }
            fetched(ready);
            for (int j = 0; j < w.steps; j++, n++) {
                const int h = head * (int)a.ratio + j / w.each, row = (w.begin + j % w.each) * BLOCK, s = n % STAGES;
                const uint phase = n / STAGES & 1 ^ 1;
                const source q_from = SOURCE(q, h, a.H, q_tiles, queries, d, D);
                const source dy_from = SOURCE(dy, h, a.H, q_tiles, queries, e, E);
                nv_barrier_wait(q_empty + 8 * s, phase);
                expect(q_full + 8 * s, B_D + BLOCK * 8);
                fetch(q_at + s * B_D, q_from, row, BLOCK, q_full + 8 * s, item);
                fetch_stats(stats_at + s * (BLOCK * 8), stats + a.stats + ((long)b * a.H + h) * a.q_tiles * TILE + row,
                            q_full + 8 * s, item);
                fetched(q_full + 8 * s);
                nv_barrier_wait(dy_empty + 8 * s, phase);
                expect(dy_full + 8 * s, B_E);
                fetch(dy_at + s * B_E, dy_from, row, BLOCK, dy_full + 8 * s, item);
                fetched(dy_full + 8 * s);
#if NUMBER == 4
                const long tile_at = ((long)b * a.H + h) * a.q_tiles + row / TILE;
                const int u = n % STAGES_T;
                const uint phase_t = n / STAGES_T & 1 ^ 1;
                nv_barrier_wait(dyt_empty + 8 * u, phase_t);
                nv_barrier_expect(dyt_full + 8 * u, T_E);
                nv_bulk_load(dyt_at + u * T_E, dyt + a.dyt + tile_at * TURNED_TILE(E), T_E, dyt_full + 8 * u);
                nv_barrier_wait(qt_empty + 8 * u, phase_t);
                nv_barrier_expect(qt_full + 8 * u, T_D);
                nv_bulk_load(qt_at + u * T_D, qt + a.qt + tile_at * TURNED_TILE(D), T_D, qt_full + 8 * u);
#endif
            }
        }
        all_brought();
        return;
    }
    MORE();
    const int group = lid >> 7, t = lane & 3, mine = group * 64 + (item >> 5) * 16 + (lane >> 2);
    const bool boss = item == 0;
    const ulong db_q = describe(q_at, 1), db_dy = describe(dy_at, 1);
#if NUMBER == 4
    const ulong dt_q = describe(qt_at, 1), dt_dy = describe(dyt_at, 1);
#else
    const ulong dt_q = describe(q_at, DOWN_LEAD), dt_dy = describe(dy_at, DOWN_LEAD);
#endif
    float sk[D / 2], sv[E / 2], s[BLOCK / 2], ds[BLOCK / 2];
    uint p[BLOCK * NUMBER / 8], x[BLOCK * NUMBER / 8];
    const float scale = as_float((int)a.scale), c = scale * LOG2E;
    for (int id = (int)get_group_id(0); id < (int)a.all; id += (int)get_num_groups(0), turn++) {
        const tile w = tile_of(&a, id);
        const uint here = a_at + turn % A_TILES * A_BYTES;
        const ulong da_k = describe(here + group * A_D, 1), da_v = describe(here + GROUPS * A_D + group * A_E, 1);
        const int key0 = w.first + mine;
        UNROLL for (int i = 0; i < D / 2; i++) sk[i] = 0;
        UNROLL for (int i = 0; i < E / 2; i++) sv[i] = 0;
        nv_barrier_wait(a_full + turn % A_TILES * 8, turn / A_TILES & 1);
        ARRIVED();
        for (int j = 0; j < w.steps; j++, n++) {
            const int at = n % STAGES, before = (n + STAGES - 1) % STAGES;
            const uint phase = n / STAGES & 1;
            nv_barrier_wait(q_full + 8 * at, phase);
            ARRIVED();
            NV_WGMMA_FENCE();
            UNROLL for (int i = 0; i < D / STEP; i++)
                SCORES(s, da_k + ALONG(i, 64), db_q + at * (B_D / 16) + ALONG(i, BLOCK), i);
            NV_WGMMA_COMMIT();
            nv_barrier_wait(dy_full + 8 * at, phase);
            ARRIVED();
            NV_WGMMA_FENCE();
            UNROLL for (int i = 0; i < E / STEP; i++)
                SCORES(ds, da_v + ALONG(i, 64), db_dy + at * (B_E / 16) + ALONG(i, BLOCK), i);
            NV_WGMMA_COMMIT();
            WAIT1_S(s);                    /* the sums into dk of the step before are done, too */
#if NUMBER == 4
            nv_barrier_arrive_if(qt_empty + 8 * ((n + STAGES_T - 1) % STAGES_T), j > 0 && boss);
#else
            nv_barrier_arrive_if(q_empty + 8 * before, j > 0 && lane == 0);
#endif
            const int q0 = (w.begin + j % w.each) * BLOCK + 2 * t;
#ifdef MASKED
            global const MEMORY(M) *m_at = mask + a.mask + w.b * a.m_batch + (w.head * a.ratio + j / w.each) * a.m_head;
#endif
#ifdef CAUSAL
            if ((w.begin + j % w.each) * BLOCK + (int)a.before < w.first + group * 64 + 63)
                weights(&a, s, stats_at + at * (BLOCK * 8) + 16 * t, c, q0, key0, MASK_AT, true);
            else
#endif
                weights(&a, s, stats_at + at * (BLOCK * 8) + 16 * t, c, q0, key0, MASK_AT, false);
            as_operand(p, s);
            WAIT0_S(ds);
#if NUMBER == 4
            nv_barrier_arrive_if(dy_empty + 8 * at, boss);
            nv_barrier_wait(dyt_full + 8 * (n % STAGES_T), n / STAGES_T & 1);
#endif
            NV_WGMMA_FENCE();
            UNROLL for (int i = 0; i < BLOCK / STEP; i++)
#if NUMBER == 4
                SUM_E(sv, p + 4 * i, dt_dy + n % STAGES_T * (T_E / 16) + DOWN(i, E), 1);
#else
                SUM_E(sv, p + 4 * i, dt_dy + at * (B_E / 16) + DOWN(i, E), 1);
#endif
            NV_WGMMA_COMMIT();
            UNROLL for (int i = 0; i < BLOCK / 8; i++) {
                uint n[4];
                nv_local_load4(n, stats_at + at * (BLOCK * 8) + (8 * i + 2 * t) * 8);
                float w[4];
#if SCARCE
                FAC_CAT(apart_, KIND)(w, p[2 * i]), FAC_CAT(apart_, KIND)(w + 2, p[2 * i + 1]);
#else
                UNROLL for (int u = 0; u < 4; u++) w[u] = s[4 * i + u];
#endif
                UNROLL for (int u = 0; u < 4; u++) ds[4 * i + u] = w[u] * (ds[4 * i + u] - as_float(n[(u & 1) * 2 + 1]));
            }
            as_operand(x, ds);
#if NUMBER == 4
            nv_barrier_arrive_if(q_empty + 8 * at, lane == 0);      /* behind the last look at stats */
            nv_barrier_wait(qt_full + 8 * (n % STAGES_T), n / STAGES_T & 1);
#endif
            NV_WGMMA_FENCE();
            UNROLL for (int i = 0; i < BLOCK / STEP; i++)
#if NUMBER == 4
                SUM_D(sk, x + 4 * i, dt_q + n % STAGES_T * (T_D / 16) + DOWN(i, D), 1);
#else
                SUM_D(sk, x + 4 * i, dt_q + at * (B_D / 16) + DOWN(i, D), 1);
#endif
            NV_WGMMA_COMMIT();
            WAIT1_E(sv);
#ifdef CAUSAL
            WAIT0_D(sk);                    /* ptxas would take no more than one group at a time otherwise */
#endif
#if NUMBER == 4
            nv_barrier_arrive_if(dyt_empty + 8 * (n % STAGES_T), boss);
#else
            nv_barrier_arrive_if(dy_empty + 8 * at, boss);
#endif
        }
        WAIT0_D(sk);
        /* every warp: a tile that no query sees has no product that would keep them together, and parity tells two phases only */
        nv_barrier_arrive_if(a_empty + turn % A_TILES * 8, lane == 0);
#if NUMBER == 4
        nv_barrier_arrive_if(qt_empty + 8 * ((n + STAGES_T - 1) % STAGES_T), w.steps > 0 && boss);
#else
        nv_barrier_arrive_if(q_empty + 8 * ((n + STAGES - 1) % STAGES), w.steps > 0 && lane == 0);
#endif
        put_rows(dk + a.y0 + w.b * a.y0_batch + w.head * a.y0_head, a.y0_row, key0, (int)a.keys, (int)a.d, D, t, sk, scale);
        put_rows(dv + a.y1 + w.b * a.y1_batch + w.head * a.y1_head, a.y1_row, key0, (int)a.keys, (int)a.e, E, t, sv, 1);
    }
}
