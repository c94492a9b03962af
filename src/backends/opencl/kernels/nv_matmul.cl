/* A matrix product on wgmma: persistent groups of three warp groups, one of which fetches what the two others multiply.
 *
 * A tile has TM rows and TN columns; P is the operand of its rows, Q that of its columns.  Usually they are a and b of y = a b;
 * with SWAP they are b and a, so that a short side of y (few rows) is the short side of a tile.  In local memory both lie with
 * 128 bytes of the sum's terms to a row (K-major), the 16-byte chunks swizzled by row as wgmma wants them; elements of 16 bits
 * may lie the other way round as well (MN-major: 64 rows side by side, one term after the other).
 *
 *   TM, TN, STAGES  the tile, a multiple of 128 x 16, and how many k-tiles of it are on the way
 *   MEM, HALF       elements in local memory: float, or of 16 bits
 *   SPLIT           each float is high + low: low high + high low + high high, carried on in f32 after PROMOTE k-tiles, since the
 *                   units cut off what they add
 *   P_FROM, Q_FROM  IMAGES (kernels/nv_matmul_pack.cl) by one bulk copy a k-tile, or matrices by 16-byte copies whose terms
 *                   (ROWS) or rows (COLUMNS) are neighbours
 *   WGMMA(d, p, q)  the instruction
 *   PARTS           the terms are done in parts, by several groups: the last of them adds up all, in their order
 *   FOURS           y and what is read with it by fours (nvidia/epilogue.h), else one by one (gemm_common.cl): neighbouring
 *                   columns by neighbouring items, or with SWAP neighbouring rows of the tile */
#define IMAGES 0
#define ROWS 1
#define COLUMNS 2
#define BLOCKS (TM / 128)                       /* of 64 rows, of a consumer */
#define COPIES (P_FROM != IMAGES || Q_FROM != IMAGES)
#define BULKS (P_FROM == IMAGES || Q_FROM == IMAGES)
#define CHUNK (HALF ? 8 : 4)
#define TERMS (8 * CHUNK)                       /* of a k-tile: four wgmma */
#define P_BYTES (TM * 128)
#define Q_BYTES (TN * 128)
#define Q_ALL (Q_BYTES * (1 + SPLIT))           /* high and low */
#define REGISTERS (SPLIT || (P_FROM == COLUMNS && CHUNK == 4))     /* P gets to the units by registers */
#define LOWS (SPLIT && Q_FROM != IMAGES)        /* low parts of Q are made here */
#define PERMUTED (Q_FROM != COLUMNS)            /* columns of Q, as `lying` says */

typedef struct {
    long p_at, q_at, p_step, q_step, p_z[4], q_z[4];        /* in elements of MEM; steps between rows, or between terms */
    int rows, columns, row_tiles, column_tiles, k_tiles, each, band, all, parts;
    long parts_at, counters_at;
} tiling;

/* Where columns must lie so that four neighbours meet in one lane's sums: 16 q + 8 j + 2 t + h <- 16 q + 4 t + 2 j + h */
INLINE int lying(int c) { return PERMUTED ? (c & ~15) | (c & 2) << 2 | (c & 12) >> 1 | (c & 1) : c; }

INLINE float of_lane_beside(float x) {
    float r;
    asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, -1;" : "=f"(r) : "f"(x));
    return r;
}
#define WARP_MEETS() asm volatile("bar.warp.sync -1;" ::: "memory")

/* Four neighbouring columns of 16, of one row, and which: they meet in a lane by themselves, or two lanes exchange some. */
#define LANES_COLUMN(t) (PERMUTED ? 4 * (t) : ((t) & 1) * 8 + ((t) & 2) * 2)
INLINE void neighbours(float *v, const float *sum, int t) {
    const float left[2] = { sum[0], sum[1] }, right[2] = { sum[4], sum[5] };
    UNROLL for (int k = 0; k < 2; k++) {
        const float other = PERMUTED ? 0 : of_lane_beside(t & 1 ? left[k] : right[k]);
        v[k] = PERMUTED || !(t & 1) ? left[k] : other;
        v[2 + k] = PERMUTED || t & 1 ? right[k] : other;
    }
}

