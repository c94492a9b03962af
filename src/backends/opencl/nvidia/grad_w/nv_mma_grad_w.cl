/* Gradient of a convolution by its weights on mma.sync, for sm_80 and newer:
 *
 *   parts[part][k][tap][c] = sum over the part's pixels p of dy[p][k] x[pixel that p sees through
 *   tap][c]
 *
 * A tile is BM channels k by BN columns (tap, c).  Both operands come as rows of one pixel each,
 * channels side by side, by asynchronous copies, PIXELS at a time and STAGES - 1 steps ahead; chunk
 * c of pixel p's row lies at c ^ turn(p).
 *
 * f32: a lane reads 16 bytes, four channels of a pixel, which are four eights of rows (columns) of
 * the instruction: row g of eight f is channel 4 g + f of 32.  So nothing is transposed, and sums
 * of four neighbouring columns meet in one lane.  16 bits: ldmatrix transposes.
 *
 *   BM, BN, WM, WN, ITEMS   of the tile and of a warp, multiples of 32
 *   KIND            0: tf32, 1: bf16, 2: f16;  SPLIT3: 3XTF32;  HALVES: MEM has 16 bits;  DEEP:
 *                   images have a depth */
typedef struct sizes {
    long x, dy, parts;                              /* where they begin */
    long pixels, each;                              /* of all images; of a part of the sum */
    long height, width, high, wide;                 /* of x, of dy */
    long high_m, high_s, wide_m, wide_s;            /* to divide by them */
    long x_image, x_row, x_column, dy_image, dy_row, dy_column;
    long channels, rows, groups;                    /* of x and dy, in a group */
    long down, across, up, left, far_h, far_w;      /* strides, pads, dilations */
    long taps, width_taps, tiles_m, tiles_n;
    long depth, deep, deep_m, deep_s, x_depth, dy_depth, inward, front, far_d,
        plane_taps; /* used by DEEP alone */
} sizes;

#define ES ((int)sizeof(MEM))
#define CHUNK (16 / ES)
#define A_ROW (BM * ES)
#define B_ROW (BN * ES)
#define ROOM ((A_ROW + B_ROW) * PIXELS)
#define WARPS_M (BM / WM)
#define MS (WM / 16)
#define NS (WN / 8)
#if KIND == 1
#define MMA nv_mma_bf16
#define PACK2 nv_pack_bf16
#elif KIND == 2
#define MMA nv_mma_f16
#define PACK2 nv_pack_f16
#else
#define MMA nv_mma_tf32
#endif

INLINE int turn(int p) { return ES == 4 ? (p & 3) << 1 : p & 7; }
INLINE int nv_shuffle(int v, int lane) {
    int r;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(r) : "r"(v), "r"(lane));
    return r;
}
INLINE int quotient(int x, long m, long s) { return (int)((ulong)(uint)x * (ulong)m >> s); }

/* Where one pixel of dy lies, -1: nowhere; where its tap 0 lies in x. */
typedef struct { int dy, x, d, h, w; } pixel;
INLINE pixel pixel_at(const sizes *s, int p, int end) {
    const int q = quotient(p, s->wide_m, s->wide_s), plane = quotient(q, s->high_m, s->high_s);
    const int w = p - q * (int)s->wide, h = q - plane * (int)s->high;
    pixel v;
#ifdef DEEP
    const int n = quotient(plane, s->deep_m, s->deep_s), d = plane - n * (int)s->deep;
    const int dy = n * (int)s->dy_image + d * (int)s->dy_depth;
    v.d = d * (int)s->inward - (int)s->front;
#else
    const int n = plane, dy = n * (int)s->dy_image;
    v.d = 0;
#endif
    v.dy = p < end ? dy + h * (int)s->dy_row + w * (int)s->dy_column : -1;
    v.h = p < end ? h * (int)s->down - (int)s->up : -(1 << 29);
    v.w = w * (int)s->across - (int)s->left;
    v.x = n * (int)s->x_image + (h * (int)s->down - (int)s->up) * (int)s->x_row +
          v.w * (int)s->x_column;
#ifdef DEEP
    v.x += v.d * (int)s->x_depth;
#endif
    return v;
}

