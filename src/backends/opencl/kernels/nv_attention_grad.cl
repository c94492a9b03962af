/* Gradients of attention: with P = exp(scale q k^T + mask - lse), dP = dy v^T, dS = P (dP - delta):
 *   dv = P^T dy     dk = scale dS^T q     dq = scale dS k
 * Two kernels: one sums over queries (KEYS: dk and dv of a tile of keys, everything turned, so that P^T and dS^T are left by the
 * first products as the second ones want them), one over keys (dq).  Nothing is summed by two groups: same bits every run. */
typedef struct args {
#ifdef KEYS
    long q, k, v, dy, qt, dyt, stats, mask, y0, y1;
#else
    long q, k, v, dy, kt, stats, mask, y0;
#endif
    long H, ratio, queries, keys, q_tiles, k_tiles, before, d, e, y0_batch, y0_head, y0_row, y1_batch, y1_head, y1_row;
    long q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, dy_batch, dy_head, dy_row;
    long m_batch, m_head, m_row, m_key, scale;
} args;

#define LOG2E 1.44269504088896340736f

#ifdef DELTA
/* stats[row] = lse in units of ln 2, sum of dy y;  rows behind the last one get weights of zero.  Eight lanes a row. */
typedef struct delta_args {
    long y, dy, lse, stats, H, rows, padded, e, y_batch, y_head, y_row, dy_batch, dy_head, dy_row;
} delta_args;
kernel GROUP(256) void delta(const delta_args a, global const MEMORY(X) *y, global const MEMORY(X) *dy, global const float *lse,
                             global float2 *stats) {
    const int lane = get_local_id(0) & 7;
    const int row = (int)get_group_id(0) * 32 + (get_local_id(0) >> 3);
    const long bh = get_group_id(1), b = bh / a.H, h = bh % a.H;
    float sum = 0;
    if (row < a.rows) {
        global const MEMORY(X) *p = y + a.y + b * a.y_batch + h * a.y_head + row * a.y_row;
        global const MEMORY(X) *q = dy + a.dy + b * a.dy_batch + h * a.dy_head + row * a.dy_row;
        for (int i = lane * 4; i < a.e; i += 32) {
            UNROLL for (int j = 0; j < 4; j++)
                if (i + j < a.e) sum = fma(FROM(X, p[i + j]), FROM(X, q[i + j]), sum);
        }
    }
    sum += nv_other_lane(sum, 1);
    sum += nv_other_lane(sum, 2);
    sum += nv_other_lane(sum, 4);
    if (lane == 0 && row < a.padded)
        stats[a.stats + bh * a.padded + row] =
            row < a.rows ? (float2)(lse[a.lse + bh * a.rows + row] * LOG2E, sum) : (float2)(INFINITY, 0);
}
#else

/* BLOCK: queries of a step of KEYS, keys of a step otherwise; TILE: rows of an image's tile */
#define ROWS_K(n, size) (PANELS(size) * (n) * 128)      /* bytes of n rows along the sum */
#define A_D ROWS_K(64, D)
#define A_E ROWS_K(64, E)
#define B_D ROWS_K(BLOCK, D)
#define B_E ROWS_K(BLOCK, E)
#define T_D (BLOCK / 32 * D * 128)         /* TF32: the same turned */
#define T_E (BLOCK / 32 * E * 128)

/* n rows of an image, whose tiles have TILE, to one tile of local memory. */
INLINE void bring(uint to, global const uchar *from, int n, int panels, uint b) {
    if (n == TILE) {
        nv_bulk_load(to, from, panels * TILE * 128, b);
        return;
    }
    for (int s = 0; s < n / TILE; s++)
        for (int p = 0; p < panels; p++)
            nv_bulk_load(to + p * (n * 128) + s * (TILE * 128), from + (s * panels + p) * (TILE * 128), TILE * 128, b);
}

