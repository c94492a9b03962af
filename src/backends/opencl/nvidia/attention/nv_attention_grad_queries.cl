/* dq of 64 GROUPS queries: see nv_attention_grad.cl. */

/* A tile of queries of one head: the first, and how many blocks of keys it sees. */
typedef struct tile {
    int first, b, h, blocks;
} tile;
#define TILES(a) (((int)(a)->queries + 64 * GROUPS - 1) / (64 * GROUPS))
INLINE tile tile_of(const args *a, turn u) {
    const int2 place = place_of(u, (int)a->all, TILES(a), true);
    tile w = { place.x * 64 * GROUPS, place.y / (int)a->H, place.y % (int)a->H, 0 };
#ifdef CAUSAL
    const int last = w.first + 64 * GROUPS + (int)a->before,
              keys = last < (int)a->keys ? last : (int)a->keys;
#else
    const int keys = (int)a->keys;
#endif
    w.blocks = blocks_before(keys);
    return w;
}
/* Products to weights, queries in rows.  No weight is above 1 but those of keys after the last one,
 * which must not become infinite: k is 0 there. */
INLINE void weights(const args *a, float *s, float c, float n0, float n1, int row0, int key0,
                    global const MEMORY(M) * m_at, const bool edge) {
    const int own = row0 + (int)a->before - key0;
    UNROLL
    for (int i = 0; i < BLOCK / 2; i++) {
        const int key = key0 + i / 4 * 8 + (i & 1), row = row0 + (i & 2) * 4;
        float w = fma(s[i], c, -(i & 2 ? n1 : n0));
#ifdef MASKED
        if (row < a->queries && key < a->keys) w += mask_at(m_at + row * a->m_row + key * a->m_key);
#endif
        if (edge) w = nv_hidden(w, i / 4 * 8 + (i & 1) - (i & 2) * 4, own);
        s[i] = nv_exp2(fmin(w, 0.0f));
    }
}

/* What four warps work with: operands, barriers, numbers of rows; sums, products; of their two rows
 * what nv_attention_delta.cl made. */
typedef struct team {
    ulong da_q, da_dy, db_k, db_v, dt_k;
    uint k_full, k_empty, v_full, v_empty, kt_full, kt_empty;
    int t, boss, group, row0;
    float c, *sq, *s, *ds;
    float2 n0, n1;
    uint *x;
} team;

/* A block of keys, the n-th one of all, from number key0 on.  held: the one before was not freed,
 * sums may still read it. */
INLINE void add_block(const args *a, const team *w, int n, int key0, bool held,
                      global const MEMORY(M) * m_at, const bool edge) {
    const int at = n % STAGES;
    const uint phase = n / STAGES & 1;
    float *s = w->s, *ds = w->ds;
    nv_barrier_wait(w->k_full + 8 * at, phase);
    NV_WGMMA_FENCE();
    UNROLL
    for (int i = 0; i < D / STEP; i++)
        SCORES(s, w->da_q + ALONG(i, 64), w->db_k + at * (B_D / 16) + ALONG(i, BLOCK), i);
    NV_WGMMA_COMMIT();
    nv_barrier_wait(w->v_full + 8 * at, phase);
    NV_WGMMA_FENCE();
    UNROLL
    for (int i = 0; i < E / STEP; i++)
        SCORES(ds, w->da_dy + ALONG(i, 64), w->db_v + at * (B_E / 16) + ALONG(i, BLOCK), i);
    NV_WGMMA_COMMIT();
    WAIT1_S(s); /* and the sums into dq of the step before */
#if NUMBER == 4
    nv_barrier_arrive_if(w->kt_empty + 8 * ((n + STAGES_T - 1) % STAGES_T), held && w->boss);
#else
    nv_barrier_arrive_if(w->k_empty + 8 * ((n + STAGES - 1) % STAGES), held && w->boss);
#endif
    weights(a, s, w->c, w->n0.x, w->n1.x, w->row0, key0 + 2 * w->t, m_at, edge);
    WAIT0_S(ds);
    nv_barrier_arrive_if(w->v_empty + 8 * at, w->boss);
#if NUMBER == 4
    nv_barrier_arrive_if(w->k_empty + 8 * at, w->boss);
#endif
    UNROLL
    for (int i = 0; i < BLOCK / 2; i++) ds[i] = s[i] * (ds[i] - (i & 2 ? w->n1.y : w->n0.y));
    as_operand(w->x, ds);
#if NUMBER == 4
    nv_barrier_wait(w->kt_full + 8 * (n % STAGES_T), n / STAGES_T & 1);
#endif
    NV_WGMMA_FENCE();
    UNROLL
    for (int i = 0; i < BLOCK / STEP; i++)
#if NUMBER == 4
        SUM_D(w->sq, w->x + 4 * i, w->dt_k + n % STAGES_T * (T_D / 16) + DOWN(i, D), 1);
#else
        SUM_D(w->sq, w->x + 4 * i, w->dt_k + at * (B_D / 16) + DOWN(i, D), 1);
#endif
    NV_WGMMA_COMMIT();
}
/* A block that none of these queries sees: all four warps wait, since parity tells two phases only,
 * and then free it. */