#if !HALVES
/* Of 32 rows (columns) from `first` on, four eights: v[f] is channel 4 g + f of pixel p + t. */
INLINE void read4(uint *v, uint tile, int row_bytes, int p, int first, int lane) {
    const int g = lane >> 2, t = lane & 3;
    nv_local_load4(v, tile + (uint)((p + t) * row_bytes + (first / 4 + (g ^ t << 1)) * 16));
}
INLINE uint rounded(uint v) { return nv_to_tf32(as_float(v)); }
#endif

#if HALVES || KIND
#define TERMS 16
#if HALVES
INLINE void read_a(uint (*a)[4], uint tile, int k, int first, int lane) {
    const int p = (lane & 7) + (lane >> 4) * 8, c = lane >> 3 & 1;
    UNROLL for (int m = 0; m < MS; m++)
        nv_matrices_transposed(a[m], tile + (uint)((16 * k + p) * A_ROW +
                                               (((first + 16 * m) / 8 + c) ^ turn(p)) * 16));
}
INLINE void read_b(uint (*b)[2], uint tile, int k, int first, int lane) {
    const int p = (lane & 7) + (lane >> 3 & 1) * 8, c = lane >> 4;
    UNROLL for (int n = 0; n < NS; n += 2)
        nv_matrices_transposed(
            b[n], tile + (uint)((16 * k + p) * B_ROW + (((first + 8 * n) / 8 + c) ^ turn(p)) * 16));
}
#else
/* Which pixel is which term is the same for both operands: lane t has t, t + 4 and t + 8, t + 12
 * of 16. */
INLINE void read_pairs(uint (*pair)[4], uint tile, int row_bytes, int k, int first, int lane) {
    UNROLL for (int h = 0; h < 2; h++) {
        uint v[4], w[4];
        read4(v, tile, row_bytes, 16 * k + 8 * h, first, lane);
        read4(w, tile, row_bytes, 16 * k + 8 * h + 4, first, lane);
        UNROLL for (int f = 0; f < 4; f++) pair[h][f] = PACK2(as_float(v[f]), as_float(w[f]));
    }
}
INLINE void read_a(uint (*a)[4], uint tile, int k, int first, int lane) {
    UNROLL for (int m = 0; m < MS; m += 2) {
        uint v[2][4];
        read_pairs(v, tile, A_ROW, k, first + 16 * m, lane);
        UNROLL
        for (int h = 0; h < 2; h++) UNROLL
        for (int f = 0; f < 4; f++) a[m + f / 2][2 * h + f % 2] = v[h][f];
    }
}
INLINE void read_b(uint (*b)[2], uint tile, int k, int first, int lane) {
    UNROLL for (int n = 0; n < NS; n += 4) {
        uint v[2][4];
        read_pairs(v, tile, B_ROW, k, first + 8 * n, lane);
        UNROLL for (int h = 0; h < 2; h++) UNROLL for (int f = 0; f < 4; f++) b[n + f][h] = v[h][f];
    }
}
#endif
#else
#define TERMS 8
INLINE void read_a(uint (*a)[4], uint tile, int k, int first, int lane) {
    UNROLL for (int m = 0; m < MS; m += 2) UNROLL for (int h = 0; h < 2; h++) {
        uint v[4];
        read4(v, tile, A_ROW, 8 * k + 4 * h, first + 16 * m, lane);
        UNROLL for (int f = 0; f < 4; f++) a[m + f / 2][2 * h + f % 2] = v[f];
    }
}
INLINE void read_b(uint (*b)[2], uint tile, int k, int first, int lane) {
    UNROLL for (int n = 0; n < NS; n += 4) UNROLL for (int h = 0; h < 2; h++) {
        uint v[4];
        read4(v, tile, B_ROW, 8 * k + 4 * h, first + 8 * n, lane);
        UNROLL for (int f = 0; f < 4; f++) b[n + f][h] = v[f];
    }
}
#endif

#ifdef SPLIT3
INLINE void split2(uint *high, uint *low) {
    UNROLL
    for (int e = 0; e < 2; e++) {
        low[e] = nv_low(as_float(high[e]));
        high[e] = nv_high(as_float(high[e]));
    }
}
/* Sixteen pixels at a time: the units cut off what they add, so their sums, six products long, go
 * to f32 sums. */
