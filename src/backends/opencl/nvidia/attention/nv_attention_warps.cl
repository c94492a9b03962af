/* Attention on mma.sync, made for many short sequences: y = softmax(scale q k^T + mask) v.
 *
 * A group of items has WARPS times 16 queries of one head, a warp for each 16.  All of them bring q
 * and blocks of k and v as they lie, by asynchronous copies of 16 bytes; rows in local memory are
 * 16 bytes longer than their numbers, so that the eight rows of a matrix meet all banks.  AHEAD
 * blocks are on their way at once, in STAGES places.  A warp's products stay in its registers, as
 * the A operand of the second product.
 *
 * Options, beside those of nv_attention_tiles.cl: D, E sizes of a row of q and v, multiples of 16;
 * BLOCK keys of a block; RAGGED: sixteens of keys of some block are left out; WARPS, STAGES, AHEAD;
 * KEEP_Q: a warp's queries stay in registers; CAUSAL; MASKED with M, the type of the mask, whose
 * keys are neighbours, MASK_ROWS of a warp, and BOOLS; PAIRS: y takes two numbers at once; LSE: it
 * is wanted. */
#define ROWS (16 * WARPS)
#define THREADS (32 * WARPS)
#define K_ROW (D * NUMBER + 16)
#define V_ROW (E * NUMBER + 16)
#define Q_BYTES (ROWS * K_ROW)
#define K_BYTES (BLOCK * K_ROW)
#define KV_BYTES (K_BYTES + BLOCK * V_ROW)
#ifdef MASKED                           /* a warp's part: rows of the mask, or the same for all */
#define M_SIZE ((int)sizeof(MEMORY(M)))
#define MASK_ROW (BLOCK * M_SIZE + 16)
#define STAGE_BYTES (KV_BYTES + WARPS * MASK_ROWS * MASK_ROW)
#else
#define STAGE_BYTES KV_BYTES
#endif
#define STEPS (D / STEP)
#define MMA FAC_CAT(nv_mma_, KIND)
#if defined(ALIGNED) && (defined(SAME) || NUMBER == 4)
#define AS_THEY_ARE
#endif

/* An item's pieces of 16 bytes of `n` rows that are `wide` numbers: where the first one is; where
 * as many items as pieces of some rows follow each other, the next ones are below it. */
#define DOWN(wide) (THREADS / ((wide) / CHUNK))
#define EVEN(wide) (THREADS % ((wide) / CHUNK) == 0)
#define PIECES(n, wide) (((n) * ((wide) / CHUNK) + THREADS - 1) / THREADS)
typedef struct piece { int row, chunk; } piece;
INLINE piece piece_of(int i, int wide, int item) {
    const int chunks = wide / CHUNK, u = EVEN(wide) ? item : item + i * THREADS;
    const piece p = { u / chunks + (EVEN(wide) ? i * DOWN(wide) : 0), u % chunks };
    return p;
}

/* Rows of an operand from `first` on, of `size` numbers; zeros where there are none. */
INLINE void bring(uint to, int row_bytes, global const MEMORY(X) *from, long step, int first,
                  int rows, int n, int size, int wide, int item) {
    const piece top = piece_of(0, wide, item);
    global const MEMORY(X) *p = from + (first + top.row) * step + top.chunk * CHUNK;
    UNROLL for (int i = 0; i < PIECES(n, wide); i++) {
        const piece u = piece_of(i, wide, item);
        if (u.row >= n) continue;
        const int left = first + u.row < rows ? size - u.chunk * CHUNK : 0;
        const uint at = to + u.row * row_bytes + u.chunk * 16;
        if (!EVEN(wide)) p = from + (first + u.row) * step + u.chunk * CHUNK;
#ifdef AS_THEY_ARE
        nv_copy16(at, p, clamp(left * NUMBER, 0, 16));
#elif defined(SPLIT)
        uint v[4];
        UNROLL for (int e = 0; e < 4; e++) v[e] = e < left ? as_uint(p[e]) : 0;
        nv_local_store4(at, v);
#else
        uint4 v[1];
        load_chunk(v, p, left);
        put_chunk(at, v[0]);
#endif
        p += DOWN(wide) * step;
    }
}

/* What an item brought as it lies is rounded, before others read it. */
#if defined(AS_THEY_ARE) && NUMBER == 4 && !defined(SPLIT)
INLINE void round_own(uint to, int row_bytes, int n, int wide, int item) {
    UNROLL for (int i = 0; i < PIECES(n, wide); i++) {
        const piece u = piece_of(i, wide, item);
        const uint at = to + u.row * row_bytes + u.chunk * 16;
        uint v[4];
        if (u.row >= n) continue;
        nv_local_load4(v, at);
        UNROLL for (int e = 0; e < 4; e++) v[e] = nv_to_tf32(as_float(v[e]));
        nv_local_store4(at, v);
    }
}
#else
#define round_own(to, row_bytes, n, wide, item)
#endif