INLINE void pass_block(const team *w, int n) {
    const int at = n % STAGES;
    nv_barrier_wait(w->k_full + 8 * at, n / STAGES & 1);
    nv_barrier_wait(w->v_full + 8 * at, n / STAGES & 1);
#if NUMBER == 4
    nv_barrier_wait(w->kt_full + 8 * (n % STAGES_T), n / STAGES_T & 1);
#endif
    nv_meet(1 + w->group, 128);
    nv_barrier_arrive_if(w->k_empty + 8 * at, w->boss);
    nv_barrier_arrive_if(w->v_empty + 8 * at, w->boss);
#if NUMBER == 4
    nv_barrier_arrive_if(w->kt_empty + 8 * (n % STAGES_T), w->boss);
#endif
}

kernel GROUP(ITEMS) void attention_grad_queries(const args a, global const STREAM *q,
                                                global const STREAM *k, global const STREAM *v,
                                                global const STREAM *dy, global const uchar *kt,
                                                global const float2 *stats,
                                                global const MEMORY(M) * mask,
                                                global MEMORY(X) * dq, global uchar *maps) {
    local uchar memory[A_TILES * A_BYTES + STAGES * (B_D + B_E) + STAGED_T]
        __attribute__((aligned(1024)));
    local ulong bars[2 * A_TILES + 4 * STAGES + 2 * STAGES_T];
#ifdef MAPS
    local uchar room[ALL_MAPS * 128] __attribute__((aligned(128)));
#endif
    const int lid = get_local_id(0), lane = lid & 31, item = lid & 127, all = (int)a.all,
              tiles = TILES(&a);
    const uint a_at = LOCAL_AT(memory), k_at = a_at + A_TILES * A_BYTES, v_at = k_at + STAGES * B_D;
    const uint kt_at = v_at + STAGES * B_E;
    const uint a_full = LOCAL_AT(bars), a_empty = a_full + 8 * A_TILES,
               k_full = a_empty + 8 * A_TILES;
    const uint k_empty = k_full + 8 * STAGES, v_full = k_empty + 8 * STAGES;
    const uint v_empty = v_full + 8 * STAGES, kt_full = v_empty + 8 * STAGES,
               kt_empty = kt_full + 8 * STAGES_T;
    int n = 0, turns = 0; /* blocks and tiles before */
    if (lid == 0) {
        for (int i = 0; i < A_TILES; i++)
            nv_barrier_init(a_full + 8 * i, 1), nv_barrier_init(a_empty + 8 * i, GROUPS);
        for (int i = 0; i < STAGES; i++) {
            nv_barrier_init(k_full + 8 * i, 1), nv_barrier_init(v_full + 8 * i, 1);
            nv_barrier_init(k_empty + 8 * i, GROUPS), nv_barrier_init(v_empty + 8 * i, GROUPS);
        }
        for (int i = 0; i < STAGES_T; i++)
            nv_barrier_init(kt_full + 8 * i, 1), nv_barrier_init(kt_empty + 8 * i, GROUPS);
        nv_barriers_made();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid >= 128 * GROUPS) {
#ifdef MAPS
        global uchar *map = maps_at(maps, a.maps, ALL_MAPS);
        make_maps(&a, LOCAL_AT(room), map, q, k, v, dy, a.all / (tiles * a.H), item);
#endif
        LESS();
        if (item) return;
        for (turn u = first_turn(); is_turn(u, all, tiles); u = next_turn(u, all, tiles), turns++) {
            const tile w = tile_of(&a, u);
            const int b = w.b, h = w.h, first = w.first, head = h / (int)a.ratio,
                      G = (int)(a.H / a.ratio);
            const source q_from = SOURCE(q, h, a.H, q_tiles, D),
                         dy_from = SOURCE(dy, h, a.H, q_tiles, E);
            const source k_from = SOURCE(k, head, G, k_tiles, D),
                         v_from = SOURCE(v, head, G, k_tiles, E);
            const uint at = a_at + turns % A_TILES * A_BYTES, ready = a_full + turns % A_TILES * 8;
            nv_barrier_wait(a_empty + turns % A_TILES * 8, turns / A_TILES & 1 ^ 1);
            nv_barrier_expect(ready, A_BYTES);
            for (int i = 0; i < GROUPS; i++) {
                fetch(at + i * A_D, q_from, first + i * 64, 64, ready);
                fetch(at + GROUPS * A_D + i * A_E, dy_from, first + i * 64, 64, ready);
            }
            for (int j = 0; j < w.blocks; j++, n++) {
                const int s = n % STAGES;
                const uint phase = n / STAGES & 1 ^ 1;
                nv_barrier_wait(k_empty + 8 * s, phase);
                nv_barrier_expect(k_full + 8 * s, B_D);
                fetch(k_at + s * B_D, k_from, j * BLOCK, BLOCK, k_full + 8 * s);
                nv_barrier_wait(v_empty + 8 * s, phase);
                nv_barrier_expect(v_full + 8 * s, B_E);
                fetch(v_at + s * B_E, v_from, j * BLOCK, BLOCK, v_full + 8 * s);
#if NUMBER == 4
                const int u = n % STAGES_T;
                nv_barrier_wait(kt_empty + 8 * u, n / STAGES_T & 1 ^ 1);
                nv_barrier_expect(kt_full + 8 * u, T_D);
                const long tile_at = ((long)b * G + head) * a.k_tiles + j * (BLOCK / TILE);
                nv_bulk_load(kt_at + u * T_D, kt + a.kt + tile_at * TRANSPOSED_TILE(D), T_D,
                             kt_full + 8 * u);
#endif
            }
        }
        return;
    }
    MORE();
    const int group = lid >> 7, t = lane & 3, mine = group * 64 + (item >> 5) * 16 + (lane >> 2);
    float sq[D / 2], s[BLOCK / 2], ds[BLOCK / 2];
    uint x[BLOCK * NUMBER / 8];
    const float scale = as_float((int)a.scale);
    team w4 = {
        .db_k = describe(k_at, 1),
        .db_v = describe(v_at, 1),
#if NUMBER == 4
        .dt_k = describe(kt_at, 1),
#else
        .dt_k = describe(k_at, DOWN_LEAD),
#endif
        .k_full = k_full,
        .k_empty = k_empty,
        .v_full = v_full,
        .v_empty = v_empty,
        .kt_full = kt_full,
        .kt_empty = kt_empty,
        .t = t,
        .boss = item == 0,
        .group = group,
        .c = scale * LOG2E,
        .sq = sq,
        .s = s,
        .ds = ds,
        .x = x
    };
    for (turn u = first_turn(); is_turn(u, all, tiles); u = next_turn(u, all, tiles), turns++) {
        const tile w = tile_of(&a, u);
        const uint here = a_at + turns % A_TILES * A_BYTES;
        const int row0 = w.first + mine;
        w4.da_q = describe(here + group * A_D, 1);
        w4.da_dy = describe(here + GROUPS * A_D + group * A_E, 1);
        w4.row0 = row0;
        UNROLL
        for (int i = 0; i < D / 2; i++) sq[i] = 0;
        global const float2 *n_at =
            stats + a.stats + ((long)w.b * a.H + w.h) * a.q_tiles * TILE + row0;
        w4.n0 = n_at[0];
        w4.n1 = n_at[8];
#ifdef MASKED
        global const MEMORY(M) *m_at = mask + MASK_OF(a, w.b, w.h);
#endif
        nv_barrier_wait(a_full + turns % A_TILES * 8, turns / A_TILES & 1);
        bool held = false;
        int j = 0;
#ifdef CAUSAL
        /* Keys that all of these queries see, those that some see, those that none sees: without a
         * branch around the products, which ptxas would let run one after the other only. */
        const int own = w.first + group * 64 + (int)a.before;
        const int every = between((own + 1) / BLOCK, 0, w.blocks),
                  some = between(blocks_before(own + 64), 0, w.blocks);
        for (; j < every; j++, n++, held = true)
            add_block(&a, &w4, n, j * BLOCK, held, MASK_AT, false);
        for (; j < some; j++, n++, held = true)
            add_block(&a, &w4, n, j * BLOCK, held, MASK_AT, true);
#else
        for (; j < w.blocks; j++, n++, held = true)
            add_block(&a, &w4, n, j * BLOCK, held, MASK_AT, false);
#endif
        WAIT0_D(sq);
        nv_barrier_arrive_if(a_empty + turns % A_TILES * 8, item == 0);
#if NUMBER == 4
        nv_barrier_arrive_if(kt_empty + 8 * ((n + STAGES_T - 1) % STAGES_T), item == 0);
#else
        nv_barrier_arrive_if(k_empty + 8 * ((n + STAGES - 1) % STAGES), item == 0);
#endif
        put_rows(dq + a.y0 + w.b * a.y0_batch + w.h * a.y0_head, a.y0_row, row0, (int)a.queries,
                 (int)a.d, D, t, sq, scale);
        for (; j < w.blocks; j++, n++) pass_block(&w4, n);
    }
}
