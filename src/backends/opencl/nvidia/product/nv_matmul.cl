/* A matrix product on wgmma: persistent groups of three warp groups, one of which fetches what the
 * two others multiply: one tile together, or each its own (OWN), so that the units work for one
 * while the other one finishes its results.
 *
 * A tile has TM rows and TN columns; P is the operand of its rows, Q that of its columns.  Usually
 * they are a and b of y = a b; with SWAP they are b and a, so that a short side of y (few rows) is
 * the short side of a tile.  In local memory both lie with 128 bytes of the sum's terms to a row
 * (K-major), the 16-byte chunks swizzled by row as wgmma wants them; elements of 16 bits may lie
 * the other way round as well (MN-major: 64 rows side by side, one term after the other).
 *
 *   TM, TN, STAGES  the tile, a multiple of 128 x 16, and how many k-tiles of it are on the way
 *   MEM, HALF       elements in local memory: float, or of 16 bits
 *   SPLIT           each float is high + low: low high + high low + high high, carried on in f32
 *                   after PROMOTE k-tiles, since the units cut off what they add
 *   P_FROM, Q_FROM  IMAGES (nv_matmul_pack.cl) by one bulk copy a k-tile, or matrices by
 *                   16-byte copies whose terms (ROWS) or rows (COLUMNS) are neighbours
 *   WGMMA(d, p, q)  the instruction
 *   PARTS           the terms are done in parts, by several groups: the last of them adds up all,
 *                   in their order
 *   OWN             each consumer has every second job
 *   ALONE           a compute unit has one group: consumers take registers of the one that fetches
 *   FOURS           y and what is read with it by fours (nvidia/unit/epilogue.h), else one by one
 *                   (gemm_common.cl): neighbouring columns by neighbouring items, or with SWAP
 *                   neighbouring rows of the tile */
#define IMAGES 0
#define ROWS 1
#define BLOCKS (OWN ? TM / 64 : TM / 128)       /* of 64 rows, of a consumer */
#define COPIES (P_FROM != IMAGES || Q_FROM != IMAGES)
#define BULKS (P_FROM == IMAGES || Q_FROM == IMAGES)
#define CHUNK (HALF ? 8 : 4)
#define TERMS (8 * CHUNK)                       /* of a k-tile: four wgmma */
#define P_BYTES (TM * 128)
#define Q_BYTES (TN * 128)
#define Q_ALL (Q_BYTES * (1 + SPLIT))           /* high and low */
#define REGISTERS                                                                                  \
    (SPLIT || (P_FROM == COLUMNS && CHUNK == 4)) /* P gets to the units by registers */
#define LOWS (SPLIT && Q_FROM != IMAGES)        /* low parts of Q are made here */

/* A k-tile by 128 items: chunk item % 8 of every 16th row.  left: rows that there are from this
 * tile on. */
INLINE void copy_rows(uint to, global const MEM *from, long step, int rows, int left, int k,
                      int terms, bool permuted, int item) {
    const int chunk = item & 7, r = item >> 3, lies = permuted ? lying(r) : r;
    const int most = k + chunk * CHUNK < terms ? left - r : 0;
    global const MEM *x = from + r * step + k + chunk * CHUNK;
    to += lies * 128 + ((chunk ^ (lies & 7)) << 4);
    UNROLL for (int i = 0; i < rows; i += 16) {
        nv_copy16_or_zero(to + i * 128, x, from, i < most);
        x += 16 * step;
    }
}

/* [block of 64 rows][term][row] */
INLINE void copy_columns(uint to, global const MEM *from, long step, int rows, int left, int k,
                         int terms, int item) {
    const int across = rows / 8, chunk = item % across, first = item / across, down = 128 / across;
    const int most = chunk * 8 < left ? terms - k : 0;
    global const MEM *x = from + chunk * 8 + (k + first) * step;
    to += (chunk >> 3) * 8192;
    UNROLL for (int i = 0; i < 64; i += down) {
        const int term = i + first;
        nv_copy16_or_zero(to + term * 128 + (((chunk & 7) ^ (term & 7)) << 4), x, from,
                          term < most);
        x += down * step;
    }
}

/* Floats of P for registers: [term][row], the chunks of a term moved so that the lanes of a warp
 * meet all banks. */