INLINE void multiply(float (*sum)[NS][4], uint a_tile, uint b_tile, int row, int column, int lane) {
    UNROLL for (int k = 0; k < PIXELS / 8; k += 2) {
        uint a[2][MS][4], a_low[2][MS][4], b[2][NS][2], b_low[2][NS][2];
        UNROLL for (int i = 0; i < 2; i++) {
            read_a(a[i], a_tile, k + i, row, lane);
            read_b(b[i], b_tile, k + i, column, lane);
            UNROLL
            for (int m = 0; m < MS; m++)
                split2(a[i][m], a_low[i][m]), split2(a[i][m] + 2, a_low[i][m] + 2);
            UNROLL for (int n = 0; n < NS; n++) split2(b[i][n], b_low[i][n]);
        }
        UNROLL for (int n = 0; n < NS; n++) {
            float d[MS][4];
            UNROLL for (int m = 0; m < MS; m++) nv_mma_tf32_first(d[m], a_low[0][m], b[0][n]);
            UNROLL for (int m = 0; m < MS; m++) MMA(d[m], a[0][m], b_low[0][n]);
            UNROLL for (int m = 0; m < MS; m++) MMA(d[m], a_low[1][m], b[1][n]);
            UNROLL for (int m = 0; m < MS; m++) MMA(d[m], a[1][m], b_low[1][n]);
            UNROLL
            for (int i = 0; i < 2; i++) UNROLL
            for (int m = 0; m < MS; m++) MMA(d[m], a[i][m], b[i][n]);
            UNROLL
            for (int m = 0; m < MS; m++) UNROLL
            for (int e = 0; e < 4; e++) sum[m][n][e] += d[m][e];
        }
    }
}
#else
INLINE void multiply(float (*sum)[NS][4], uint a_tile, uint b_tile, int row, int column, int lane) {
    UNROLL for (int k = 0; k < PIXELS / TERMS; k++) {
        uint a[MS][4], b[NS][2];
        read_a(a, a_tile, k, row, lane);
        read_b(b, b_tile, k, column, lane);
#if !KIND
        UNROLL
        for (int m = 0; m < MS; m++) UNROLL
        for (int e = 0; e < 4; e++) a[m][e] = rounded(a[m][e]);
        UNROLL
        for (int n = 0; n < NS; n++) UNROLL
        for (int e = 0; e < 2; e++) b[n][e] = rounded(b[n][e]);
#endif
        UNROLL
        for (int n = 0; n < NS; n++) UNROLL
        for (int m = 0; m < MS; m++) MMA(sum[m][n], a[m], b[n]);
    }
}
#endif