/* Tiles are done in bands of rows, so that those at work together share what the second cache holds. */
typedef struct { int row, column, first, count, part, z, tile; } job;
INLINE job job_of(int work, const tiling *w, int batch) {
    const int tiles = w->row_tiles * w->column_tiles, tile = work % tiles, rest = work / tiles;
    const int each = w->band * w->column_tiles, band = tile / each, in = tile - band * each;
    const int high = min(w->row_tiles - band * w->band, w->band), part = rest / batch, first = part * w->each;
    return (job){ (band * w->band + in % high) * TM, in / high * TN, first, min(w->k_tiles - first, w->each), part,
                  rest % batch, rest % batch * tiles + tile };
}

#define START_OF(at, z) ((at) + z0 * (z)[0] + z1 * (z)[1] + z2 * (z)[2] + z3 * (z)[3])

/* A k-tile by 128 items: chunk item % 8 of every 16th row.  left: rows that there are from this tile on. */
INLINE void copy_rows(uint to, global const MEM *from, long step, int rows, int left, int k, int terms, bool permuted, int item) {
    const int chunk = item & 7, r = item >> 3, lies = permuted ? lying(r) : r;
    const int most = k + chunk * CHUNK < terms ? left - r : 0;
    global const MEM *x = from + r * step + k + chunk * CHUNK;
    to += lies * 128 + ((chunk ^ (lies & 7)) << 4);
    UNROLL for (int i = 0; i < rows; i += 16) {
        nv_copy16(to + i * 128, i < most ? x : from, i < most ? 16 : 0);
        x += 16 * step;
    }
}

/* [block of 64 rows][term][row] */
INLINE void copy_columns(uint to, global const MEM *from, long step, int rows, int left, int k, int terms, int item) {
    const int across = rows / 8, chunk = item % across, first = item / across, down = 128 / across;
    const int most = chunk * 8 < left ? terms - k : 0;
    global const MEM *x = from + chunk * 8 + (k + first) * step;
    to += (chunk >> 3) * 8192;
    UNROLL for (int i = 0; i < 64; i += down) {
        const int term = i + first;
        nv_copy16(to + term * 128 + (((chunk & 7) ^ (term & 7)) << 4), term < most ? x : from, term < most ? 16 : 0);
        x += down * step;
    }
}

/* Floats of P for registers: [term][row], the chunks of a term moved so that the lanes of a warp meet all banks. */
#define MOVED(chunk, term) ((chunk) ^ ((term) & 3) << 1)
INLINE void copy_terms(uint to, global const MEM *from, long step, int left, int k, int terms, int item) {
    const int chunk = item % (TM / 4), first = item / (TM / 4), down = 128 / (TM / 4);
    const int most = chunk * 4 < left ? terms - k : 0;
    global const MEM *x = from + chunk * 4 + (k + first) * step;
    UNROLL for (int i = 0; i < TERMS; i += down) {
        const int term = i + first;
        nv_copy16(to + term * (TM * 4) + (MOVED(chunk, term) << 4), term < most ? x : from, term < most ? 16 : 0);
        x += down * step;
    }
}
/* Element of P as floats in local memory: K-major, or as copy_terms lays it. */
INLINE float element_of(uint tile, int row, int term) {
    const uint at = P_FROM == COLUMNS ? term * (TM * 4) + (MOVED(row >> 2, term) << 4) + (row & 3) * 4
                                      : row * 128 + (((term >> 2) ^ (row & 7)) << 4) + (term & 3) * 4;
    return as_float(nv_local_load(tile + at));
}

/* Of one operand: a bulk copy by one item, or copies by all. */
#define FETCH(FROM, to, from, i, step, tile, bytes, left, permuted) \
    if (FROM == ROWS) copy_rows(to, from, step, tile, left, k, terms, permuted, id); \
    else if (FROM == COLUMNS && CHUNK == 4) copy_terms(to, from, step, left, k, terms, id); \
    else if (FROM == COLUMNS) copy_columns(to, from, step, tile, left, k, terms, id); \
    else if (!id) nv_bulk_load(to, from + (long)(i) * ((bytes) / (int)sizeof(MEM)), bytes, full + 8 * stage)

/* K-major: 8 rows in 1024 bytes.  MN-major: 8 terms of 64 rows in 1024 bytes, the next 64 rows 8192 bytes on. */
INLINE ulong descriptor(uint at, bool turned) {
    return (ulong)((at >> 4) & 0x3fff) | (ulong)(turned ? 512 : 1) << 16 | (ulong)64 << 32 | (ulong)1 << 62;
}
#define NEXT(FROM) (FROM == COLUMNS ? 128 : 2)  /* of a descriptor, from one wgmma to the next */

