/* Products of tiles in local memory by mma.sync: what kernels for sm_80 and newer share
 * (nv_mma_conv.cl, nv_mma_matmul.cl).
 *
 * Rows of both tiles run along the sum and have 64 or 128 bytes.  The 16-byte chunk c of row r lies
 * at c ^ (r & 7), in rows of 64 bytes at c ^ (r / 2 & 3), so that the eight rows of a matrix that
 * ldmatrix reads meet all banks.  A warp has WM rows and WN columns of the tile.  Columns of b
 * stand in the order of nvidia/conv/conv.h, so that a lane's sums are four neighbours: sum[m][8 q +
 * 2 i ..] and [.. + 4, + 5] are columns 16 q + 4 t .. of row 16 m + 8 i + g.
 *
 *   WM, WN          of a warp: multiples of 16;  WARPS_M: warps along the rows of the tile
 *   A_ROW, B_ROW    bytes of a row
 *   KIND            0: tf32, 1: bf16, 2: f16
 *   SPLIT3          3XTF32: low high + high low + high high; every sixteen terms go to f32 sums,
 *                   since the units cut off what they add
 *   B_LOW           low parts of b lie so many bytes after it; 0: they are made here
 *   A_FLOATS        rows of a are f32 for 16-bit products: lane t of a row takes the channels 4 t
 *                   .. of each 16 (the weights' terms are packed so); then chunks lie at c ^ (r &
 *                   1) * 4 in rows of 128 bytes
 *   ROUND_A, _B     f32 that is to be rounded to tf32 */
#define MS (WM / 16)
#define NS (WN / 16)
#define STEPS (B_ROW / 32)
#if KIND == 0
#define MMA nv_mma_tf32
#elif KIND == 1
#define MMA nv_mma_bf16
#define PACK2 nv_pack_bf16
#else
#define MMA nv_mma_f16
#define PACK2 nv_pack_f16
#endif

INLINE int turn_of(int row, int bytes) { return bytes == 128 ? row & 7 : row >> 1 & 3; }
#ifdef A_FLOATS
INLINE int a_turn_of(int row) { return A_ROW == 128 ? (row & 1) * 4 : row >> 1 & 3; }
#else
INLINE int a_turn_of(int row) { return turn_of(row, A_ROW); }
#endif

/* Where a lane's part of a warp's rows begins in the tiles: the row, and its first chunk, whose
 * bits change from step to step. */
typedef struct {
    uint a, b;
} seat;
INLINE seat seat_of(int warp, int lane) {
    seat s;
#ifdef A_FLOATS
    const int ra = lane >> 2, ca = lane & 3;
#else
    const int ra = lane & 15, ca = lane >> 4; /* rows 0 .. 7, 8 .. 15 of chunk c, then of c + 1 */
#endif
    const int rb = (lane & 7) + (lane >> 4) * 8,
              cb = lane >> 3 & 1; /* chunks c, c + 1 of columns 0 .. 7, then 8 .. 15 */
    s.a = (uint)((warp % WARPS_M * WM + ra) * A_ROW + (ca ^ a_turn_of(ra)) * 16);
    s.b = (uint)((warp / WARPS_M * WN + rb) * B_ROW + (cb ^ turn_of(rb, B_ROW)) * 16);
    return s;
}

INLINE void read_a(uint (*a)[4], uint tile, seat s, int k) {
#ifdef A_FLOATS
    UNROLL
    for (int m = 0; m < MS; m++) UNROLL
    for (int i = 0; i < 2; i++) {
        uint v[4];
        nv_local_load4(v, ((tile + s.a) ^ (uint)(64 * k)) + (uint)((16 * m + 8 * i) * A_ROW));
        a[m][i] = PACK2(as_float(v[0]), as_float(v[1]));
        a[m][2 + i] = PACK2(as_float(v[2]), as_float(v[3]));
    }
#else
    UNROLL
    for (int m = 0; m < MS; m++)
        nv_matrices(a[m], ((tile + s.a) ^ (uint)(32 * k)) + (uint)(16 * m * A_ROW));
#endif
}
INLINE void read_b(uint *b, uint tile, seat s, int k, int q) {
    nv_matrices(b, ((tile + s.b) ^ (uint)(32 * k)) + (uint)(16 * q * B_ROW));
}
INLINE void round4(uint *v) {
    UNROLL
    for (int e = 0; e < 4; e++) v[e] = nv_to_tf32(as_float(v[e]));
}
INLINE void split4(uint *high, uint *low) {
    UNROLL
    for (int e = 0; e < 4; e++) {
        low[e] = nv_low(as_float(high[e]));
        high[e] = nv_high(as_float(high[e]));
    }
}