kernel GROUP(ITEMS) void grad_w(const sizes s, global const MEM *restrict x,
                                global const MEM *restrict dy, global float *restrict parts) {
    local uchar tiles[STAGES * ROOM] __attribute__((aligned(1024)));
    const int id = get_local_id(0), lane = id & 31, warp = id >> 5, tile = get_group_id(0);
    const int C = (int)s.channels, K = (int)s.rows, all = (int)s.taps * C;
    const int group = tile / (int)(s.tiles_m * s.tiles_n),
              m0 = tile / (int)s.tiles_n % (int)s.tiles_m * BM, n0 = tile % (int)s.tiles_n * BN;
    const int first = (int)get_group_id(1) * (int)s.each,
              end = min(first + (int)s.each, (int)s.pixels);
    const int steps = (end - first + PIXELS - 1) / PIXELS;
    enum {
        A_CHUNKS = A_ROW / 16,
        B_CHUNKS = B_ROW / 16,
        A_DOWN = ITEMS / A_CHUNKS,
        B_DOWN = ITEMS / B_CHUNKS
    };
    const int ca = id % A_CHUNKS, ra = id / A_CHUNKS, cb = id % B_CHUNKS, rb = id / B_CHUNKS;
    const int column = n0 + cb * CHUNK, tap = column / C;
#ifdef DEEP
    const int in_d = tap / (int)s.plane_taps * (int)s.far_d,
              in_h = tap % (int)s.plane_taps / (int)s.width_taps * (int)s.far_h;
#define SLICE(r) ((uint)(nv_shuffle(v.d, r) + in_d) < (uint)s.depth)
#else
    const int in_h = tap / (int)s.width_taps * (int)s.far_h;
#define SLICE(r) 1
#endif
    const int in_w = tap % (int)s.width_taps * (int)s.far_w;
    const bool a_there = m0 + ca * CHUNK < K, b_there = column < all;
    const int height = (int)s.height, width = (int)s.width;
    const uint at = LOCAL_AT(tiles);
    dy += s.dy + group * K + m0 + ca * CHUNK;
    x += s.x + group * C + column % C + (long)in_h * s.x_row + (long)in_w * s.x_column;
#ifdef DEEP
    x += (long)in_d * s.x_depth;
#endif
    float sum[MS][NS][4];
    UNROLL
    for (int m = 0; m < MS; m++) UNROLL
    for (int n = 0; n < NS; n++) UNROLL
    for (int e = 0; e < 4; e++) sum[m][n][e] = 0;
#define FETCH(step, stage)                                                                         \
    do {                                                                                           \
        const pixel v = pixel_at(&s, first + (step)*PIXELS + lane % PIXELS, end);                  \
        const uint to = at + (stage)*ROOM;                                                         \
        UNROLL                                                                                     \
        for (int i = 0; i < PIXELS; i += A_DOWN) {                                                 \
            const int r = ra + i, d = nv_shuffle(v.dy, r), there = d >= 0 && a_there;              \
            nv_copy16_or_zero(to + r * A_ROW + ((ca ^ turn(r)) << 4), dy + d, dy, there);          \
        }                                                                                          \
        UNROLL                                                                                     \
        for (int i = 0; i < PIXELS; i += B_DOWN) {                                                 \
            const int r = rb + i, d = nv_shuffle(v.x, r), h = nv_shuffle(v.h, r) + in_h,           \
                      w = nv_shuffle(v.w, r) + in_w;                                               \
            const int slice = SLICE(r),                                                            \
                      there = slice && (uint)h < (uint)height && (uint)w < (uint)width && b_there; \
            nv_copy16_near_or_zero(to + PIXELS * A_ROW + r * B_ROW + ((cb ^ turn(r)) << 4), x + d, \
                                   x, there);                                                      \
        }                                                                                          \
    } while (0)
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < steps) FETCH(i, i);
        NV_COPIES_COMMIT();
    }
    int stage = 0, next = STAGES - 1;
    const int row_of_warp = warp % WARPS_M * WM, column_of_warp = warp / WARPS_M * WN;
    for (int i = 0; i < steps; i++) {
        NV_COPIES_WAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i + STAGES - 1 < steps) FETCH(i + STAGES - 1, next);
        NV_COPIES_COMMIT();
        multiply(sum, at + stage * ROOM, at + stage * ROOM + PIXELS * A_ROW, row_of_warp,
                 column_of_warp, lane);
        if (++stage == STAGES) stage = 0;
        if (++next == STAGES) next = 0;
    }
    const int g = lane >> 2, t = lane & 3;
    parts += s.parts + ((long)get_group_id(1) * s.groups + group) * K * all;
    UNROLL for (int m = 0; m < MS; m++) UNROLL for (int e = 0; e < 2; e++) {
#if HALVES
        const int k = m0 + row_of_warp + 16 * m + 8 * e + g;
        UNROLL for (int n = 0; n < NS; n++) {
            const int c = n0 + column_of_warp + 8 * n + 2 * t;
            if (k < K && c < all)
                *(global float2 *)(parts + (long)k * all + c) =
                    (float2)(sum[m][n][2 * e], sum[m][n][2 * e + 1]);
        }
#else
        const int k = m0 + row_of_warp + m / 2 * 32 + 4 * g + m % 2 * 2 + e;
        UNROLL for (int n = 0; n < NS; n += 4) UNROLL for (int h = 0; h < 2; h++) {
            const int c = n0 + column_of_warp + 8 * n + 8 * t + 4 * h, q = 2 * e + h;
            if (k < K && c < all)
                nv_store4(parts + (long)k * all + c, sum[m][n][q], sum[m][n + 1][q],
                          sum[m][n + 2][q], sum[m][n + 3][q]);
        }
#endif
    }
}