INLINE ulong describe(uint a, uint lead) {
    return (ulong)((a >> 4) & 0x3fff) | (ulong)lead << 16 | (ulong)64 << 32 | (ulong)1 << 62;
}
/* Steps along rows of an operand of n rows; along the rows of a turned operand that is x wide */
#define ALONG(i, n) ((i) / 4 * ((n) * 8) + (i) % 4 * 2)
#if NUMBER == 4
#define TURNED_LEAD 1
#define DOWN(i, x) ((i) / 4 * ((x) * 8) + (i) % 4 * 2)
#else
#define TURNED_LEAD (BLOCK * 8)
#define DOWN(i, x) ((i) * 128)
#endif

/* A square of numbers as the A operand of the next product. */
INLINE void as_operand(uint *p, const float *s) {
#if NUMBER == 4
    UNROLL for (int i = 0; i < BLOCK / 2; i += 4) {
        p[i] = nv_to_tf32(s[i]), p[i + 1] = nv_to_tf32(s[i + 2]);
        p[i + 2] = nv_to_tf32(s[i + 1]), p[i + 3] = nv_to_tf32(s[i + 3]);
    }
#else
    UNROLL for (int i = 0; i < BLOCK / 4; i++) p[i] = FAC_CAT(nv_pack_, KIND)(s[2 * i], s[2 * i + 1]);
#endif
}

INLINE void put_rows(global MEMORY(X) *y, long batch, long head, long step, int first, int rows, int size, int wide, int t, const float *x,
                     float factor) {
    UNROLL for (int k = 0; k < 2; k++) {
        const int row = first + 8 * k;
        if (row >= rows) continue;
        global MEMORY(X) *to = y + batch + head + row * step;
        UNROLL for (int i = 0; i < wide / 8; i++) {
            const int col = 8 * i + 2 * t;
            const float x0 = x[4 * i + 2 * k] * factor, x1 = x[4 * i + 2 * k + 1] * factor;
#ifdef PAIRS
            if (col < size) FAC_CAT(put_two_, X)(to + col, x0, x1);
#else
            if (col < size) FAC_CAT(put_one_, X)(to + col, x0);
            if (col + 1 < size) FAC_CAT(put_one_, X)(to + col + 1, x1);
#endif
        }
    }
}

#ifdef MASKED
#define MASK_AT m_at
#else
#define MASK_AT 0
#endif

#ifdef KEYS
/* Two sums 128 wide leave no registers to keep the weights: they are taken from the pairs. */
#define SCARCE (NUMBER == 2 && D + E > 192)
#if NUMBER == 4
#define STAGED_T (STAGES_T * (T_D + T_E))
#else
#define STAGED_T 0
#endif
/* Products to weights, keys in rows.  edge: some key is behind some query's own. */
INLINE void weights(const args *a, float *s, uint stats, float c, int q0, int key0, global const MEMORY(M) *m_at, const bool edge) {
    UNROLL for (int i = 0; i < BLOCK / 8; i++) {
        uint n[4];
        nv_local_load4(n, stats + i * 64);
        UNROLL for (int u = 0; u < 4; u++) {
            const int query = q0 + 8 * i + (u & 1), key = key0 + (u & 2) * 4;
            float w = fma(s[4 * i + u], c, -as_float(n[(u & 1) * 2]));
#ifdef MASKED
            if (query < a->queries && key < a->keys) {
                const MEMORY(M) m = m_at[query * a->m_row + key * a->m_key];
#ifdef BOOLS
                w = m ? w : -INFINITY;
#else
                w = fma(FROM(M, m), LOG2E, w);
#endif
            }
#endif
            if (edge) w = nv_hidden(w, key, query + (int)a->before);
            s[4 * i + u] = nv_exp2(w);
        }
    }
}

