#define ROWS (64 * GROUPS)
#define K_BYTES (PANELS(D) * BLOCK * 128)
#define Q_BYTES (PANELS(D) * 64 * 128)  /* of one group */
#define S_TILES (BLOCK / 8)
#define O_TILES (E / 8)
#if NUMBER == 4
#define V_BYTES (BLOCK / 32 * E * 128)
#define V_LEAD 1
#define V_STEP(k) ((k) / 4 * (E * 8) + (k) % 4 * 2)
#else
#define V_BYTES (PANELS(E) * BLOCK * 128)
#define V_LEAD (BLOCK * 8)
#define V_STEP(k) ((k) * 128)
#endif
INLINE ulong describe(uint a, uint lead) {
    return (ulong)((a >> 4) & 0x3fff) | (ulong)lead << 16 | (ulong)64 << 32 | (ulong)1 << 62;
}

/* sizes: heads of q, of q for one of k, queries, keys, blocks of keys in the images; keys before query 0's own */
typedef struct args {
    long q, k, v, mask, y, lse;
    long H, ratio, queries, keys, tiles, before, d, e, q_batch, q_head, q_row, y_batch, y_head, y_row;
    long k_batch, k_head, k_row, v_batch, v_head, v_row;
    long m_batch, m_head, m_row, m_key, scale;
} args;

#define LOG2E 1.44269504088896340736f
#define LN2 0.69314718055994530942f


typedef struct rows { float m[2], l[2], f[2], c, factor; int row0, first, t; } rows;

/* Scores of block j to weights, and what they change of the rows' states. */
INLINE void softmax(const args *a, rows *r, float *s, int j, global const MEMORY(M) *m_at) {
    const int t = r->t, row0 = r->row0, first = r->first;
    const float c = r->c;
        const int key0 = j * BLOCK + 2 * t;
#ifdef MASKED
        UNROLL for (int i = 0; i < BLOCK / 2; i++) {
            const int row = row0 + (i & 2) * 4, key = key0 + i / 4 * 8 + (i & 1);
            float x = -INFINITY;
            if (row < a->queries && key < a->keys) {
                const MEMORY(M) w = m_at[row * a->m_row + key * a->m_key];
#ifdef BOOLS
                x = w ? 0.0f : -INFINITY;
#else
                x = FROM(M, w) * LOG2E;
#endif
            }
            s[i] = fma(s[i], r->factor, x);
        }
#endif
        bool edge = j * BLOCK + BLOCK > (int)a->keys;
#ifdef CAUSAL
        const int own = row0 + (int)a->before;
        edge = edge || j * BLOCK + BLOCK - 1 > first + (int)a->before;
        if (edge) {
            UNROLL for (int i = 0; i < BLOCK / 2; i++) {
                const int key = key0 + i / 4 * 8 + (i & 1);
                if (key > own + (i & 2) * 4 || key >= (int)a->keys) s[i] = -INFINITY;
            }
        }
#else
        if (edge) {
            UNROLL for (int i = 0; i < BLOCK / 2; i++)
                if (key0 + i / 4 * 8 + (i & 1) >= (int)a->keys) s[i] = -INFINITY;
        }
#endif
        float t0 = fmax(s[0], s[1]), t1 = fmax(s[2], s[3]);
        UNROLL for (int i = 4; i < BLOCK / 2; i += 4) {
            t0 = fmax(t0, fmax(s[i], s[i + 1]));
            t1 = fmax(t1, fmax(s[i + 2], s[i + 3]));
        }
        t0 = fmax(t0, nv_other_lane(t0, 1)), t1 = fmax(t1, nv_other_lane(t1, 1));
        t0 = fmax(r->m[0], fmax(t0, nv_other_lane(t0, 2))), t1 = fmax(r->m[1], fmax(t1, nv_other_lane(t1, 2)));
        const float b0 = t0 == -INFINITY ? 0 : t0 * c, b1 = t1 == -INFINITY ? 0 : t1 * c;
        const float f0 = nv_exp2(fma(r->m[0], c, -b0)), f1 = nv_exp2(fma(r->m[1], c, -b1));
        r->m[0] = t0, r->m[1] = t1, r->f[0] = f0, r->f[1] = f1;
        float u0 = 0, u1 = 0, w0 = 0, w1 = 0;
        UNROLL for (int i = 0; i < BLOCK / 2; i += 4) {
            s[i] = nv_exp2(fma(s[i], c, -b0)), s[i + 1] = nv_exp2(fma(s[i + 1], c, -b0));
            s[i + 2] = nv_exp2(fma(s[i + 2], c, -b1)), s[i + 3] = nv_exp2(fma(s[i + 3], c, -b1));
            u0 += s[i], w0 += s[i + 1], u1 += s[i + 2], w1 += s[i + 3];
        }
        r->l[0] = fma(r->l[0], f0, u0 + w0), r->l[1] = fma(r->l[1], f1, u1 + w1);

}

