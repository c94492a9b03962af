/* Gradients of attention: with P = exp(scale q k^T + mask - lse), dP = dy v^T, dS = P (dP - delta):
 *   dv = P^T dy     dk = scale dS^T q     dq = scale dS k
 * nv_attention_grad_keys.cl sums over queries, with everything transposed, so that P^T and dS^T are
 * left by the first products as the second ones want them; nv_attention_grad_queries.cl sums over
 * keys.  This stands in front of both.  Nothing is summed by two groups of items: same bits every
 * run.
 *
 * As many groups as there are compute units take one tile after the other: GROUPS times 64 rows of
 * two operands, which stay; BLOCK rows of two others stream by, through STAGES.  TF32 needs some of
 * these transposed as well, in STAGES_T.  TILE: rows of an image's tile. */
typedef struct args {
#ifdef KEYS
    long q, k, v, dy, qt, dyt, stats, mask, y0, y1, maps;
#else
    long q, k, v, dy, kt, stats, mask, y0, maps;
#endif
    long H, ratio, queries, keys, q_tiles, k_tiles, before, d, e, y0_batch, y0_head, y0_row,
        y1_batch, y1_head, y1_row;
    long q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, dy_batch, dy_head,
        dy_row;
    long m_each, m_group, m_batch, m_head, m_row, m_key, scale, all; /* all: tiles of all heads */
} args;

#define ROWS_BYTES(n, size) (PANELS(size) * (n)*128) /* of n rows along the sum */
#define A_D ROWS_BYTES(64, D)
#define A_E ROWS_BYTES(64, E)
#define B_D ROWS_BYTES(BLOCK, D)
#define B_E ROWS_BYTES(BLOCK, E)
#define T_D (BLOCK / 32 * D * 128) /* TF32: transposed */
#define T_E (BLOCK / 32 * E * 128)
#define TRANSPOSED_TILE(size) (TILE / 32 * (size)*128)
#if NUMBER == 2
#define STAGED_T 0
#elif defined(KEYS)
#define STAGED_T (STAGES_T * (T_D + T_E))
#else
#define STAGED_T (STAGES_T * T_D)
#endif

/* A step of the sum down a streamed operand, `wide` numbers a row. */
#if NUMBER == 4
#define DOWN_LEAD 1
#define DOWN(i, wide) ((i) / 4 * ((wide)*8) + (i) % 4 * 2)
#else
#define DOWN_LEAD (BLOCK * 8)
#define DOWN(i, wide) ((i)*128)
#endif

/* Where there is room the next tile comes while this one is at work. */
#define A_BYTES (GROUPS * (A_D + A_E))
#if A_BYTES * 2 + STAGES * (B_D + B_E) + STAGED_T <= 228000
#define A_TILES 2
#else
#define A_TILES 1
#endif

#ifdef MASKED
#define MASK_AT m_at
#else
#define MASK_AT 0
#endif

/* ---- bringing rows of one head ---- */

/* MAPS: by maps of boxes of 64 rows, in the order of the operands. */
enum { BOX = 64, ALL_MAPS = 4 };
#define MAP_q 0
#define MAP_k 1
#define MAP_v 2
#define MAP_dy 3
typedef struct source {
    global const uchar *x;
    int panels, head, batch;
} source;
#ifdef MAPS
#define SOURCE(x, head, of, tiles, SIZE)                                                           \
    { map + MAP_##x * 128, PANELS(SIZE), (head), b }
INLINE void fetch(uint to, source s, int first, int n, uint b) {
    for (int k = 0; k < n; k += BOX)
        for (int p = 0; p < s.panels; p++)
            nv_map_load(to + p * (n * 128) + k * 128, s.x, p * PANEL, first + k, s.head, s.batch,
                        b);
}
INLINE void make_maps(const args *a, uint room, global uchar *maps, global const MEMORY(X) * q,
                      global const MEMORY(X) * k, global const MEMORY(X) * v,
                      global const MEMORY(X) * dy, long batches, int item) {
    const long G = a->H / a->ratio;
    const nv_rows rows[] = { ROWS_OF(q, *a, batches, a->H, a->queries, a->d, BOX),
                             ROWS_OF(k, *a, batches, G, a->keys, a->d, BOX),
                             ROWS_OF(v, *a, batches, G, a->keys, a->e, BOX),
                             ROWS_OF(dy, *a, batches, a->H, a->queries, a->e, BOX) };
    UNROLL
    for (int i = 0; i < ALL_MAPS; i++)
        if (item >> 5 == i) nv_map_make(room + i * 128, maps + i * 128, rows[i], item & 31);
    nv_meet(15, 128);
}
#else
#define SOURCE(x, head, of, tiles, SIZE)                                                           \
    { x + a.x + ((long)b * (of) + (head)) * a.tiles *ROWS_BYTES(TILE, SIZE), PANELS(SIZE), 0, 0 }
INLINE void fetch(uint to, source s, int first, int n, uint b) {
    global const uchar *from = s.x + (long)(first / TILE) * (s.panels * TILE * 128);
    for (int k = 0; k < n / TILE; k++)
        for (int p = 0; p < s.panels; p++)
            nv_bulk_load(to + p * (n * 128) + k * (TILE * 128),
                         from + (k * s.panels + p) * (TILE * 128), TILE * 128, b);
}
#endif

/* Blocks of BLOCK rows that begin before row n. */
INLINE int blocks_before(int n) { return n <= 0 ? 0 : (n + BLOCK - 1) / BLOCK; }
INLINE int between(int n, int least, int most) { return n < least ? least : min(n, most); }
