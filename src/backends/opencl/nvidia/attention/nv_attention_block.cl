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
