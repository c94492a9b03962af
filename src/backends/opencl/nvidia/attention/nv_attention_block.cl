/* One block of keys of nv_attention.cl: its scores become weights, which multiply its values. */
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

/* Places; heads of q, of q for one of k, queries, keys, tiles of images, keys before query 0's own,
 * sizes of a row; strides; how many tiles of queries all heads have. */
typedef struct args {
    long q, k, v, mask, y, lse, maps;
    long H, ratio, queries, keys, tiles, before, d, e, q_batch, q_head, q_row, y_batch, y_head,
        y_row;
    long k_batch, k_head, k_row, v_batch, v_head, v_row;
    long m_each, m_group, m_batch, m_head, m_row, m_key, scale, all;
} args;
#define TILES(a) (((int)(a)->queries + ROWS - 1) / ROWS)    /* of a head */

/* Of the two rows of an item: largest score and sum of weights until now, what the last block
 * scaled the sums by.
 * first, row0: the first query of the four warps, of the item. */
typedef struct rows { float top[2], sum[2], factor[2], scale; int first, row0, t; } rows;

INLINE void add_mask(const args *a, const rows *r, float *s, int key0,
                     global const MEMORY(M) *mask) {
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

/* What was summed, for scores that are relative to a larger one.  SPLIT: the units add up only one
 * block by themselves, since they truncate; `more` is that block's sum. */
INLINE void scale_down(float *o, const float *more, const rows *r) {
    UNROLL for (int i = 0; i < E / 2; i++) {
#ifdef SPLIT
        o[i] = (o[i] + more[i]) * r->factor[i >> 1 & 1];
#else
        o[i] *= r->factor[i >> 1 & 1];
#endif
    }
}

/* S = q k^T of a block; with both parts of both: high low + low high, then high high, since each
 * step truncates what there is. */
INLINE void multiply_k(float *s, ulong q, ulong k) {
#ifdef SPLIT
    UNROLL for (int i = 0; i < D / STEP; i++)
        SCORES(s, q + ALONG(i, 64), k + K_BYTES / 16 + ALONG(i, BLOCK), i);
    UNROLL for (int i = 0; i < D / STEP; i++)
        SCORES(s, q + Q_BYTES / 16 + ALONG(i, 64), k + ALONG(i, BLOCK), 1);
#endif
    UNROLL for (int i = 0; i < D / STEP; i++)
        SCORES(s, q + ALONG(i, 64), k + ALONG(i, BLOCK), PARTS - 1 + i);
    NV_WGMMA_COMMIT();
}

INLINE void multiply_v(float *o, const uint *p, ulong v) {
#ifdef SPLIT
    UNROLL for (int i = 0; i < BLOCK / STEP; i++)
        SUM_E(o, p + 4 * i, v + V_BYTES / 16 + V_STEP(i), i);
    UNROLL for (int i = 0; i < BLOCK / STEP; i++) SUM_E(o, p + BLOCK / 2 + 4 * i, v + V_STEP(i), 1);
#endif
    UNROLL for (int i = 0; i < BLOCK / STEP; i++) SUM_E(o, p + 4 * i, v + V_STEP(i), 1);
    NV_WGMMA_COMMIT();
}