INLINE void apart4(uint *high, uint *low) {
    UNROLL for (int i = 0; i < 4; i++) {
        low[i] = nv_low(as_float(high[i]));
        high[i] = nv_high(as_float(high[i]));
    }
}

/* Scores of a block: s += q k^T.  q, k: where the lane's rows of them lie.  Keys from `left` on
 * take no part, in sixteens; whole: all do. */
INLINE void multiply_k(float *s, const uint *kept, uint q, uint k, int left, bool whole) {
#ifdef SPLIT
    /* The units cut off what they add: sums of sixteen terms go on in f32. */
    UNROLL for (int j = 0; j < STEPS; j += 2) {
        uint high[2][4], low[2][4];
        UNROLL for (int h = 0; h < 2; h++) {
            nv_matrices(high[h], q + (j + h) * 32);
            apart4(high[h], low[h]);
        }
        UNROLL for (int i = 0; i < BLOCK / 16; i++) {
            if (!whole && 16 * i >= left) continue;
            float sum[8];
            UNROLL for (int h = 0; h < 2; h++) {
                uint b[4], b_low[4];
                nv_matrices(b, k + i * (16 * K_ROW) + (j + h) * 32);
                apart4(b, b_low);
                UNROLL for (int u = 0; u < 2; u++) {
                    if (h)
                        nv_mma_tf32(sum + 4 * u, low[h], b + 2 * u);
                    else
                        nv_mma_tf32_first(sum + 4 * u, low[h], b + 2 * u);
                }
                UNROLL for (int u = 0; u < 2; u++)
                    nv_mma_tf32(sum + 4 * u, high[h], b_low + 2 * u);
                UNROLL for (int u = 0; u < 2; u++) nv_mma_tf32(sum + 4 * u, high[h], b + 2 * u);
            }
            UNROLL for (int u = 0; u < 8; u++) s[8 * i + u] += sum[u];
        }
    }
#else
    UNROLL for (int j = 0; j < STEPS; j++) {
#ifdef KEEP_Q
        const uint *a = kept + 4 * j;
#else
        uint a[4];
        nv_matrices(a, q + j * 32);
#endif
        UNROLL for (int i = 0; i < BLOCK / 16; i++) {
            if (!whole && 16 * i >= left) continue;
            uint b[4];
            nv_matrices(b, k + i * (16 * K_ROW) + j * 32);
            MMA(s + 8 * i, a, b);
            MMA(s + 8 * i + 4, a, b + 2);
        }
    }
#endif
}

/* o += weights v, sixteen keys at a time.  Of TF32 two terms of a step, t and t + 4, are the keys
 * 2 t and 2 t + 1 of eight, since the weights stand so. */
INLINE void multiply_v(float *o, const float *s, uint v, int left, bool whole) {
    UNROLL for (int i = 0; i < BLOCK / 16; i++) {
        if (!whole && 16 * i >= left) continue;
        const float *w = s + 8 * i;
#if NUMBER == 2
        uint a[4];
        UNROLL for (int u = 0; u < 4; u++) a[u] = FAC_CAT(nv_pack_, KIND)(w[2 * u], w[2 * u + 1]);
        UNROLL for (int n = 0; n < E / 16; n++) {
            uint b[4];
            nv_matrices_transposed(b, v + i * (16 * V_ROW) + n * 32);
            MMA(o + 8 * n, a, b);
            MMA(o + 8 * n + 4, a, b + 2);
        }
#else
        uint a[2][4];
        UNROLL for (int h = 0; h < 2; h++) UNROLL for (int u = 0; u < 4; u++)
            a[h][u] = as_uint(w[4 * h + (u & 1) * 2 + (u >> 1)]);
#ifdef SPLIT
        uint low[2][4];
        UNROLL for (int h = 0; h < 2; h++) apart4(a[h], low[h]);
#else
        UNROLL for (int h = 0; h < 2; h++) UNROLL for (int u = 0; u < 4; u++)
            a[h][u] = nv_to_tf32(as_float(a[h][u]));
#endif
        UNROLL for (int n = 0; n < E / 8; n++) {
            uint b[4];                          /* of both steps */
            UNROLL for (int u = 0; u < 4; u++)
                b[u] = nv_local_load(v + (16 * i + u / 2 * 8 + u % 2) * V_ROW + n * 32);
#ifdef SPLIT
            uint b_low[4];
            float sum[4];
            apart4(b, b_low);
            nv_mma_tf32_first(sum, low[0], b);
            nv_mma_tf32(sum, a[0], b_low);
            nv_mma_tf32(sum, low[1], b + 2);
            nv_mma_tf32(sum, a[1], b_low + 2);
            nv_mma_tf32(sum, a[0], b);
            nv_mma_tf32(sum, a[1], b + 2);
            UNROLL for (int u = 0; u < 4; u++) o[4 * n + u] += sum[u];
#else
            MMA(o + 4 * n, a[0], b);
            MMA(o + 4 * n, a[1], b + 2);
#endif
        }
#endif
    }
}

