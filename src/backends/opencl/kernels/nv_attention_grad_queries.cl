/* dq of 64 GROUPS queries: see nv_attention_grad.cl. */

/* A tile of queries of one head: the first, and how many blocks of keys it sees. */
typedef struct tile { int first, b, h, blocks; } tile;
INLINE tile tile_of(const args *a, int id) {
    const int2 place = place_of(id, (int)a->all, ((int)a->queries + 64 * GROUPS - 1) / (64 * GROUPS), true);
    tile w = { place.x * 64 * GROUPS, place.y / (int)a->H, place.y % (int)a->H, 0 };
#ifdef CAUSAL
    const int last = w.first + 64 * GROUPS + (int)a->before, keys = last < (int)a->keys ? last : (int)a->keys;
#else
    const int keys = (int)a->keys;
#endif
    w.blocks = (keys + BLOCK - 1) / BLOCK;
    return w;
}
/* Products to weights, queries in rows.  No weight is above 1 but those of keys behind the last one, which must not become
 * infinite: k is 0 there. */
INLINE void weights(const args *a, float *s, float c, float n0, float n1, int row0, int key0, global const MEMORY(M) *m_at,
                    const bool edge) {
    UNROLL for (int i = 0; i < BLOCK / 2; i++) {
        const int key = key0 + i / 4 * 8 + (i & 1), row = row0 + (i & 2) * 4;
        float w = fma(s[i], c, -(i & 2 ? n1 : n0));
#ifdef MASKED
        if (row < a->queries && key < a->keys) w += mask_at(m_at + row * a->m_row + key * a->m_key);
#endif
        if (edge) w = nv_hidden(w, key, row + (int)a->before);
        s[i] = nv_exp2(fmin(w, 0.0f));
    }
}