kernel GROUP(ITEMS) void attention_grad_keys(const args a, global const STREAM *q, global const STREAM *k, global const STREAM *v,
        global const STREAM *dy, global const uchar *qt, global const uchar *dyt, global const float2 *stats,
        global const MEMORY(M) *mask, global MEMORY(X) *dk, global MEMORY(X) *dv) {
    local uchar memory[GROUPS * (A_D + A_E) + STAGES * (B_D + B_E) + STAGED_T] __attribute__((aligned(1024)));
    local uchar numbers[STAGES * BLOCK * 8] __attribute__((aligned(16)));
    local ulong bars[1 + 4 * STAGES + 4 * STAGES_T];
    const int lid = get_local_id(0), lane = lid & 31;
    const uint k_at = LOCAL_AT(memory), v_at = k_at + GROUPS * A_D, q_at = v_at + GROUPS * A_E, dy_at = q_at + STAGES * B_D;
    const uint qt_at = dy_at + STAGES * B_E, dyt_at = qt_at + STAGES_T * T_D, stats_at = LOCAL_AT(numbers);
    const uint ready = LOCAL_AT(bars), q_full = ready + 8, q_empty = q_full + 8 * STAGES, dy_full = q_empty + 8 * STAGES;
    const uint dy_empty = dy_full + 8 * STAGES, qt_full = dy_empty + 8 * STAGES, qt_empty = qt_full + 8 * STAGES_T;
    const uint dyt_full = qt_empty + 8 * STAGES_T, dyt_empty = dyt_full + 8 * STAGES_T;
    const int tile = (int)get_group_id(0), kv = (int)get_group_id(1), G = (int)(a.H / a.ratio), b = kv / G, first = tile * 64 * GROUPS;
    const int blocks = ((int)a.queries + BLOCK - 1) / BLOCK;
#ifdef CAUSAL
    int begin = (first - (int)a.before) / BLOCK;
    begin = begin < 0 ? 0 : begin > blocks ? blocks : begin;
#else
    const int begin = 0;
#endif
    const int each = blocks - begin, steps = each * (int)a.ratio;
    if (lid == 0) {
        nv_barrier_init(ready, BRINGERS);
        for (int i = 0; i < STAGES; i++) {
            nv_barrier_init(q_full + 8 * i, BRINGERS), nv_barrier_init(dy_full + 8 * i, BRINGERS);
            nv_barrier_init(q_empty + 8 * i, GROUPS), nv_barrier_init(dy_empty + 8 * i, GROUPS);
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
#ifdef DIRECT
        const int item = lid & 127, kv_head = kv % G;
        for (int i = 0; i < GROUPS; i++) {
            bring_rows(k_at + i * A_D, k + a.k + b * a.k_batch + kv_head * a.k_head, a.k_row, first + i * 64, 64, (int)a.keys, (int)a.d,
                       PANELS(D), item);
            bring_rows(v_at + i * A_E, v + a.v + b * a.v_batch + kv_head * a.v_head, a.v_row, first + i * 64, 64, (int)a.keys, (int)a.e,
                       PANELS(E), item);
        }
        nv_barrier_arrive_copies(ready);
        for (int j = 0; j < steps; j++) {
            const int h = kv_head * (int)a.ratio + j / each, row = (begin + j % each) * BLOCK, s = j % STAGES;
            const uint phase = j / STAGES & 1 ^ 1;
            nv_barrier_wait(q_empty + 8 * s, phase);
            bring_rows(q_at + s * B_D, q + a.q + b * a.q_batch + h * a.q_head, a.q_row, row, BLOCK, (int)a.queries, (int)a.d, PANELS(D), item);
            if (item < BLOCK / 2)
                nv_copy16(stats_at + s * (BLOCK * 8) + item * 16, stats + a.stats + (b * a.H + h) * a.q_tiles * TILE + row + item * 2, 16);
            nv_barrier_arrive_copies(q_full + 8 * s);
            nv_barrier_wait(dy_empty + 8 * s, phase);
            bring_rows(dy_at + s * B_E, dy + a.dy + b * a.dy_batch + h * a.dy_head, a.dy_row, row, BLOCK, (int)a.queries, (int)a.e, PANELS(E),
                       item);
            nv_barrier_arrive_copies(dy_full + 8 * s);
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        return;
#else
        if (lid > 128 * GROUPS) return;
        const long k_tile = (long)kv * a.k_tiles + tile * (64 * GROUPS / TILE);
        nv_barrier_expect(ready, GROUPS * (A_D + A_E));
        for (int i = 0; i < GROUPS; i++) {
            bring(k_at + i * A_D, k + a.k + (k_tile + i * (64 / TILE)) * ROWS_K(TILE, D), 64, PANELS(D), ready);
            bring(v_at + i * A_E, v + a.v + (k_tile + i * (64 / TILE)) * ROWS_K(TILE, E), 64, PANELS(E), ready);
        }
        for (int j = 0; j < steps; j++) {
            const long bh = (long)b * a.H + kv % G * a.ratio + j / each, q_tile = bh * a.q_tiles + (begin + j % each) * (BLOCK / TILE);
            const int s = j % STAGES;
            const uint phase = j / STAGES & 1 ^ 1;
            nv_barrier_wait(q_empty + 8 * s, phase);
            nv_barrier_expect(q_full + 8 * s, B_D + BLOCK * 8);
            bring(q_at + s * B_D, q + a.q + q_tile * ROWS_K(TILE, D), BLOCK, PANELS(D), q_full + 8 * s);
            nv_bulk_load(stats_at + s * (BLOCK * 8), stats + a.stats + q_tile * TILE, BLOCK * 8, q_full + 8 * s);
            nv_barrier_wait(dy_empty + 8 * s, phase);
            nv_barrier_expect(dy_full + 8 * s, B_E);
            bring(dy_at + s * B_E, dy + a.dy + q_tile * ROWS_K(TILE, E), BLOCK, PANELS(E), dy_full + 8 * s);
#if NUMBER == 4
            const int u = j % STAGES_T;
            const uint phase_t = j / STAGES_T & 1 ^ 1;
            nv_barrier_wait(dyt_empty + 8 * u, phase_t);
            nv_barrier_expect(dyt_full + 8 * u, T_E);
            nv_bulk_load(dyt_at + u * T_E, dyt + a.dyt + q_tile * (TILE / 32 * E * 128), T_E, dyt_full + 8 * u);
            nv_barrier_wait(qt_empty + 8 * u, phase_t);
            nv_barrier_expect(qt_full + 8 * u, T_D);
            nv_bulk_load(qt_at + u * T_D, qt + a.qt + q_tile * (TILE / 32 * D * 128), T_D, qt_full + 8 * u);
#endif
        }
        return;
#endif
    }
    MORE();
    const int group = lid >> 7, warp = (lid >> 5) & 3, g = lane >> 2, t = lane & 3, key0 = first + group * 64 + warp * 16 + g;
    const bool boss = (lid & 127) == 0;
    const ulong da_k = describe(k_at + group * A_D, 1), da_v = describe(v_at + group * A_E, 1);
    const ulong db_q = describe(q_at, 1), db_dy = describe(dy_at, 1);
#if NUMBER == 4
    const ulong dt_q = describe(qt_at, 1), dt_dy = describe(dyt_at, 1);
#else
    const ulong dt_q = describe(q_at, TURNED_LEAD), dt_dy = describe(dy_at, TURNED_LEAD);
#endif
    float sk[D / 2], sv[E / 2], s[BLOCK / 2], ds[BLOCK / 2];
    uint p[BLOCK * NUMBER / 8], x[BLOCK * NUMBER / 8];
    UNROLL for (int i = 0; i < D / 2; i++) sk[i] = 0;
    UNROLL for (int i = 0; i < E / 2; i++) sv[i] = 0;
    const float scale = as_float((int)a.scale), c = scale * LOG2E;
    nv_barrier_wait(ready, 0);
    ARRIVED();
    for (int j = 0; j < steps; j++) {
        const int at = j % STAGES, before = (j + STAGES - 1) % STAGES;
        const uint phase = j / STAGES & 1;
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
        nv_barrier_arrive_if(qt_empty + 8 * ((j + STAGES_T - 1) % STAGES_T), j > 0 && boss);
#else
        nv_barrier_arrive_if(q_empty + 8 * before, j > 0 && boss);
#endif
        const int q0 = (begin + j % each) * BLOCK + 2 * t;
#ifdef MASKED
        global const MEMORY(M) *m_at = mask + a.mask + b * a.m_batch + (kv % G * a.ratio + j / each) * a.m_head;
#endif
#ifdef CAUSAL
        if ((begin + j % each) * BLOCK + (int)a.before < first + group * 64 + 63)
            weights(&a, s, stats_at + at * (BLOCK * 8) + 16 * t, c, q0, key0, MASK_AT, true);
        else
#endif
            weights(&a, s, stats_at + at * (BLOCK * 8) + 16 * t, c, q0, key0, MASK_AT, false);
        as_operand(p, s);
        WAIT0_S(ds);
#if NUMBER == 4
        nv_barrier_arrive_if(q_empty + 8 * at, boss);
        nv_barrier_arrive_if(dy_empty + 8 * at, boss);
        nv_barrier_wait(dyt_full + 8 * (j % STAGES_T), j / STAGES_T & 1);
#endif
        NV_WGMMA_FENCE();
        UNROLL for (int i = 0; i < BLOCK / STEP; i++)
#if NUMBER == 4
            SUM_E(sv, p + 4 * i, dt_dy + j % STAGES_T * (T_E / 16) + DOWN(i, E));
#else
            SUM_E(sv, p + 4 * i, dt_dy + at * (B_E / 16) + DOWN(i, E));
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
        nv_barrier_wait(qt_full + 8 * (j % STAGES_T), j / STAGES_T & 1);
#endif
        NV_WGMMA_FENCE();
        UNROLL for (int i = 0; i < BLOCK / STEP; i++)
#if NUMBER == 4
            SUM_D(sk, x + 4 * i, dt_q + j % STAGES_T * (T_D / 16) + DOWN(i, D));
#else
            SUM_D(sk, x + 4 * i, dt_q + at * (B_D / 16) + DOWN(i, D));
#endif
        NV_WGMMA_COMMIT();
        WAIT1_E(sv);
#if NUMBER == 4
        nv_barrier_arrive_if(dyt_empty + 8 * (j % STAGES_T), boss);
#else
        nv_barrier_arrive_if(dy_empty + 8 * at, boss);
#endif
    }
    WAIT0_D(sk);
    put_rows(dk + a.y0, b * a.y0_batch, kv % G * a.y0_head, a.y0_row, key0, (int)a.keys, (int)a.d, D, t, sk, scale);
    put_rows(dv + a.y1, b * a.y1_batch, kv % G * a.y1_head, a.y1_row, key0, (int)a.keys, (int)a.e, E, t, sv, 1);
}
#endif

#ifdef QUERIES
#if NUMBER == 4
#define STAGED_T (STAGES_T * T_D)
#else
#define STAGED_T 0
#endif
/* Products to weights, queries in rows.  No weight is above 1 but those of keys behind the last one, which must not become
 * infinite: k is 0 there. */
INLINE void weights(const args *a, float *s, float c, float n0, float n1, int row0, int key0, global const MEMORY(M) *m_at,
                    const bool edge) {
    UNROLL for (int i = 0; i < BLOCK / 2; i++) {
        const int key = key0 + i / 4 * 8 + (i & 1), row = row0 + (i & 2) * 4;
        float w = fma(s[i], c, -(i & 2 ? n1 : n0));
#ifdef MASKED
        if (row < a->queries && key < a->keys) {
            const MEMORY(M) m = m_at[row * a->m_row + key * a->m_key];
#ifdef BOOLS
            w = m ? w : -INFINITY;
#else
            w = fma(FROM(M, m), LOG2E, w);
#endif
        }
#endif
        if (edge) w = nv_hidden(w, key, row + (int)a->before);
        s[i] = nv_exp2(fmin(w, 0.0f));
    }
}

kernel GROUP(ITEMS) void attention_grad_queries(const args a, global const STREAM *q, global const STREAM *k,
        global const STREAM *v, global const STREAM *dy, global const uchar *kt, global const float2 *stats,
        global const MEMORY(M) *mask, global MEMORY(X) *dq) {
    local uchar memory[GROUPS * (A_D + A_E) + STAGES * (B_D + B_E) + STAGED_T] __attribute__((aligned(1024)));
    local ulong bars[1 + 4 * STAGES + 2 * STAGES_T];
    const int lid = get_local_id(0), lane = lid & 31;
    const uint q_at = LOCAL_AT(memory), dy_at = q_at + GROUPS * A_D, k_at = dy_at + GROUPS * A_E, v_at = k_at + STAGES * B_D;
    const uint kt_at = v_at + STAGES * B_E;
    const uint ready = LOCAL_AT(bars), k_full = ready + 8, k_empty = k_full + 8 * STAGES, v_full = k_empty + 8 * STAGES;
    const uint v_empty = v_full + 8 * STAGES, kt_full = v_empty + 8 * STAGES, kt_empty = kt_full + 8 * STAGES_T;
    const int q_groups = ((int)a.queries + 64 * GROUPS - 1) / (64 * GROUPS);
#ifdef CAUSAL
    const int tile = q_groups - 1 - (int)get_group_id(0), first = tile * 64 * GROUPS;
    const int last = first + 64 * GROUPS + (int)a.before, keys = last < (int)a.keys ? last : (int)a.keys;
#else
    const int tile = (int)get_group_id(0), first = tile * 64 * GROUPS, keys = (int)a.keys;
#endif
    const int bh = (int)get_group_id(1), b = bh / (int)a.H, h = bh % (int)a.H;
    const int blocks = (keys + BLOCK - 1) / BLOCK;
    if (lid == 0) {
        nv_barrier_init(ready, BRINGERS);
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
#ifdef DIRECT
        const int item = lid & 127, kv_head = h / (int)a.ratio;
        for (int i = 0; i < GROUPS; i++) {
            bring_rows(q_at + i * A_D, q + a.q + b * a.q_batch + h * a.q_head, a.q_row, first + i * 64, 64, (int)a.queries, (int)a.d, PANELS(D),
                       item);
            bring_rows(dy_at + i * A_E, dy + a.dy + b * a.dy_batch + h * a.dy_head, a.dy_row, first + i * 64, 64, (int)a.queries, (int)a.e,
                       PANELS(E), item);
        }
        nv_barrier_arrive_copies(ready);
        for (int j = 0; j < blocks; j++) {
            const int s = j % STAGES;
            const uint phase = j / STAGES & 1 ^ 1;
            nv_barrier_wait(k_empty + 8 * s, phase);
            bring_rows(k_at + s * B_D, k + a.k + b * a.k_batch + kv_head * a.k_head, a.k_row, j * BLOCK, BLOCK, (int)a.keys, (int)a.d, PANELS(D),
                       item);
            nv_barrier_arrive_copies(k_full + 8 * s);
            nv_barrier_wait(v_empty + 8 * s, phase);
            bring_rows(v_at + s * B_E, v + a.v + b * a.v_batch + kv_head * a.v_head, a.v_row, j * BLOCK, BLOCK, (int)a.keys, (int)a.e, PANELS(E),
                       item);
            nv_barrier_arrive_copies(v_full + 8 * s);
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        return;
#else
        if (lid > 128 * GROUPS) return;
        const long q_tile = (long)bh * a.q_tiles + tile * (64 * GROUPS / TILE);
        const long kv = (long)b * (a.H / a.ratio) + h / a.ratio;
        nv_barrier_expect(ready, GROUPS * (A_D + A_E));
        for (int i = 0; i < GROUPS; i++) {
            bring(q_at + i * A_D, q + a.q + (q_tile + i * (64 / TILE)) * ROWS_K(TILE, D), 64, PANELS(D), ready);
            bring(dy_at + i * A_E, dy + a.dy + (q_tile + i * (64 / TILE)) * ROWS_K(TILE, E), 64, PANELS(E), ready);
        }
        for (int j = 0; j < blocks; j++) {
            const long k_tile = kv * a.k_tiles + j * (BLOCK / TILE);
            const int s = j % STAGES;
            const uint phase = j / STAGES & 1 ^ 1;
            nv_barrier_wait(k_empty + 8 * s, phase);
            nv_barrier_expect(k_full + 8 * s, B_D);
            bring(k_at + s * B_D, k + a.k + k_tile * ROWS_K(TILE, D), BLOCK, PANELS(D), k_full + 8 * s);
            nv_barrier_wait(v_empty + 8 * s, phase);
            nv_barrier_expect(v_full + 8 * s, B_E);
            bring(v_at + s * B_E, v + a.v + k_tile * ROWS_K(TILE, E), BLOCK, PANELS(E), v_full + 8 * s);
#if NUMBER == 4
            const int u = j % STAGES_T;
            nv_barrier_wait(kt_empty + 8 * u, j / STAGES_T & 1 ^ 1);
            nv_barrier_expect(kt_full + 8 * u, T_D);
            nv_bulk_load(kt_at + u * T_D, kt + a.kt + k_tile * (TILE / 32 * D * 128), T_D, kt_full + 8 * u);
#endif
        }
        return;
#endif
    }
    MORE();
    const int group = lid >> 7, warp = (lid >> 5) & 3, g = lane >> 2, t = lane & 3, row0 = first + group * 64 + warp * 16 + g;
    const bool boss = (lid & 127) == 0;
    const ulong da_q = describe(q_at + group * A_D, 1), da_dy = describe(dy_at + group * A_E, 1);
    const ulong db_k = describe(k_at, 1), db_v = describe(v_at, 1);
#if NUMBER == 4
    const ulong dt_k = describe(kt_at, 1);
#else
    const ulong dt_k = describe(k_at, TURNED_LEAD);
#endif
    float sq[D / 2], s[BLOCK / 2], ds[BLOCK / 2];
    uint x[BLOCK * NUMBER / 8];
    UNROLL for (int i = 0; i < D / 2; i++) sq[i] = 0;
    const float scale = as_float((int)a.scale), c = scale * LOG2E;
    global const float2 *n_at = stats + a.stats + bh * a.q_tiles * TILE + row0;
    const float2 n0 = n_at[0], n1 = n_at[8];
#ifdef MASKED
    global const MEMORY(M) *m_at = mask + a.mask + b * a.m_batch + h * a.m_head;
#endif
    nv_barrier_wait(ready, 0);
    ARRIVED();
    for (int j = 0; j < blocks; j++) {
        const int at = j % STAGES;
        const uint phase = j / STAGES & 1;
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
        nv_barrier_arrive_if(kt_empty + 8 * ((j + STAGES_T - 1) % STAGES_T), j > 0 && boss);
#else
        nv_barrier_arrive_if(k_empty + 8 * ((j + STAGES - 1) % STAGES), j > 0 && boss);
#endif
        const int key0 = j * BLOCK + 2 * t;
#ifdef CAUSAL
        if (j * BLOCK + BLOCK - 1 > first + group * 64 + (int)a.before)
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
        nv_barrier_wait(kt_full + 8 * (j % STAGES_T), j / STAGES_T & 1);
#endif
        NV_WGMMA_FENCE();
        UNROLL for (int i = 0; i < BLOCK / STEP; i++)
#if NUMBER == 4
            SUM_D(sq, x + 4 * i, dt_k + j % STAGES_T * (T_D / 16) + DOWN(i, D));
#else
            SUM_D(sq, x + 4 * i, dt_k + at * (B_D / 16) + DOWN(i, D));
#endif
        NV_WGMMA_COMMIT();
    }
    WAIT0_D(sq);
    put_rows(dq + a.y0, b * a.y0_batch, h * a.y0_head, a.y0_row, row0, (int)a.queries, (int)a.d, D, t, sq, scale);
}
#endif
#endif