#define MOVED(chunk, term) ((chunk) ^ ((term) & 3) << 1)
INLINE void copy_terms(uint to, global const MEM *from, long step, int left, int k, int terms,
                       int item) {
    const int chunk = item % (TM / 4), first = item / (TM / 4), down = 128 / (TM / 4);
    const int most = chunk * 4 < left ? terms - k : 0;
    global const MEM *x = from + chunk * 4 + (k + first) * step;
    UNROLL for (int i = 0; i < TERMS; i += down) {
        const int term = i + first;
        nv_copy16_or_zero(to + term * (TM * 4) + (MOVED(chunk, term) << 4), x, from, term < most);
        x += down * step;
    }
}
/* As a unit reads it: the high part, or rounded to TF32, which would change a NaN. */
INLINE uint high_of(float x) {
    if (SPLIT) return nv_high(x);
    return x == x ? nv_to_tf32(x) : as_uint(x);
}
/* Element of P as floats in local memory: K-major, or as copy_terms lays it. */
INLINE float element_of(uint tile, int row, int term) {
    const uint at = P_FROM == COLUMNS
                        ? term * (TM * 4) + (MOVED(row >> 2, term) << 4) + (row & 3) * 4
                        : row * 128 + (((term >> 2) ^ (row & 7)) << 4) + (term & 3) * 4;
    return as_float(nv_local_load(tile + at));
}

/* Of one operand: a bulk copy by one item, or copies by all. */
#define FETCH(FROM, to, from, i, step, tile, bytes, left, permuted)                                \
    if (FROM == ROWS)                                                                              \
        copy_rows(to, from, step, tile, left, k, terms, permuted, id);                             \
    else if (FROM == COLUMNS && CHUNK == 4)                                                        \
        copy_terms(to, from, step, left, k, terms, id);                                            \
    else if (FROM == COLUMNS)                                                                      \
        copy_columns(to, from, step, tile, left, k, terms, id);                                    \
    else if (!id)                                                                                  \
    nv_bulk_load(to, from + (long)(i) * ((bytes) / (int)sizeof(MEM)), bytes, full + 8 * stage)

/* K-major: 8 rows in 1024 bytes.  MN-major: 8 terms of 64 rows in 1024 bytes, the next 64 rows 8192
 * bytes on. */
INLINE ulong descriptor(uint at, bool transposed) {
    return (ulong)((at >> 4) & 0x3fff) | (ulong)(transposed ? 512 : 1) << 16 | (ulong)64 << 32 |
           (ulong)1 << 62;
}
#define NEXT(FROM) (FROM == COLUMNS ? 128 : 2)  /* of a descriptor, from one wgmma to the next */

/* The low parts of a tile of Q after it, by both consumers, who must meet before they use them;
 * what the units read of the tile itself are the high parts. */
INLINE void make_low(uint tile, int item) {
    for (int at = item * 16; at < Q_BYTES; at += 256 * 16) {
        uint v[4];
        nv_local_load4(v, tile + at);
        UNROLL for (int e = 0; e < 4; e++) v[e] = nv_low(as_float(v[e]));
        asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(tile + Q_BYTES + at), "r"(v[0]),
                     "r"(v[1]), "r"(v[2]), "r"(v[3])
                     : "memory");
    }
    nv_proxy_fence();
}

/* Registers of an item that fetches and of one that multiplies. */
#if ALONE
#define LESS() asm volatile("//@alone\n"); NV_REGISTERS_LESS(56)
#define MORE() NV_REGISTERS_MORE(224)
#else
#define LESS()
#define MORE()
#endif

/* With OWN the consumers multiply in turns: a barrier tells parity only, so a consumer must not
 * wait for a stage's tile before the other one has seen the tile that was there before. */
#if OWN
enum { FIRST_TURN = 2, SECOND_TURN = 3 };
#define TURN_BEGINS(work, groups, team)                                                            \
    if ((work) >= (groups)) nv_meet((team) == 1 ? FIRST_TURN : SECOND_TURN, 256)
#define TURN_ENDS(work, groups, team, all)                                                         \
    if ((work) + (groups) < (all)) nv_come((team) == 1 ? SECOND_TURN : FIRST_TURN, 256)
#else
#define TURN_BEGINS(work, groups, team)
#define TURN_ENDS(work, groups, team, all)
#endif
/* What the other consumer's job takes of the stages. */
INLINE void skip_tiles(int count, int *stage, uint *phase) {
    const int to = *stage + count;
    *phase ^= (uint)(to / STAGES) & 1;
    *stage = to % STAGES;
}