kernel GROUP(ITEMS) void attention_grad_queries(const args a, global const STREAM *q, global const STREAM *k,
                                                global const STREAM *v, global const STREAM *dy, global const uchar *kt,
                                                global const float2 *stats, global const MEMORY(M) *mask, global MEMORY(X) *dq) {
    local uchar memory[A_TILES * A_BYTES + STAGES * (B_D + B_E) + STAGED_T] __attribute__((aligned(1024)));
    local ulong bars[2 * A_TILES + 4 * STAGES + 2 * STAGES_T];
    const int lid = get_local_id(0), lane = lid & 31, item = lid & 127;
    const uint a_at = LOCAL_AT(memory), k_at = a_at + A_TILES * A_BYTES, v_at = k_at + STAGES * B_D;
    const uint kt_at = v_at + STAGES * B_E;
    const uint a_full = LOCAL_AT(bars), a_empty = a_full + 8 * A_TILES, k_full = a_empty + 8 * A_TILES;
    const uint k_empty = k_full + 8 * STAGES, v_full = k_empty + 8 * STAGES;
    const uint v_empty = v_full + 8 * STAGES, kt_full = v_empty + 8 * STAGES, kt_empty = kt_full + 8 * STAGES_T;
    int n = 0, turn = 0;                        /* blocks and tiles before */
    if (lid == 0) {
        for (int i = 0; i < A_TILES; i++) nv_barrier_init(a_full + 8 * i, BRINGERS), nv_barrier_init(a_empty + 8 * i, GROUPS);
        for (int i = 0; i < STAGES; i++) {
            nv_barrier_init(k_full + 8 * i, BRINGERS), nv_barrier_init(v_full + 8 * i, BRINGERS);
            nv_barrier_init(k_empty + 8 * i, GROUPS), nv_barrier_init(v_empty + 8 * i, GROUPS);
        }
        for (int i = 0; i < STAGES_T; i++) nv_barrier_init(kt_full + 8 * i, 1), nv_barrier_init(kt_empty + 8 * i, GROUPS);
        nv_barriers_made();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid >= 128 * GROUPS) {
        LESS();
        if (BRINGERS == 1 && item) return;
        for (int id = (int)get_group_id(0); id < (int)a.all; id += (int)get_num_groups(0), turn++) {
            const tile w = tile_of(&a, id);
            const int b = w.b, h = w.h, first = w.first, head = h / (int)a.ratio, G = (int)(a.H / a.ratio);
            const source q_from = SOURCE(q, h, a.H, q_tiles, queries, d, D), dy_from = SOURCE(dy, h, a.H, q_tiles, queries, e, E);
            const source k_from = SOURCE(k, head, G, k_tiles, keys, d, D), v_from = SOURCE(v, head, G, k_tiles, keys, e, E);
            const uint at = a_at + turn % A_TILES * A_BYTES, ready = a_full + turn % A_TILES * 8;
            nv_barrier_wait(a_empty + turn % A_TILES * 8, turn / A_TILES & 1 ^ 1);
            expect(ready, A_BYTES);
            for (int i = 0; i < GROUPS; i++) {
                fetch(at + i * A_D, q_from, first + i * 64, 64, ready, item);
                fetch(at + GROUPS * A_D + i * A_E, dy_from, first + i * 64, 64, ready, item);
            }
            fetched(ready);
            for (int j = 0; j < w.blocks; j++, n++) {
                const int s = n % STAGES;
                const uint phase = n / STAGES & 1 ^ 1;
                nv_barrier_wait(k_empty + 8 * s, phase);
                expect(k_full + 8 * s, B_D);
                fetch(k_at + s * B_D, k_from, j * BLOCK, BLOCK, k_full + 8 * s, item);
                fetched(k_full + 8 * s);
                nv_barrier_wait(v_empty + 8 * s, phase);
                expect(v_full + 8 * s, B_E);
                fetch(v_at + s * B_E, v_from, j * BLOCK, BLOCK, v_full + 8 * s, item);
                fetched(v_full + 8 * s);
#if NUMBER == 4
                const int u = n % STAGES_T;
                nv_barrier_wait(kt_empty + 8 * u, n / STAGES_T & 1 ^ 1);
                nv_barrier_expect(kt_full + 8 * u, T_D);
                const long tile_at = ((long)b * G + head) * a.k_tiles + j * (BLOCK / TILE);
                nv_bulk_load(kt_at + u * T_D, kt + a.kt + tile_at * TURNED_TILE(D), T_D, kt_full + 8 * u);
#endif
            }
        }
        all_brought();
        return;
    }
    MORE();
    const int group = lid >> 7, t = lane & 3, mine = group * 64 + (item >> 5) * 16 + (lane >> 2);
    const bool boss = item == 0;
    const ulong db_k = describe(k_at, 1), db_v = describe(v_at, 1);
#if NUMBER == 4
    const ulong dt_k = describe(kt_at, 1);
#else
    const ulong dt_k = describe(k_at, DOWN_LEAD);
#endif
    float sq[D / 2], s[BLOCK / 2], ds[BLOCK / 2];
    uint x[BLOCK * NUMBER / 8];
    const float scale = as_float((int)a.scale), c = scale * LOG2E;
    for (int id = (int)get_group_id(0); id < (int)a.all; id += (int)get_num_groups(0), turn++) {
        const tile w = tile_of(&a, id);
        const uint here = a_at + turn % A_TILES * A_BYTES;
        const ulong da_q = describe(here + group * A_D, 1), da_dy = describe(here + GROUPS * A_D + group * A_E, 1);
        const int row0 = w.first + mine;
        UNROLL for (int i = 0; i < D / 2; i++) sq[i] = 0;
        global const float2 *n_at = stats + a.stats + ((long)w.b * a.H + w.h) * a.q_tiles * TILE + row0;
        const float2 n0 = n_at[0], n1 = n_at[8];
#ifdef MASKED
        global const MEMORY(M) *m_at = mask + a.mask + w.b * a.m_batch + w.h * a.m_head;
#endif
        nv_barrier_wait(a_full + turn % A_TILES * 8, turn / A_TILES & 1);
        ARRIVED();
        for (int j = 0; j < w.blocks; j++, n++) {
            const int at = n % STAGES;
            const uint phase = n / STAGES & 1;
            nv_barrier_wait(k_full + 8 * at, phase);
            ARRIVED();
            NV_WGMMA_FENCE();
            UNROLL for (int i = 0; i < D / STEP; i++)
                SCORES(s, da_q + ALONG(i, 64), db_k + at * (B_D / 16) + ALONG(i, BLOCK), i);
            NV_WGMMA_COMMIT();
            nv_barrier_wait(v_full + 8 * at, phase);
            ARRIVED();
            NV_WGMMA_FENCE();
            UNROLL for (int i = 0; i < E / STEP; i++)
                SCORES(ds, da_dy + ALONG(i, 64), db_v + at * (B_E / 16) + ALONG(i, BLOCK), i);
            NV_WGMMA_COMMIT();
            WAIT1_S(s);               /* and the sums into dq of the step before */
#if NUMBER == 4
            nv_barrier_arrive_if(kt_empty + 8 * ((n + STAGES_T - 1) % STAGES_T), j > 0 && boss);
#else
            nv_barrier_arrive_if(k_empty + 8 * ((n + STAGES - 1) % STAGES), j > 0 && boss);
#endif
            const int key0 = j * BLOCK + 2 * t;
#ifdef CAUSAL
            if (j * BLOCK + BLOCK - 1 > w.first + group * 64 + (int)a.before)
                weights(&a, s, c, n0.x, n1.x, row0, key0, MASK_AT, true);
            else
#endif
                weights(&a, s, c, n0.x, n1.x, row0, key0, MASK_AT, false);
            WAIT0_S(ds);
            nv_barrier_arrive_if(v_empty + 8 * at, boss);
#if NUMBER == 4
            nv_barrier_arrive_if(k_empty + 8 * at, boss);
#endif
            UNROLL for (int i = 0; i < BLOCK / 2; i++) ds[i] = s[i] * (ds[i] - (i & 2 ? n1.y : n0.y));
            as_operand(x, ds);
#if NUMBER == 4
            nv_barrier_wait(kt_full + 8 * (n % STAGES_T), n / STAGES_T & 1);
#endif
            NV_WGMMA_FENCE();
            UNROLL for (int i = 0; i < BLOCK / STEP; i++)
#if NUMBER == 4
                SUM_D(sq, x + 4 * i, dt_k + n % STAGES_T * (T_D / 16) + DOWN(i, D), 1);
#else
                SUM_D(sq, x + 4 * i, dt_k + at * (B_D / 16) + DOWN(i, D), 1);
#endif
            NV_WGMMA_COMMIT();
#ifdef CAUSAL
            WAIT0_D(sq);                    /* ptxas would take no more than one group at a time otherwise */
#endif
        }
        WAIT0_D(sq);
        nv_barrier_arrive_if(a_empty + turn % A_TILES * 8, boss);
#if NUMBER == 4
        nv_barrier_arrive_if(kt_empty + 8 * ((n + STAGES_T - 1) % STAGES_T), boss);
#else
        nv_barrier_arrive_if(k_empty + 8 * ((n + STAGES - 1) % STAGES), boss);
#endif
        put_rows(dq + a.y0 + w.b * a.y0_batch + w.h * a.y0_head, a.y0_row, row0, (int)a.queries, (int)a.d, D, t, sq, scale);
    }
}
