/* What kernels of matrix products on the matrix units share (nv_matmul.cl, nv_mma_matmul.cl): jobs,
 * parts of sums, results.
 *
 *   TM, TN          the tile; WORKERS: items that hold its sums
 *   RESULT_ROWS     blocks of 16 rows that a warp has, RESULT_STEP rows from one to the next;
 *                   RESULT_COLUMNS of its columns
 *   Q_FROM, SWAP, PARTS, FOURS      as those kernels have them */
#define COLUMNS 2
#define PERMUTED (Q_FROM != COLUMNS) /* columns of Q, as `lying` says */

typedef struct {
    long p_at, q_at, p_step, q_step, p_z[4],
        q_z[4]; /* in elements of MEM; steps between rows, or between terms */
    int rows, columns, row_tiles, column_tiles, k_tiles, each, band, all, parts;
    long parts_at, counters_at;
} tiling;

/* Where columns must lie so that four neighbours meet in one lane's sums: 16 q + 8 j + 2 t + h <-
 * 16 q + 4 t + 2 j + h */
INLINE int lying(int c) {
    return PERMUTED ? (c & ~15) | (c & 2) << 2 | (c & 12) >> 1 | (c & 1) : c;
}

INLINE float of_lane_beside(float x) {
    float r;
    asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, -1;" : "=f"(r) : "f"(x));
    return r;
}
#define WARP_MEETS() asm volatile("bar.warp.sync -1;" ::: "memory")

/* Four neighbouring columns of 16, of one row, and which: they meet in a lane by themselves, or two
 * lanes exchange some. */
#define LANES_COLUMN(t) (PERMUTED ? 4 * (t) : ((t)&1) * 8 + ((t)&2) * 2)
INLINE void neighbours(float *v, const float *sum, int t) {
    const float left[2] = { sum[0], sum[1] }, right[2] = { sum[4], sum[5] };
    const bool odd = t & 1;
    UNROLL
    for (int k = 0; k < 2; k++) {
        v[k] = left[k];
        v[2 + k] = right[k];
        if (PERMUTED) continue;
        const float other = of_lane_beside(odd ? left[k] : right[k]);
        v[k] = odd ? other : left[k];
        v[2 + k] = odd ? right[k] : other;
    }
}

/* Which matrix of the batch, as gemm_common.cl has it: there are at most 65,535, and where there is
 * one nothing is divided, which a tile would wait for. */
#undef BATCH
#define BATCH(i)                                                                                   \
    long z0 = 0, z1 = 0, z2 = 0, z3 = 0;                                                           \
    if (s.batch > 1) {                                                                             \
        uint rest_ = (uint)(i);                                                                    \
        z3 = rest_ % (uint)s.z[3];                                                                 \
        rest_ /= (uint)s.z[3];                                                                     \
        z2 = rest_ % (uint)s.z[2];                                                                 \
        rest_ /= (uint)s.z[2];                                                                     \
        z1 = rest_ % (uint)s.z[1];                                                                 \
        z0 = rest_ / (uint)s.z[1];                                                                 \
    }

/* Tiles are done in bands of rows, so that those at work together share what the second cache
 * holds. */
typedef struct {
    int row, column, first, count, part, z, tile;
} job;
INLINE job job_of(int work, const tiling *w, int batch) {
    const int tiles = w->row_tiles * w->column_tiles, tile = work % tiles, rest = work / tiles;
    const int each = w->band * w->column_tiles, band = tile / each, in = tile - band * each;
    const int high = min(w->row_tiles - band * w->band, w->band), part = rest / batch,
              first = part * w->each;
    return (job){ (band * w->band + in % high) * TM, in / high * TN, first,
                  min(w->k_tiles - first, w->each),  part,           rest % batch,
                  rest % batch * tiles + tile };
}

#define START_OF(at, z) ((at) + z0 * (z)[0] + z1 * (z)[1] + z2 * (z)[2] + z3 * (z)[3])