/* The low parts of a tile of Q behind it, by both consumers, who must meet before they use them; what the units read of the tile
 * itself are the high parts. */
INLINE void make_low(uint tile, int item) {
    for (int at = item * 16; at < Q_BYTES; at += 256 * 16) {
        uint v[4];
        nv_local_load4(v, tile + at);
        UNROLL for (int e = 0; e < 4; e++) v[e] = nv_low(as_float(v[e]));
        asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};"
                     ::"r"(tile + Q_BYTES + at), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
    }
    nv_proxy_fence();
}

#ifdef FOURS
#define PLACE_PARAMS , const ends e
#else
#define PLACE_PARAMS
#define Y_AT(m, n) ((m) * s.y.row + (n) * Y_COLUMN)
#endif

#ifdef PARTS
#define PARTS_PARAMS , global float *restrict parts, global uint *restrict counters
/* Leaves the sums of a part, [tile][part][fours][consumer's item][4], and counts it; in the last one the sums become those of all
 * parts, the same bits whoever comes last.  Counters end as they began. */
INLINE bool meets(float *sum, global float *parts, global uint *counter, int part, int all, local uint *count, int item) {
    /* pieces of some parts at once: what registers are left for, and not so many that a second group does not fit a unit */
    enum { FLOATS = BLOCKS * TN / 2, PIECE = FLOATS > 64 ? 16 : FLOATS > 32 ? 32 : FLOATS,
           AT_ONCE = FLOATS > 64 ? 1 : (FLOATS > 16 ? 64 : 32) / PIECE };
    global float *x = parts + item * 4;
    UNROLL for (int e = 0; e < FLOATS; e += 4)
        nv_store4(x + (long)part * (256 * FLOATS) + e * 256, sum[e], sum[e + 1], sum[e + 2], sum[e + 3]);
    nv_fence_device();
    nv_meet(1, 256);
    if (!item) *count = nv_count(counter);
    nv_meet(1, 256);
    if (*count != all - 1) return false;
    nv_fence_device();
    if (!item) *counter = 0;
    UNROLL for (int e = 0; e < FLOATS; e++) sum[e] = 0;
    UNROLL for (int from = 0; from < FLOATS; from += PIECE)
        for (int i = 0; i < all; i += AT_ONCE) {
            float v[AT_ONCE][PIECE];
            UNROLL for (int u = 0; u < AT_ONCE; u++) UNROLL for (int e = 0; e < PIECE; e += 4)
                nv_load4(v[u] + e, x + (long)min(i + u, all - 1) * (256 * FLOATS) + (from + e) * 256);
            UNROLL for (int u = 0; u < AT_ONCE; u++)
                if (i + u < all) UNROLL for (int e = 0; e < PIECE; e++) sum[from + e] += v[u][e];
        }
    return true;
}
#else
#define PARTS_PARAMS
#endif