#ifdef MASKED
/* Where a row of the mask begins, for keys from key0 on. */
INLINE size_t mask_row(const args *a, global const MEMORY(M) *mask, int row, int key0) {
    return (size_t)(mask + min(row, (int)a->queries - 1) * a->m_row + key0);
}
/* A warp's part of the mask, rows from `first` on: whole pieces of 16 bytes, so that a row begins
 * within its first one.  Two lanes for a row, or all lanes for the only one.  Through the first
 * cache: a table that all windows share has few lines in the second one, where all would wait. */
INLINE void bring_mask(const args *a, uint to, global const MEMORY(M) *mask, int first, int key0,
                       int lane) {
    const int r = MASK_ROWS == 1 ? 0 : lane >> 1, lanes = 32 / MASK_ROWS;
    const size_t at = mask_row(a, mask, first + r, key0);
    const int bytes = min(BLOCK, (int)a->keys - key0) * M_SIZE + (int)(at & 15);
    UNROLL for (int i = 0; i < (MASK_ROW / 16 + lanes - 1) / lanes; i++) {
        const int c = 16 * (lane % lanes + i * lanes);
        if (c < MASK_ROW)
            nv_copy16_near(to + r * MASK_ROW + c, (global const uchar *)(at & ~(size_t)15) + c,
                           clamp(bytes - c, 0, 16));
    }
}
/* Scores begin with it, in units of products. */
INLINE float mask_of(local const uchar *p, float unit) {
    const MEMORY(M) x = *(local const MEMORY(M) *)p;
#ifdef BOOLS
    return x ? 0.0f : -INFINITY;
#else
    return FROM(M, x) * unit;
#endif
}
INLINE void begin(const args *a, float *s, local const uchar *part, global const MEMORY(M) *mask,
                  int row0, int key0, int lane) {
    const float unit = 1 / as_float((int)a->scale);
    UNROLL for (int k = 0; k < 2; k++) {
        const int shift = (int)(mask_row(a, mask, row0 + 8 * k, key0) & 15);
        local const uchar *p = part + shift + (lane & 3) * (2 * M_SIZE);
        if (MASK_ROWS > 1) p += ((lane >> 2) + 8 * k) * MASK_ROW;
        UNROLL for (int i = 0; i < BLOCK / 8; i++) {
            s[4 * i + 2 * k] = mask_of(p + 8 * i * M_SIZE, unit);
            s[4 * i + 2 * k + 1] = mask_of(p + (8 * i + 1) * M_SIZE, unit);
        }
    }
}
#endif

INLINE int keys_before(const args *a, int query) {
#ifdef CAUSAL
    return min(query + (int)a->before, (int)a->keys);
#else
    return (int)a->keys;
#endif
}