#ifdef FOURS
#define PLACE_PARAMS , const ends e
#else
#define PLACE_PARAMS
#define Y_AT(m, n) ((m)*s.y.row + (n)*Y_COLUMN)
#endif

#ifdef PARTS
#define PARTS_PARAMS , global float *restrict parts, global uint *restrict counters
/* Leaves the sums of a part, [tile][part][fours][item][4], and counts it; in the last one the sums
 * become those of all parts, the same bits whoever comes last.  Counters end as they began. */
INLINE bool meets(float *sum, global float *parts, global uint *counter, int part, int all,
                  local uint *count, int item) {
    /* pieces of some parts at once: what registers are left for, and not so many that a second
     * group does not fit a unit */
    enum {
        FLOATS = TM * TN / WORKERS,
        SMALL = FLOATS > 32 ? 32 : FLOATS,
        PIECE = FLOATS > 64 ? 16 : SMALL,
        READ = FLOATS > 16 ? 64 : 32,
        AT_ONCE = FLOATS > 64 ? 1 : READ / PIECE
    };
    global float *x = parts + item * 4;
    UNROLL
    for (int e = 0; e < FLOATS; e += 4)
        nv_store4(x + (long)part * (WORKERS * FLOATS) + e * WORKERS, sum[e], sum[e + 1], sum[e + 2],
                  sum[e + 3]);
    nv_fence_device();
    nv_meet(1, WORKERS);
    if (!item) *count = nv_count(counter);
    nv_meet(1, WORKERS);
    if (*count != all - 1) return false;
    nv_fence_device();
    if (!item) *counter = 0;
    UNROLL
    for (int e = 0; e < FLOATS; e++) sum[e] = 0;
    UNROLL
    for (int from = 0; from < FLOATS; from += PIECE)
        for (int i = 0; i < all; i += AT_ONCE) {
            float v[AT_ONCE][PIECE];
            UNROLL
            for (int u = 0; u < AT_ONCE; u++) UNROLL
            for (int e = 0; e < PIECE; e += 4)
                nv_load4(v[u] + e,
                         x + (long)min(i + u, all - 1) * (WORKERS * FLOATS) + (from + e) * WORKERS);
            UNROLL
            for (int u = 0; u < AT_ONCE; u++)
                if (i + u < all) UNROLL
            for (int e = 0; e < PIECE; e++) sum[from + e] += v[u][e];
        }
    return true;
}
#else
#define PARTS_PARAMS
#endif

#ifdef FOURS
#define PLACE_ARGS , e
#else
#define PLACE_ARGS
#endif
#if !defined(FOURS) && !SWAP
#define LINES 1 /* results go through local memory, so that lanes store neighbours */
#define LINES_PARAMS , local float(*lines)[33]
#else
#define LINES 0
#define LINES_PARAMS
#endif

#define SUM_OF(m, o) (sum + (m) * (RESULT_COLUMNS / 2) + 8 * (o))

#ifdef FOURS
/* What is read with y is asked for AHEAD sixteens of columns before it is used: compilers keep
 * reads after the writes before them, and each would wait for memory on its own.  Places outside
 * of y read the last row or the first columns instead. */