kernel GROUP(384) void product(const shape s, const tiling w PLACE_PARAMS,
                               global const MEM *restrict p, global const MEM *restrict q,
                               global RESULT *restrict y PARTS_PARAMS EXTRA_PARAMS) {
    local uchar p_tiles[STAGES * P_BYTES] __attribute__((aligned(1024)));
    local uchar q_tiles[STAGES * Q_ALL] __attribute__((aligned(1024)));
    local ulong barriers[2 * STAGES];
    local uint count;
#if LINES
    local float lines[8][16][33];               /* 16 rows and 32 columns of each warp */
#define LINES_ARGS , lines[warp]
#else
#define LINES_ARGS
#endif
    const int id = get_local_id(0), team = id >> 7, batch = (int)s.batch, terms = (int)s.K;
    const uint pt = LOCAL_AT(p_tiles), qt = LOCAL_AT(q_tiles), full = LOCAL_AT(barriers),
               empty = full + 8 * STAGES;
    if (!id) {
        for (int i = 0; i < STAGES; i++) {
            nv_barrier_init(full + 8 * i, (COPIES ? 128 : 0) + BULKS);
            nv_barrier_init(empty + 8 * i, OWN ? 1 : 2);
        }
        nv_barriers_made();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int stage = 0;
    uint phase = 0;
    if (!team) {
        LESS();
        for (int work = get_group_id(0); work < w.all && (COPIES || !id);
             work += get_num_groups(0)) {
            const job j = job_of(work, &w, batch);
            BATCH((long)j.z);
            global const MEM *pa = p + START_OF(w.p_at, w.p_z), *qa = q + START_OF(w.q_at, w.q_z);
            if (P_FROM == IMAGES)
                pa += ((long)(j.row / TM) * w.k_tiles + j.first) * (P_BYTES / (int)sizeof(MEM));
            else pa += j.row * (P_FROM == COLUMNS ? 1 : w.p_step);
            if (Q_FROM == IMAGES)
                qa += ((long)(j.column / TN) * w.k_tiles + j.first) * (Q_ALL / (int)sizeof(MEM));
            else qa += j.column * (Q_FROM == COLUMNS ? 1 : w.q_step);
            for (int i = 0; i < j.count; i++) {
                const int k = (j.first + i) * TERMS;
                nv_barrier_wait(empty + 8 * stage, phase ^ 1);
                if (BULKS && !id)
                    nv_barrier_expect(full + 8 * stage, (P_FROM == IMAGES ? P_BYTES : 0) +
                                                            (Q_FROM == IMAGES ? Q_ALL : 0));
                FETCH(P_FROM, pt + stage * P_BYTES, pa, i, w.p_step, TM, P_BYTES, w.rows - j.row,
                      false);
                FETCH(Q_FROM, qt + stage * Q_ALL, qa, i, w.q_step, TN, Q_ALL, w.columns - j.column,
                      PERMUTED);
                if (COPIES) nv_barrier_arrive_copies(full + 8 * stage);
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
        }
        if (COPIES) asm volatile("cp.async.wait_all;" ::: "memory");
        return;
    }
    MORE();
    const int lane = id & 31, warp = (id >> 5) - 4, g = lane >> 2, t = lane & 3,
              mine = OWN ? 0 : (team - 1) * BLOCKS * 64, groups = get_num_groups(0);
    const bool leads = !(id & 127);
    int work = get_group_id(0);
    if (OWN && team == 2) {
        work += groups;
        skip_tiles(w.k_tiles, &stage, &phase);
    }
    for (; work < w.all; work += OWN ? 2 * groups : groups) {
        TURN_BEGINS(work, groups, team);
        const job j = job_of(work, &w, batch);
        float sum[BLOCKS][TN / 2];
        UNROLL
        for (int m = 0; m < BLOCKS; m++) UNROLL
        for (int e = 0; e < TN / 2; e++) sum[m][e] = 0;
#if REGISTERS
#if SPLIT
        float total[BLOCKS][TN / 2];
        UNROLL
        for (int m = 0; m < BLOCKS; m++) UNROLL
        for (int e = 0; e < TN / 2; e++) total[m][e] = 0;
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
            const ulong high_q = descriptor(qt + stage * Q_ALL, false),
                        low_q = high_q + (Q_BYTES >> 4);
            uint high[2][4],
                low[2][4]; /* while one step's are being read, the next ones are made */
            UNROLL for (int k = 0; k < 4; k++) UNROLL for (int m = 0; m < BLOCKS; m++) {
                const int step = k * BLOCKS + m, now = step & 1;
                if (step >= 2) NV_WGMMA_WAIT(1);
                UNROLL for (int e = 0; e < 4; e++) {
                    const float x = element_of(pt + stage * P_BYTES, line + m * 64 + (e & 1) * 8,
                                               8 * k + (e >> 1) * 4 + t);
                    high[now][e] = high_of(x);
                    low[now][e] = nv_low(x);
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
                UNROLL for (int m = 0; m < BLOCKS; m++) UNROLL for (int e = 0; e < TN / 2; e++) {
                    total[m][e] += sum[m][e];
                    sum[m][e] = 0;
                }
#endif
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
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
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
        }
        NV_WGMMA_WAIT(0);
        if (leads) nv_barrier_arrive(empty + 8 * before);
        TURN_ENDS(work, groups, team, w.all);
        if (OWN) skip_tiles(w.k_tiles, &stage, &phase);
#define SUM sum
#endif
#ifdef PARTS
        global float *of_tile = parts + w.parts_at + (long)j.tile * w.parts * (TM * TN);
        if (!meets(SUM[0], of_tile, counters + w.counters_at + j.tile, j.part, w.parts, &count,
                   id - 128))
            continue;
#endif
        results(s, w, j, j.row + mine + (warp & 3) * 16, j.column, lane,
                (const float *)SUM PLACE_ARGS LINES_ARGS, y EXTRA_ARGS);
    }
}