kernel GROUP(THREADS) void attention(const args a, global const MEMORY(X) *q,
                                     global const MEMORY(X) *k, global const MEMORY(X) *v,
                                     global const MEMORY(M) *mask, global MEMORY(X) *y,
                                     global float *lse) {
    local uchar memory[Q_BYTES + STAGES * STAGE_BYTES] __attribute__((aligned(128)));
    const int item = get_local_id(0), warp = item >> 5, lane = item & 31, g = lane >> 2,
              t = lane & 3;
    const int h = get_group_id(1), b = get_group_id(2), kv = h / (int)a.ratio;
#ifdef CAUSAL
    const int tile = TILES(&a) - 1 - (int)get_group_id(0);      /* the long ones come first */
#else
    const int tile = get_group_id(0);
#endif
    const int first = tile * ROWS, mine = first + 16 * warp, row0 = mine + g;
    const int blocks = STAGES == 1 ? 1 : (keys_before(&a, first + ROWS) + BLOCK - 1) / BLOCK;
    const int seen = mine < (int)a.queries ? keys_before(&a, mine + 16) : 0;
    const uint q_at = LOCAL_AT(memory), kv_at = q_at + Q_BYTES;
    global const MEMORY(X) *k_from = k + a.k + b * a.k_batch + kv * a.k_head;
    global const MEMORY(X) *v_from = v + a.v + b * a.v_batch + kv * a.v_head;
#define BRING(j)                                                                                   \
    do {                                                                                           \
        const uint place = kv_at + (j) % STAGES * STAGE_BYTES;                                     \
        bring(place, K_ROW, k_from, a.k_row, (j)*BLOCK, (int)a.keys, BLOCK, (int)a.d, D, item);    \
        bring(place + K_BYTES, V_ROW, v_from, a.v_row, (j)*BLOCK, (int)a.keys, BLOCK, (int)a.e, E, \
              item);                                                                               \
        BRING_MASK(place, j);                                                                      \
    } while (0)
#ifdef MASKED
    mask += MASK_OF(a, b, h);
#define BRING_MASK(place, j)                                                                       \
    bring_mask(&a, (place) + KV_BYTES + warp * (MASK_ROWS * MASK_ROW), mask, mine, (j)*BLOCK, lane)
#else
#define BRING_MASK(place, j)
#endif
    bring(q_at, K_ROW, q + a.q + b * a.q_batch + h * a.q_head, a.q_row, first, (int)a.queries, ROWS,
          (int)a.d, D, item);
    for (int j = 0; j < AHEAD; j++) {
        if (j < blocks) BRING(j);
        NV_COPIES_COMMIT();
    }
    rows r = { .top = { -INFINITY, -INFINITY }, .first = mine, .row0 = row0, .t = t };
    r.scale = as_float((int)a.scale) * LOG2E;
    /* where this lane's rows of matrices begin */
    const uint q_lane = q_at + (16 * warp + (lane & 15)) * K_ROW + (lane >> 4) * 16;
    const uint k_lane = ((lane & 7) + (lane >> 4) * 8) * K_ROW + (lane >> 3 & 1) * 16;
#if NUMBER == 2
    const uint v_lane = K_BYTES + (lane & 15) * V_ROW + (lane >> 4) * 16;
#else
    const uint v_lane = K_BYTES + 2 * t * V_ROW + g * 4;
#endif
    float o[E / 2];
    UNROLL for (int i = 0; i < E / 2; i++) o[i] = 0;
#ifdef KEEP_Q
    uint kept[4 * STEPS];
#else
    uint *const kept = 0;
#endif
    for (int j = 0; j < blocks; j++) {
        const uint place = kv_at + j % STAGES * STAGE_BYTES;
        const int left = seen - j * BLOCK;
        NV_COPIES_WAIT(AHEAD - 1);
        if (j == 0) round_own(q_at, K_ROW, ROWS, D, item);
        round_own(place, K_ROW, BLOCK, D, item);
        round_own(place + K_BYTES, V_ROW, BLOCK, E, item);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (AHEAD < STAGES && j + AHEAD < blocks) BRING(j + AHEAD);
        NV_COPIES_COMMIT();
#ifdef KEEP_Q
        if (j == 0)
            UNROLL for (int i = 0; i < STEPS; i++) nv_matrices(kept + 4 * i, q_lane + i * 32);
#endif
        if (left <= 0) continue;
        float s[BLOCK / 2];
#ifdef MASKED
        begin(&a, s,
              memory + Q_BYTES + j % STAGES * STAGE_BYTES + KV_BYTES +
                  warp * (MASK_ROWS * MASK_ROW),
              mask, row0, j * BLOCK, lane);
#else
        UNROLL for (int i = 0; i < BLOCK / 2; i++) s[i] = 0;
#endif
        if (!RAGGED || left >= BLOCK)
            multiply_k(s, kept, q_lane, place + k_lane, left, true);
        else
            multiply_k(s, kept, q_lane, place + k_lane, left, false);
        weigh(&a, &r, s, j);
        if (j) UNROLL for (int i = 0; i < E / 2; i++) o[i] *= r.factor[i >> 1 & 1];
        if (!RAGGED || left >= BLOCK)
            multiply_v(o, s, place + v_lane, left, true);
        else
            multiply_v(o, s, place + v_lane, left, false);
    }
    UNROLL for (int n = 0; n < 2; n++) {
        r.sum[n] += nv_other_lane(r.sum[n], 1);
        r.sum[n] += nv_other_lane(r.sum[n], 2);
        r.factor[n] = r.sum[n] > 0 ? 1 / r.sum[n] : 0;  /* a query that saw no key gives zeros */
    }
    UNROLL for (int i = 0; i < E / 2; i++) o[i] *= r.factor[i >> 1 & 1];
    put_rows(y + a.y + b * a.y_batch + h * a.y_head, a.y_row, row0, (int)a.queries, (int)a.e, E, t,
             o, 1);
#ifdef LSE
    UNROLL for (int n = 0; n < 2; n++)
        if (t == 0 && row0 + 8 * n < a.queries)
            lse[a.lse + ((long)b * a.H + h) * a.queries + row0 + 8 * n] =
                r.sum[n] > 0 ? LN2 * (r.top[n] * r.scale + log2(r.sum[n])) : 0;
#endif
}
