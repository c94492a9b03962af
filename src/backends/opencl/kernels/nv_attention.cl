/* Attention on wgmma: y = softmax(scale q k^T + mask) v, block by block of keys, after Dao et al., "FlashAttention" (2022): when
 * a block raises a row's largest score, what was summed before is scaled down.
 *
 * A group of items has GROUPS times 64 queries of one head, four warps for each 64; four more warps bring k and v through STAGES
 * of local memory.  While the units multiply weights of block j - 1 by v, and by the products of block j that were asked for
 * before, the items make weights of those: they stay in registers, as the A operand of the second product.
 *
 * Options, beside those of nv_attention_tiles.cl: D, E sizes of a row of q and v, multiples of 16; BLOCK keys of a block; CAUSAL;
 * MASKED with M, the type of the mask, and BOOLS; PAIRS: y takes two numbers at once; LSE: that output is wanted.
 * SCORES(d, a, b, i), SUM_E(d, a, b, i): the two products, i = 0 begins a sum where sums begin; WAITn_x(d): attention_text.c. */
#define ROWS (64 * GROUPS)
#define K_BYTES (PANELS(D) * BLOCK * 128)
#define Q_BYTES (PANELS(D) * 64 * 128)  /* of 64 queries */
#if NUMBER == 4
#define V_BYTES (BLOCK / 32 * E * 128)
#define V_LEAD 1
#define V_STEP(i) ((i) / 4 * (E * 8) + (i) % 4 * 2)
#else
#define V_BYTES (PANELS(E) * BLOCK * 128)
#define V_LEAD (BLOCK * 8)
#define V_STEP(i) ((i) * 128)
#endif
#define STAGE_BYTES (PARTS * (K_BYTES + V_BYTES))
#define LN2 0.69314718055994530942f

/* Places; heads of q, of q for one of k, queries, keys, tiles of images, keys before query 0's own, sizes of a row; strides; how
 * many tiles of queries all heads have. */
typedef struct args {
    long q, k, v, mask, y, lse;
    long H, ratio, queries, keys, tiles, before, d, e, q_batch, q_head, q_row, y_batch, y_head, y_row;
    long k_batch, k_head, k_row, v_batch, v_head, v_row, m_batch, m_head, m_row, m_key, scale, all;
} args;

/* Of the two rows of an item: largest score and sum of weights until now, what the last block scaled the sums by.
 * first, row0: the first query of the four warps, of the item. */
typedef struct rows { float top[2], sum[2], factor[2], scale; int first, row0, t; } rows;

INLINE void add_mask(const args *a, const rows *r, float *s, int key0, global const MEMORY(M) *mask) {
    const float scale = as_float((int)a->scale) * LOG2E;
    UNROLL for (int i = 0; i < BLOCK / 2; i++) {
        const int row = r->row0 + (i & 2) * 4, key = key0 + i / 4 * 8 + (i & 1);
        float x = -INFINITY;
        if (row < a->queries && key < a->keys) x = mask_at(mask + row * a->m_row + key * a->m_key);
        s[i] = fma(s[i], scale, x);
    }
}

/* Products of block j to weights. */
INLINE void weigh(const args *a, rows *r, float *s, int j, global const MEMORY(M) *mask) {
    const int key0 = j * BLOCK + 2 * r->t;
    const float scale = r->scale;
    bool edge = j * BLOCK + BLOCK > (int)a->keys;
#ifdef MASKED
    add_mask(a, r, s, key0, mask);
#endif
#ifdef CAUSAL
    edge = edge || j * BLOCK + BLOCK - 1 > r->first + (int)a->before;
#endif
    if (edge) {
        UNROLL for (int i = 0; i < BLOCK / 2; i++) {
            const int key = key0 + i / 4 * 8 + (i & 1);
#ifdef CAUSAL
            if (key > r->row0 + (int)a->before + (i & 2) * 4) s[i] = -INFINITY;
#endif
            if (key >= (int)a->keys) s[i] = -INFINITY;
        }
    }
    UNROLL for (int k = 0; k < 2; k++) {
        float top = fmax(s[2 * k], s[2 * k + 1]), sum[2] = { 0, 0 };
        UNROLL for (int i = 4 + 2 * k; i < BLOCK / 2; i += 4) top = fmax(top, fmax(s[i], s[i + 1]));
        top = fmax(top, nv_other_lane(top, 1));
        top = fmax(r->top[k], fmax(top, nv_other_lane(top, 2)));
        const float base = top == -INFINITY ? 0 : top * scale;      /* -inf - -inf is no number */
        r->factor[k] = nv_exp2(fma(r->top[k], scale, -base));
        r->top[k] = top;
        UNROLL for (int i = 2 * k; i < BLOCK / 2; i += 4) {
            UNROLL for (int u = 0; u < 2; u++) {
                s[i + u] = nv_exp2(fma(s[i + u], scale, -base));
                sum[u] += s[i + u];
            }
        }
        r->sum[k] = fma(r->sum[k], r->factor[k], sum[0] + sum[1]);
    }
}