/* Weights as the A operand of the second product. */
INLINE void pack_weights(uint *p, const float *s) {
#if NUMBER == 4
        UNROLL for (int i = 0; i < BLOCK / 2; i += 4) {
            p[i] = nv_to_tf32(s[i]), p[i + 1] = nv_to_tf32(s[i + 2]);
            p[i + 2] = nv_to_tf32(s[i + 1]), p[i + 3] = nv_to_tf32(s[i + 3]);
        }
#else
        UNROLL for (int i = 0; i < BLOCK / 4; i++) p[i] = FAC_CAT(nv_pack_, KIND)(s[2 * i], s[2 * i + 1]);
#endif
}
#define PRODUCT_S(at) \
    UNROLL for (int i = 0; i < D / STEP; i++) \
        SCORES(s, dq + i / 4 * (64 * 8) + i % 4 * 2, dk + (at) * (K_BYTES / 16) + i / 4 * (BLOCK * 8) + i % 4 * 2, i)
#define PRODUCT_O(at) \
    UNROLL for (int i = 0; i < BLOCK / STEP; i++) SUM_E(o, p + 4 * i, dv + (at) * (V_BYTES / 16) + V_STEP(i))

kernel GROUP(ITEMS) void attention(const args a, global const MEMORY(X) *q, global const STREAM *ks, global const STREAM *vs,
               global const MEMORY(M) *mask, global MEMORY(X) *y, global float *lse) {
    local uchar memory[GROUPS * Q_BYTES + STAGES * (K_BYTES + V_BYTES)] __attribute__((aligned(1024)));
    local ulong bars[4 * STAGES];
    const int lid = get_local_id(0), lane = lid & 31;
    const uint k_at = LOCAL_AT(memory) + GROUPS * Q_BYTES, v_at = k_at + STAGES * K_BYTES;
    const uint k_full = LOCAL_AT(bars), k_empty = k_full + 8 * STAGES, v_full = k_empty + 8 * STAGES, v_empty = v_full + 8 * STAGES;
    const int q_tiles = ((int)a.queries + ROWS - 1) / ROWS;
#ifdef CAUSAL
    const int tile = q_tiles - 1 - (int)get_group_id(0);
    const int last = tile * ROWS + ROWS + (int)a.before, keys = last < (int)a.keys ? last : (int)a.keys;
#else
    const int tile = (int)get_group_id(0), keys = (int)a.keys;
#endif
    const int bh = (int)get_group_id(1), b = bh / (int)a.H, h = bh % (int)a.H;
    const int blocks = (keys + BLOCK - 1) / BLOCK;
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
#ifdef DIRECT
        global const STREAM *k = ks + a.k + b * a.k_batch + h / a.ratio * a.k_head, *v = vs + a.v + b * a.v_batch + h / a.ratio * a.v_head;
        for (int j = 0; j < blocks; j++) {
            const int s = j % STAGES;
            const uint phase = j / STAGES & 1 ^ 1;
            nv_barrier_wait(k_empty + 8 * s, phase);
            bring_rows(k_at + s * K_BYTES, k, a.k_row, j * BLOCK, BLOCK, (int)a.keys, (int)a.d, PANELS(D), lid & 127);
            nv_barrier_arrive_copies(k_full + 8 * s);
            nv_barrier_wait(v_empty + 8 * s, phase);
            bring_rows(v_at + s * V_BYTES, v, a.v_row, j * BLOCK, BLOCK, (int)a.keys, (int)a.e, PANELS(E), lid & 127);
            nv_barrier_arrive_copies(v_full + 8 * s);
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        return;
#else
        if (lid > 128 * GROUPS) return;
        const long kv = (long)b * (a.H / a.ratio) + h / a.ratio;
        global const uchar *k = ks + a.k + kv * a.tiles * K_BYTES, *v = vs + a.v + kv * a.tiles * V_BYTES;
        for (int j = 0; j < blocks; j++) {
            const int s = j % STAGES;
            const uint phase = j / STAGES & 1 ^ 1;
            nv_barrier_wait(k_empty + 8 * s, phase);
            nv_barrier_expect(k_full + 8 * s, K_BYTES);
            nv_bulk_load(k_at + s * K_BYTES, k + (size_t)j * K_BYTES, K_BYTES, k_full + 8 * s);
            nv_barrier_wait(v_empty + 8 * s, phase);
            nv_barrier_expect(v_full + 8 * s, V_BYTES);
            nv_bulk_load(v_at + s * V_BYTES, v + (size_t)j * V_BYTES, V_BYTES, v_full + 8 * s);
        }
        return;
#endif
    }
    MORE();
    const int group = lid >> 7, warp = (lid >> 5) & 3, g = lane >> 2, t = lane & 3;
    const int first = tile * ROWS + group * 64, row0 = first + warp * 16 + g;
    const uint q_at = LOCAL_AT(memory) + group * Q_BYTES;
    {
        global const MEMORY(X) *p = q + a.q + b * a.q_batch + h * a.q_head;
        for (int u = lid & 127; u < PANELS(D) * 64 * 8; u += 128) {
            const int c = u % 8, panel = u / 8 % PANELS(D), r = u / 8 / PANELS(D), at = panel * PANEL + c * CHUNK;
            const uint4 v = first + r < a.queries ? load_chunk(p + (first + r) * a.q_row + at, (int)a.d - at) : (uint4)(0);
            nv_local_store4(q_at + panel * (64 * 128) + r * 128 + ((c ^ (r & 7)) << 4), v);
        }
        nv_proxy_fence();
        nv_meet(1 + group, 128);
    }
    const ulong dq = describe(q_at, 1), dk = describe(k_at, 1), dv = describe(v_at, V_LEAD);
    float s[BLOCK / 2], o[E / 2];
    uint p[BLOCK * NUMBER / 8];
    UNROLL for (int i = 0; i < E / 2; i++) o[i] = 0;
#ifdef MASKED
    const float c = 1, factor = as_float((int)a.scale) * LOG2E;
    global const MEMORY(M) *m_at = mask + a.mask + b * a.m_batch + h * a.m_head;
#else
    const float c = as_float((int)a.scale) * LOG2E;
#endif
    rows r = { .m = { -INFINITY, -INFINITY }, .c = c, .row0 = row0, .first = first, .t = t };
#ifdef MASKED
    r.factor = factor;
#else
    global const MEMORY(M) *m_at = 0;
#endif
    nv_barrier_wait(k_full, 0);
        ARRIVED();
    NV_WGMMA_FENCE();
    PRODUCT_S(0);
    NV_WGMMA_COMMIT();
    WAIT0_S(s);
    nv_barrier_arrive_if(k_empty, (lid & 127) == 0);
    softmax(&a, &r, s, 0, m_at);
    pack_weights(p, s);
    for (int j = 1; j < blocks; j++) {
        const int ks_ = j % STAGES, vs_ = (j - 1) % STAGES;
        nv_barrier_wait(k_full + 8 * ks_, j / STAGES & 1);
        ARRIVED();
        NV_WGMMA_FENCE();
        PRODUCT_S(ks_);
        NV_WGMMA_COMMIT();
        nv_barrier_wait(v_full + 8 * vs_, (j - 1) / STAGES & 1);
        ARRIVED();
        NV_WGMMA_FENCE();
        PRODUCT_O(vs_);
        NV_WGMMA_COMMIT();
        WAIT1_S(s);
        nv_barrier_arrive_if(k_empty + 8 * ks_, (lid & 127) == 0);
        softmax(&a, &r, s, j, m_at);
        WAIT0_E(o);
        nv_barrier_arrive_if(v_empty + 8 * vs_, (lid & 127) == 0);
        UNROLL for (int i = 0; i < E / 2; i += 4) o[i] *= r.f[0], o[i + 1] *= r.f[0], o[i + 2] *= r.f[1], o[i + 3] *= r.f[1];
        pack_weights(p, s);
    }
    nv_barrier_wait(v_full + 8 * ((blocks - 1) % STAGES), (blocks - 1) / STAGES & 1);
        ARRIVED();
    NV_WGMMA_FENCE();
    PRODUCT_O((blocks - 1) % STAGES);
    NV_WGMMA_COMMIT();
    WAIT0_E(o);
    float l0 = r.l[0], l1 = r.l[1];
    const float m0 = r.m[0], m1 = r.m[1];
    l0 += nv_other_lane(l0, 1), l1 += nv_other_lane(l1, 1);
    l0 += nv_other_lane(l0, 2), l1 += nv_other_lane(l1, 2);
    const float r0 = l0 > 0 ? 1 / l0 : 0, r1 = l1 > 0 ? 1 / l1 : 0;
    UNROLL for (int half_ = 0; half_ < 2; half_++) {
        const int row = row0 + 8 * half_;
        if (row >= a.queries) continue;
        const float r = half_ ? r1 : r0;
        global MEMORY(X) *to = y + a.y + b * a.y_batch + h * a.y_head + row * a.y_row;
        UNROLL for (int i = 0; i < O_TILES; i++) {
            const int col = 8 * i + 2 * t;
            const float x0 = o[4 * i + 2 * half_] * r, x1 = o[4 * i + 2 * half_ + 1] * r;
#ifdef PAIRS
            if (col < a.e) FAC_CAT(put_two_, X)(to + col, x0, x1);
#else
            if (col < a.e) FAC_CAT(put_one_, X)(to + col, x0);
            if (col + 1 < a.e) FAC_CAT(put_one_, X)(to + col + 1, x1);
#endif
        }
#ifdef LSE
        const float l = half_ ? l1 : l0, m = half_ ? m1 : m0;
        if (t == 0) lse[a.lse + (long)bh * a.queries + row] = l > 0 ? LN2 * (m * c + log2(l)) : 0;
#endif
    }
}