#ifdef SPLIT3
/* Sixteen terms at a time: the units' sums of them, six products long, go to f32 sums. */
INLINE void multiply(float (*sum)[8 * NS], uint a_tile, uint b_tile, seat s) {
    UNROLL
    for (int k = 0; k < STEPS; k += 2) {
        uint high[2][MS][4], low[2][MS][4];
        UNROLL
        for (int i = 0; i < 2; i++) {
            read_a(high[i], a_tile, s, k + i);
            UNROLL
            for (int m = 0; m < MS; m++) split4(high[i][m], low[i][m]);
        }
        UNROLL
        for (int q = 0; q < NS; q++) {
            uint b[2][4], b_low[2][4];
            float d[MS][2][4];
            UNROLL
            for (int i = 0; i < 2; i++) {
                read_b(b[i], b_tile, s, k + i, q);
                if (B_LOW)
                    read_b(b_low[i], b_tile + B_LOW, s, k + i, q);
                else
                    split4(b[i], b_low[i]);
            }
            UNROLL
            for (int i = 0; i < 2; i++) {
                UNROLL
                for (int m = 0; m < MS; m++) UNROLL
                for (int h = 0; h < 2; h++) {
                    if (i)
                        nv_mma_tf32(d[m][h], low[i][m], b[i] + 2 * h);
                    else
                        nv_mma_tf32_first(d[m][h], low[i][m], b[i] + 2 * h);
                }
                UNROLL
                for (int m = 0; m < MS; m++) UNROLL
                for (int h = 0; h < 2; h++) nv_mma_tf32(d[m][h], high[i][m], b_low[i] + 2 * h);
                UNROLL
                for (int m = 0; m < MS; m++) UNROLL
                for (int h = 0; h < 2; h++) nv_mma_tf32(d[m][h], high[i][m], b[i] + 2 * h);
            }
            UNROLL
            for (int m = 0; m < MS; m++) UNROLL
            for (int h = 0; h < 2; h++) UNROLL
            for (int e = 0; e < 4; e++) sum[m][8 * q + 4 * h + e] += d[m][h][e];
        }
    }
}
#else
/* A k-tile's part of all sums of a warp: what the next products need is read while the last ones
 * run. */
INLINE void multiply(float (*sum)[8 * NS], uint a_tile, uint b_tile, seat s) {
    uint a[2][MS][4], b[2][4];
    read_a(a[0], a_tile, s, 0);
    read_b(b[0], b_tile, s, 0, 0);
    UNROLL
    for (int k = 0; k < STEPS; k++) {
#ifdef ROUND_A
        UNROLL
        for (int m = 0; m < MS; m++) round4(a[k & 1][m]);
#endif
        UNROLL
        for (int q = 0; q < NS; q++) {
            const int now = (k * NS + q) & 1;
            if (q + 1 < NS)
                read_b(b[now ^ 1], b_tile, s, k, q + 1);
            else if (k + 1 < STEPS)
                read_b(b[now ^ 1], b_tile, s, k + 1, 0);
            if (!q && k + 1 < STEPS) read_a(a[k + 1 & 1], a_tile, s, k + 1);
#ifdef ROUND_B
            round4(b[now]);
#endif
            UNROLL
            for (int m = 0; m < MS; m++) UNROLL
            for (int h = 0; h < 2; h++) MMA(sum[m] + 8 * q + 4 * h, a[k & 1][m], b[now] + 2 * h);
        }
    }
}
#endif