/* What was summed, for scores that are relative to a larger one.  SPLIT: the units add up only one block by themselves, since
 * they truncate; `more` is that block's sum. */
INLINE void scale_down(float *o, const float *more, const rows *r) {
    UNROLL for (int i = 0; i < E / 2; i++) {
#ifdef SPLIT
        o[i] = (o[i] + more[i]) * r->factor[i >> 1 & 1];
#else
        o[i] *= r->factor[i >> 1 & 1];
#endif
    }
}

/* S = q k^T of a block; with both parts of both: high low + low high, then high high, since each step truncates what there is. */
INLINE void multiply_k(float *s, ulong q, ulong k) {
#ifdef SPLIT
    UNROLL for (int i = 0; i < D / STEP; i++) SCORES(s, q + ALONG(i, 64), k + K_BYTES / 16 + ALONG(i, BLOCK), i);
    UNROLL for (int i = 0; i < D / STEP; i++) SCORES(s, q + Q_BYTES / 16 + ALONG(i, 64), k + ALONG(i, BLOCK), 1);
#endif
    UNROLL for (int i = 0; i < D / STEP; i++) SCORES(s, q + ALONG(i, 64), k + ALONG(i, BLOCK), PARTS - 1 + i);
    NV_WGMMA_COMMIT();
}

INLINE void multiply_v(float *o, const uint *p, ulong v) {
#ifdef SPLIT
    UNROLL for (int i = 0; i < BLOCK / STEP; i++) SUM_E(o, p + 4 * i, v + V_BYTES / 16 + V_STEP(i), i);
    UNROLL for (int i = 0; i < BLOCK / STEP; i++) SUM_E(o, p + BLOCK / 2 + 4 * i, v + V_STEP(i), 1);
#endif
    UNROLL for (int i = 0; i < BLOCK / STEP; i++) SUM_E(o, p + 4 * i, v + V_STEP(i), 1);
    NV_WGMMA_COMMIT();
}

/* A tile of queries: where it is, and how many blocks of keys it sees. */
typedef struct tile { int first, b, h, blocks; } tile;
INLINE tile tile_of(const args *a, int id) {
    const int2 place = place_of(id, (int)a->all, ((int)a->queries + ROWS - 1) / ROWS, true);
    tile t = { place.x * ROWS, place.y / (int)a->H, place.y % (int)a->H, 0 };
#ifdef CAUSAL
    const int last = t.first + ROWS + (int)a->before, keys = last < (int)a->keys ? last : (int)a->keys;
#else
    const int keys = (int)a->keys;
#endif
    t.blocks = (keys + BLOCK - 1) / BLOCK;
    return t;
}

/* 64 rows of q, by four warps: asked for, and there.  As they are, where 16 bytes of them can be copied. */
#if defined(ALIGNED) && (defined(SAME) || NUMBER == 4)
#define AS_THEY_ARE
#endif
INLINE void ask_for_q(const args *a, uint to, global const MEMORY(X) *q, int first, int item) {
#ifdef AS_THEY_ARE
    const lines l = { q, a->q_row, (int)a->queries, (int)a->d, PANELS(D) };
    bring_rows(to, l, first, 64, item);
#else
    for (int u = item; u < PANELS(D) * 64 * 8; u += 128) {
        const int c = u % 8, panel = u / 8 % PANELS(D), r = u / 8 / PANELS(D), at = panel * PANEL + c * CHUNK;
        uint4 v[PARTS];
        load_chunk(v, q + (first + r) * a->q_row + at, first + r < a->queries ? (int)a->d - at : 0);
        UNROLL for (int k = 0; k < PARTS; k++)
            put_chunk(to + k * Q_BYTES + panel * (64 * 128) + r * 128 + ((c ^ (r & 7)) << 4), v[k]);
    }
#endif
}
INLINE void wait_for_q(uint to, int group, int item) {
    all_brought();
#if defined(AS_THEY_ARE) && NUMBER == 4
    for (int u = item * 16; u < Q_BYTES; u += 128 * 16) {       /* an item's own pieces */
        const uint at = to + u / 128 * 128 + ((u / 16 ^ u / 128) & 7) * 16;
        uint raw[4];
        uint4 v[PARTS];
        nv_local_load4(raw, at);
        const float x[] = { as_float(raw[0]), as_float(raw[1]), as_float(raw[2]), as_float(raw[3]) };
        chunk_parts(v, x);
        UNROLL for (int k = 0; k < PARTS; k++) put_chunk(at + k * Q_BYTES, v[k]);
    }
#endif
    nv_proxy_fence();
    nv_meet(1 + group, 128);
}

