/* What nv_attention.cl and nv_attention_warps.cl are told, and how scores of a block of keys become
 * weights: lanes have them as the matrix units leave them, the two rows g and g + 8 of sixteen. */
#define LN2 0.69314718055994530942f

/* Places; heads of q, of q for one of k, queries, keys, tiles of images, keys before query 0's own,
 * sizes of a row; strides; how many tiles of queries all heads have. */
typedef struct args {
    long q, k, v, mask, y, lse;
#ifndef WARPS
    long maps;
#endif
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

/* Products of block j to weights. */
INLINE void weigh(const args *a, rows *r, float *s, int j) {
    const int key0 = j * BLOCK + 2 * r->t;
    const float scale = r->scale;
    bool edge = j * BLOCK + BLOCK > (int)a->keys;
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