kernel GROUP(384)
void product(const shape s, const tiling w PLACE_PARAMS, global const MEM *restrict p, global const MEM *restrict q,
             global RESULT *restrict y PARTS_PARAMS EXTRA_PARAMS) {
    local uchar p_tiles[STAGES * P_BYTES] __attribute__((aligned(1024)));
    local uchar q_tiles[STAGES * Q_ALL] __attribute__((aligned(1024)));
    local ulong barriers[2 * STAGES];
    local uint count;
#if !defined(FOURS) && !SWAP
    local float lines[8][16][33];               /* 16 rows and 32 columns of each warp */
#endif
    const int id = get_local_id(0), team = id >> 7, batch = (int)s.batch, terms = (int)s.K;
    const uint pt = LOCAL_AT(p_tiles), qt = LOCAL_AT(q_tiles), full = LOCAL_AT(barriers), empty = full + 8 * STAGES;
    if (!id) {
        for (int i = 0; i < STAGES; i++) {
            nv_barrier_init(full + 8 * i, (COPIES ? 128 : 0) + BULKS);
            nv_barrier_init(empty + 8 * i, 2);
        }
        nv_barriers_made();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int stage = 0;
    uint phase = 0;
    if (!team) {
        for (int work = get_group_id(0); work < w.all && (COPIES || !id); work += get_num_groups(0)) {
            const job j = job_of(work, &w, batch);
            BATCH((long)j.z);
            global const MEM *pa = p + START_OF(w.p_at, w.p_z), *qa = q + START_OF(w.q_at, w.q_z);
            if (P_FROM == IMAGES) pa += ((long)(j.row / TM) * w.k_tiles + j.first) * (P_BYTES / (int)sizeof(MEM));
            else pa += j.row * (P_FROM == COLUMNS ? 1 : w.p_step);
            if (Q_FROM == IMAGES) qa += ((long)(j.column / TN) * w.k_tiles + j.first) * (Q_ALL / (int)sizeof(MEM));
            else qa += j.column * (Q_FROM == COLUMNS ? 1 : w.q_step);
            for (int i = 0; i < j.count; i++) {
                const int k = (j.first + i) * TERMS;
                nv_barrier_wait(empty + 8 * stage, phase ^ 1);
                if (BULKS && !id)
                    nv_barrier_expect(full + 8 * stage, (P_FROM == IMAGES ? P_BYTES : 0) + (Q_FROM == IMAGES ? Q_ALL : 0));
                FETCH(P_FROM, pt + stage * P_BYTES, pa, i, w.p_step, TM, P_BYTES, w.rows - j.row, false);
                FETCH(Q_FROM, qt + stage * Q_ALL, qa, i, w.q_step, TN, Q_ALL, w.columns - j.column, PERMUTED);
                if (COPIES) nv_barrier_arrive_copies(full + 8 * stage);
                if (++stage == STAGES) stage = 0, phase ^= 1;
            }
        }
        if (COPIES) asm volatile("cp.async.wait_all;" ::: "memory");
        return;
    }
    const int lane = id & 31, warp = (id >> 5) - 4, g = lane >> 2, t = lane & 3, mine = (team - 1) * BLOCKS * 64;
    const bool leads = !(id & 127);
    for (int work = get_group_id(0); work < w.all; work += get_num_groups(0)) {
        const job j = job_of(work, &w, batch);
        float sum[BLOCKS][TN / 2];
        UNROLL for (int m = 0; m < BLOCKS; m++) UNROLL for (int e = 0; e < TN / 2; e++) sum[m][e] = 0;
#if REGISTERS
#if SPLIT
        float total[BLOCKS][TN / 2];
        UNROLL for (int m = 0; m < BLOCKS; m++) UNROLL for (int e = 0; e < TN / 2; e++) total[m][e] = 0;
#define SUM total
#else
#define SUM sum
#endif
        const int line = mine + (warp & 3) * 16 + g;
        if (LOWS) {
            nv_barrier_wait(full + 8 * stage, phase);
            make_low(qt + stage * Q_ALL, id - 128);
        }
        for (int i = 0; i < j.count; i++) {
            if (LOWS) nv_meet(1, 256);
            else nv_barrier_wait(full + 8 * stage, phase);
            if (COPIES) nv_proxy_fence();
            const ulong high_q = descriptor(qt + stage * Q_ALL, false), low_q = high_q + (Q_BYTES >> 4);
            uint high[2][4], low[2][4];             /* while one step's are being read, the next ones are made */
            UNROLL for (int k = 0; k < 4; k++) UNROLL for (int m = 0; m < BLOCKS; m++) {
                const int step = k * BLOCKS + m, now = step & 1;
                if (step >= 2) NV_WGMMA_WAIT(1);
                UNROLL for (int e = 0; e < 4; e++) {
                    const float x = element_of(pt + stage * P_BYTES, line + m * 64 + (e & 1) * 8, 8 * k + (e >> 1) * 4 + t);
                    high[now][e] = SPLIT ? nv_high(x) : x == x ? nv_to_tf32(x) : as_uint(x), low[now][e] = nv_low(x);
                }
                NV_WGMMA_FENCE();
                if (SPLIT) {
                    WGMMA(sum[m], low[now], high_q + 2 * k);
                    WGMMA(sum[m], high[now], low_q + 2 * k);
                }
                WGMMA(sum[m], high[now], high_q + 2 * k);
                NV_WGMMA_COMMIT();
            }
            if (LOWS && i + 1 < j.count) {          /* while the units work */
                const int next = stage + 1 == STAGES ? 0 : stage + 1;
                nv_barrier_wait(full + 8 * next, next ? phase : phase ^ 1);
                make_low(qt + next * Q_ALL, id - 128);
            }
            NV_WGMMA_WAIT(0);
            if (leads) nv_barrier_arrive(empty + 8 * stage);
#if SPLIT
            if (i % PROMOTE == PROMOTE - 1 || i == j.count - 1)
                UNROLL for (int m = 0; m < BLOCKS; m++) UNROLL for (int e = 0; e < TN / 2; e++)
                    total[m][e] += sum[m][e], sum[m][e] = 0;
#endif
            if (++stage == STAGES) stage = 0, phase ^= 1;
        }
#else
        int before = 0;
        for (int i = 0; i < j.count; i++) {
            nv_barrier_wait(full + 8 * stage, phase);
            if (COPIES) nv_proxy_fence();
            const ulong dp = descriptor(pt + stage * P_BYTES + mine * 128, P_FROM == COLUMNS),
                dq = descriptor(qt + stage * Q_ALL, Q_FROM == COLUMNS);
            NV_WGMMA_FENCE();
            UNROLL for (int k = 0; k < 4; k++) UNROLL for (int m = 0; m < BLOCKS; m++)
                WGMMA(sum[m], dp + NEXT(P_FROM) * k + m * 512, dq + NEXT(Q_FROM) * k);
            NV_WGMMA_COMMIT();
            NV_WGMMA_WAIT(1);
            if (leads && i) nv_barrier_arrive(empty + 8 * before);
            before = stage;
            if (++stage == STAGES) stage = 0, phase ^= 1;
        }
        NV_WGMMA_WAIT(0);
        if (leads) nv_barrier_arrive(empty + 8 * before);
#define SUM sum
#endif
#ifdef PARTS
        global float *of_tile = parts + w.parts_at + (long)j.tile * w.parts * (TM * TN);
        if (!meets(SUM[0], of_tile, counters + w.counters_at + j.tile, j.part, w.parts, &count, id - 128)) continue;
#endif
        const int row = j.row + mine + (warp & 3) * 16 + g;
        BATCH((long)j.z);
#ifdef FOURS
        spot at[BLOCKS][2];
        UNROLL for (int m = 0; m < BLOCKS; m++) UNROLL for (int i = 0; i < 2; i++)
            at[m][i] = spot_of(&e, (int)z1, (int)z2, (int)z3, row + 64 * m + 8 * i);
#else
        EXTRA_STARTS
        global RESULT *out = y + START(s.y);
#endif
#if !defined(FOURS) && !SWAP
        const int first = j.row + mine + (warp & 3) * 16;
        UNROLL for (int m = 0; m < BLOCKS; m++) UNROLL for (int o = 0; o < TN / 16; o += 2) {
            UNROLL for (int h = 0; h < 2; h++) UNROLL for (int i = 0; i < 2; i++) {
                float v[4];
                neighbours(v, SUM[m] + 8 * (o + h) + 2 * i, t);
                UNROLL for (int k = 0; k < 4; k++) lines[warp][g + 8 * i][16 * h + LANES_COLUMN(t) + k] = v[k];
            }
            WARP_MEETS();
            const long c = j.column + 16 * o + lane;
            _Pragma("unroll 8") for (int i = 0; i < 16; i++) {
                const long r = first + 64 * m + i;
                if (r < w.rows && c < w.columns) STORE(out, Y_AT(r, c), FINISH(lines[warp][i][lane], r, 0, c));
            }
            WARP_MEETS();
        }
#else
        UNROLL for (int o = 0; o < TN / 16; o++) {
            const int c = j.column + 16 * o + LANES_COLUMN(t);
#ifdef FOURS
            more others;
            if (c < w.columns) more_of_channels(&e, c, &others EXTRA_ARGS);
#endif
            UNROLL for (int m = 0; m < BLOCKS; m++) UNROLL for (int i = 0; i < 2; i++) {
                const int r = row + 64 * m + 8 * i;
                float v[4];
                neighbours(v, SUM[m] + 8 * o + 2 * i, t);
                if (r >= w.rows || c >= w.columns) continue;
#ifdef FOURS
                more_of_pixel(&e, &at[m][i], c, &others EXTRA_ARGS);
                finish4(v, &others);
                store4(&e, &at[m][i], c, v, y);
#else
                UNROLL for (int k = 0; k < 4; k++) {
                    const long line = c + k, column = r;
                    if (line < w.columns) STORE(out, Y_AT(line, column), FINISH(v[k], line, 0, column));
                }
#endif
            }
        }
#endif
    }
}