/* Where there is room the next tile's queries come while this one is at work. */
#if PARTS == 1 && 2 * GROUPS * Q_BYTES + STAGES * STAGE_BYTES <= 230000
#define Q_TILES 2
#else
#define Q_TILES 1
#endif

/* As many groups of items as there are compute units, one tile after the other. */
kernel GROUP(ITEMS) void attention(const args a, global const MEMORY(X) *q, global const STREAM *k, global const STREAM *v,
                                   global const MEMORY(M) *mask, global MEMORY(X) *y, global float *lse) {
    local uchar memory[Q_TILES * PARTS * GROUPS * Q_BYTES + STAGES * STAGE_BYTES] __attribute__((aligned(1024)));
    local ulong bars[4 * STAGES];
    const int lid = get_local_id(0), item = lid & 127, next = (int)get_num_groups(0);
    const uint k_at = LOCAL_AT(memory) + Q_TILES * PARTS * GROUPS * Q_BYTES, v_at = k_at + STAGES * PARTS * K_BYTES;
    const uint k_full = LOCAL_AT(bars), k_empty = k_full + 8 * STAGES, v_full = k_empty + 8 * STAGES;
    const uint v_empty = v_full + 8 * STAGES;
    int n = 0;                                  /* blocks of earlier tiles */
    if (lid == 0) {
        UNROLL for (int i = 0; i < STAGES; i++) {
            nv_barrier_init(k_full + 8 * i, BRINGERS), nv_barrier_init(v_full + 8 * i, BRINGERS);
            nv_barrier_init(k_empty + 8 * i, GROUPS), nv_barrier_init(v_empty + 8 * i, GROUPS);
        }
        nv_barriers_made();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid >= 128 * GROUPS) {
        LESS();
        if (BRINGERS == 1 && item) return;
        for (int id = (int)get_group_id(0); id < (int)a.all; id += next) {
            const tile w = tile_of(&a, id);
            const int kv = w.h / (int)a.ratio;
#ifdef DIRECT
            const lines k_lines = { k + a.k + w.b * a.k_batch + kv * a.k_head, a.k_row, (int)a.keys, (int)a.d, PANELS(D) };
            const lines v_lines = { v + a.v + w.b * a.v_batch + kv * a.v_head, a.v_row, (int)a.keys, (int)a.e, PANELS(E) };
#else
            const long from = ((long)w.b * (a.H / a.ratio) + kv) * a.tiles;
            global const uchar *k_tile = k + a.k + from * (PARTS * K_BYTES), *v_tile = v + a.v + from * (PARTS * V_BYTES);
#endif
            for (int j = 0; j < w.blocks; j++, n++) {
                const int s = n % STAGES;
                const uint phase = n / STAGES & 1 ^ 1;
                nv_barrier_wait(k_empty + 8 * s, phase);
#ifdef DIRECT
                bring_rows(k_at + s * K_BYTES, k_lines, j * BLOCK, BLOCK, item);
                nv_barrier_arrive_copies(k_full + 8 * s);
#else
                nv_barrier_expect(k_full + 8 * s, PARTS * K_BYTES);
                nv_bulk_load(k_at + s * (PARTS * K_BYTES), k_tile + (size_t)j * (PARTS * K_BYTES), PARTS * K_BYTES,
                             k_full + 8 * s);
#endif
                nv_barrier_wait(v_empty + 8 * s, phase);
#ifdef DIRECT
                bring_rows(v_at + s * V_BYTES, v_lines, j * BLOCK, BLOCK, item);
                nv_barrier_arrive_copies(v_full + 8 * s);
#else
                nv_barrier_expect(v_full + 8 * s, PARTS * V_BYTES);
                nv_bulk_load(v_at + s * (PARTS * V_BYTES), v_tile + (size_t)j * (PARTS * V_BYTES), PARTS * V_BYTES,
                             v_full + 8 * s);
#endif
            }
        }
        all_brought();
        return;
    }
    MORE();
    const int group = lid >> 7, lane = lid & 31, t = lane & 3, mine = group * 64 + (item >> 5) * 16 + (lane >> 2);
    const uint q_at = LOCAL_AT(memory) + group * (PARTS * Q_BYTES);
    const ulong dk = describe(k_at, 1), dv = describe(v_at, V_LEAD);
    float s[BLOCK / 2], o[E / 2];
    uint p[PARTS * BLOCK * NUMBER / 8];
#ifdef SPLIT
    float more[E / 2];
#else
    float *const more = o;
#endif
    int id = (int)get_group_id(0), turn = 0;
    tile w = tile_of(&a, id);
    ask_for_q(&a, q_at, q + a.q + w.b * a.q_batch + w.h * a.q_head, w.first + group * 64, item);
    for (; id < (int)a.all; id += next) {
        const uint here = q_at + turn * (GROUPS * PARTS * Q_BYTES);
        wait_for_q(here, group, item);
        const tile then = tile_of(&a, id + next < (int)a.all ? id + next : id);
        if (Q_TILES == 2) {
            turn ^= 1;
            ask_for_q(&a, q_at + turn * (GROUPS * PARTS * Q_BYTES), q + a.q + then.b * a.q_batch + then.h * a.q_head,
                      then.first + group * 64, item);
        }
        const ulong dq = describe(here, 1);
        const int row0 = w.first + mine;
        UNROLL for (int i = 0; i < E / 2; i++) o[i] = 0;
        rows r = { .top = { -INFINITY, -INFINITY }, .first = w.first + group * 64, .row0 = row0, .t = t };
#ifdef MASKED
        r.scale = 1;
        global const MEMORY(M) *m_at = mask + a.mask + w.b * a.m_batch + w.h * a.m_head;
#else
        r.scale = as_float((int)a.scale) * LOG2E;
        global const MEMORY(M) *m_at = 0;
#endif
        nv_barrier_wait(k_full + 8 * (n % STAGES), n / STAGES & 1);
        ARRIVED();
        NV_WGMMA_FENCE();
        multiply_k(s, dq, dk + n % STAGES * (PARTS * K_BYTES / 16));
        WAIT0_S(s);
        nv_barrier_arrive_if(k_empty + 8 * (n % STAGES), item == 0);
        weigh(&a, &r, s, 0, m_at);
        as_operand(p, s);
        for (int j = 1; j < w.blocks; j++) {
            const int at = (n + j) % STAGES, before = (n + j - 1) % STAGES;
            nv_barrier_wait(k_full + 8 * at, (n + j) / STAGES & 1);
            ARRIVED();
            NV_WGMMA_FENCE();
            multiply_k(s, dq, dk + at * (PARTS * K_BYTES / 16));
            nv_barrier_wait(v_full + 8 * before, (n + j - 1) / STAGES & 1);
            ARRIVED();
            NV_WGMMA_FENCE();
            multiply_v(more, p, dv + before * (PARTS * V_BYTES / 16));
            WAIT1_S(s);
            nv_barrier_arrive_if(k_empty + 8 * at, item == 0);
            weigh(&a, &r, s, j, m_at);
            WAIT0_E(more);
            nv_barrier_arrive_if(v_empty + 8 * before, item == 0);
            scale_down(o, more, &r);
            as_operand(p, s);
        }
        n += w.blocks;
        const int last = (n - 1) % STAGES;
        nv_barrier_wait(v_full + 8 * last, (n - 1) / STAGES & 1);
        ARRIVED();
        NV_WGMMA_FENCE();
        multiply_v(more, p, dv + last * (PARTS * V_BYTES / 16));
        WAIT0_E(more);
        nv_barrier_arrive_if(v_empty + 8 * last, item == 0);
        if (Q_TILES == 1 && id + next < (int)a.all) {
            nv_meet(1 + group, 128);            /* nobody reads this one's queries any more */
            ask_for_q(&a, q_at, q + a.q + then.b * a.q_batch + then.h * a.q_head, then.first + group * 64, item);
        }
        UNROLL for (int k = 0; k < 2; k++) {
            r.sum[k] += nv_other_lane(r.sum[k], 1);
            r.sum[k] += nv_other_lane(r.sum[k], 2);
            r.factor[k] = r.sum[k] > 0 ? 1 / r.sum[k] : 0;      /* a query that saw no key gives zeros */
        }
        scale_down(o, more, &r);
        put_rows(y + a.y + w.b * a.y_batch + w.h * a.y_head, a.y_row, row0, (int)a.queries, (int)a.e, E, t, o, 1);
#ifdef LSE
        UNROLL for (int k = 0; k < 2; k++)
            if (t == 0 && row0 + 8 * k < a.queries)
                lse[a.lse + ((long)w.b * a.H + w.h) * a.queries + row0 + 8 * k] =
                    r.sum[k] > 0 ? LN2 * (r.top[k] * r.scale + log2(r.sum[k])) : 0;
#endif
        w = then;
    }
    all_brought();
}