#define OF_A_SIXTEEN (4 * (EXTRAS - MOVING + 2 * MOVING * RESULT_ROWS))
#if OF_A_SIXTEEN > 24
#define AHEAD 1
#elif OF_A_SIXTEEN > 12
#define AHEAD 2
#else
#define AHEAD 4
#endif
INLINE void for_fours(const shape s, const tiling w, int first, int column, int g, int t,
                      const float *sum, const ends e, int z1, int z2, int z3,
                      global RESULT *restrict y EXTRA_PARAMS) {
    spot at[RESULT_ROWS][2];
    UNROLL
    for (int m = 0; m < RESULT_ROWS; m++) UNROLL
    for (int i = 0; i < 2; i++)
        at[m][i] = spot_of(&e, z1, z2, z3, min(first + g + RESULT_STEP * m + 8 * i, w.rows - 1));
    UNROLL
    for (int from = 0; from < RESULT_COLUMNS / 16; from += AHEAD) {
        const int c0 = column + 16 * from + LANES_COLUMN(t);
        more others[AHEAD][RESULT_ROWS][2];
        UNROLL
        for (int o = 0; o < AHEAD; o++) {
            const int c = c0 + 16 * o < w.columns ? c0 + 16 * o : 0;
            more still;
            if (from + o >= RESULT_COLUMNS / 16) continue;
            more_of_channels(&e, c, &still EXTRA_ARGS);
            UNROLL
            for (int m = 0; m < RESULT_ROWS; m++) UNROLL
            for (int i = 0; i < 2; i++) {
                others[o][m][i] = still;
                more_of_pixel(&e, &at[m][i], c, &others[o][m][i] EXTRA_ARGS);
            }
        }
        UNROLL
        for (int o = 0; o < AHEAD; o++) UNROLL
        for (int m = 0; m < RESULT_ROWS; m++) UNROLL
        for (int i = 0; i < 2; i++) {
            const int c = c0 + 16 * o;
            float v[4];
            if (from + o >= RESULT_COLUMNS / 16) continue;
            neighbours(v, SUM_OF(m, from + o) + 2 * i, t);
            if (first + g + RESULT_STEP * m + 8 * i >= w.rows || c >= w.columns) continue;
            finish4(v, &others[o][m][i]);
            store4(&e, &at[m][i], c, v, y);
        }
    }
}
#endif

/* What a warp has of a tile: its rows begin at `first`, columns at `column`; sum: [block of
 * rows][eight of sixteen columns]. */
INLINE void results(const shape s, const tiling w, const job j, int first, int column, int lane,
                    const float *sum PLACE_PARAMS LINES_PARAMS,
                    global RESULT *restrict y EXTRA_PARAMS) {
    const int g = lane >> 2, t = lane & 3;
    BATCH((long)j.z);
#ifndef FOURS
    EXTRA_STARTS
    global RESULT *out = y + START(s.y);
#endif
#if LINES
    UNROLL
    for (int m = 0; m < RESULT_ROWS; m++) UNROLL
    for (int o = 0; o < RESULT_COLUMNS / 16; o += 2) {
        UNROLL
        for (int h = 0; h < 2; h++) UNROLL
        for (int i = 0; i < 2; i++) {
            float v[4];
            neighbours(v, SUM_OF(m, o + h) + 2 * i, t);
            UNROLL
            for (int k = 0; k < 4; k++) lines[g + 8 * i][16 * h + LANES_COLUMN(t) + k] = v[k];
        }
        WARP_MEETS();
        const long c = column + 16 * o + lane;
        _Pragma("unroll 8") for (int i = 0; i < 16; i++) {
            const long r = first + RESULT_STEP * m + i;
            if (r < w.rows && c < w.columns)
                STORE(out, Y_AT(r, c), FINISH(lines[i][lane], r, 0, c));
        }
        WARP_MEETS();
    }
#else
#ifdef FOURS
    for_fours(s, w, first, column, g, t, sum, e, (int)z1, (int)z2, (int)z3, y EXTRA_ARGS);
#else
    UNROLL
    for (int o = 0; o < RESULT_COLUMNS / 16; o++) {
        const int c = column + 16 * o + LANES_COLUMN(t);
        UNROLL
        for (int m = 0; m < RESULT_ROWS; m++) UNROLL
        for (int i = 0; i < 2; i++) {
            const int r = first + g + RESULT_STEP * m + 8 * i;
            float v[4];
            neighbours(v, SUM_OF(m, o) + 2 * i, t);
            if (r >= w.rows || c >= w.columns) continue;
            UNROLL
            for (int k = 0; k < 4; k++) {
                const long line = c + k, column_of_y = r;
                if (line < w.columns)
                    STORE(out, Y_AT(line, column_of_y), FINISH(v[k], line, 0, column_of_y));
            }
        }
    }
#endif
#endif
}
