/* A matrix product on mma.sync (nv_mma_tiles.cl), for sm_80 and newer: a tile by each group of
 * items, whose operands come by asynchronous copies, STAGES - 1 steps ahead.
 *
 * Arguments, jobs and images are those of nv_matmul.cl.  A step is ROW bytes of each row of both
 * operands: half of a k-tile or all of it; from IMAGES, whose chunks were swizzled for rows of 128
 * bytes, or from matrices whose terms are neighbours (ROWS).
 *
 *   TM, TN, ITEMS, STAGES, MEM, HALF, P_FROM, Q_FROM, SWAP, PARTS, FOURS      as there;  A_ROW =
 *                                                                             B_ROW = ROW */
#define IMAGES 0
#define CHUNK (HALF ? 8 : 4)
#define TERMS (8 * CHUNK)                       /* of a k-tile */
#define ROW A_ROW
#define CHUNKS (ROW / 16)
#define SUBS (128 / ROW)                        /* steps of a k-tile */
#define DOWN (ITEMS / CHUNKS)                   /* rows between two that an item copies */
#define P_BYTES (TM * ROW)
#define ROOM ((TM + TN) * ROW)

/* One operand's rows of a step.  from: of ROWS the tile's first row, of IMAGES the k-tile's image;
 * left: rows that there are. */
INLINE void copy_step(int kind, uint to, global const MEM *from, long step, int rows, int left,
                      int k, int terms, int sub, bool permuted) {
    const int chunk = get_local_id(0) % CHUNKS;
    UNROLL for (int i = 0; i < rows; i += DOWN) {
        const int r = i + get_local_id(0) / CHUNKS;
        if (rows % DOWN && r >= rows) break;
        if (kind == IMAGES) {
            const int c = sub * CHUNKS + chunk;
            nv_copy16(to + r * ROW + ((chunk ^ turn_of(r, ROW)) << 4),
                      from + (r * 8 + (c ^ (r & 7))) * CHUNK, 16);
        } else {
            const int lies = permuted ? lying(r) : r, first = k + chunk * CHUNK,
                      there = r < left && first < terms;
            const uint place = to + lies * ROW + ((chunk ^ turn_of(lies, ROW)) << 4);
            nv_copy16_or_zero(place, from + r * step + first, from, there);
        }
    }
}

kernel GROUP(ITEMS) void product(const shape s, const tiling w PLACE_PARAMS,
                                 global const MEM *restrict p, global const MEM *restrict q,
                                 global RESULT *restrict y PARTS_PARAMS EXTRA_PARAMS) {
    local uchar tiles[STAGES * ROOM] __attribute__((aligned(1024)));
    const int item = get_local_id(0), lane = item & 31, warp = item >> 5, terms = (int)s.K;
    const job j = job_of(get_group_id(0), &w, (int)s.batch);
    const int n = j.count * SUBS;
    const uint at = LOCAL_AT(tiles);
    const seat me = seat_of(warp, lane);
    {
        BATCH((long)j.z);
        p += START_OF(w.p_at, w.p_z);
        q += START_OF(w.q_at, w.q_z);
    }
    if (P_FROM == IMAGES) p += ((long)(j.row / TM) * w.k_tiles + j.first) * (TM * TERMS);
    else p += j.row * w.p_step;
    if (Q_FROM == IMAGES) q += ((long)(j.column / TN) * w.k_tiles + j.first) * (TN * TERMS);
    else q += j.column * w.q_step;
    float sum[MS][8 * NS];
    UNROLL for (int m = 0; m < MS; m++) UNROLL for (int e = 0; e < 8 * NS; e++) sum[m][e] = 0;
#define FETCH(i, stage)                                                                            \
    do {                                                                                           \
        const int tile = (i) / SUBS, sub = (i) % SUBS, k = j.first * TERMS + (i) * (TERMS / SUBS); \
        copy_step(P_FROM, at + (stage)*ROOM, P_FROM == IMAGES ? p + (long)tile * (TM * TERMS) : p, \
                  w.p_step, TM, w.rows - j.row, k, terms, sub, false);                             \
        copy_step(Q_FROM, at + (stage)*ROOM + P_BYTES,                                             \
                  Q_FROM == IMAGES ? q + (long)tile * (TN * TERMS) : q, w.q_step, TN,              \
                  w.columns - j.column, k, terms, sub, true);                                      \
    } while (0)
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < n) FETCH(i, i);
        NV_COPIES_COMMIT();
    }
    int stage = 0, next = STAGES - 1;
    for (int i = 0; i < n; i++) {
        NV_COPIES_WAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i + STAGES - 1 < n) FETCH(i + STAGES - 1, next);
        NV_COPIES_COMMIT();
        multiply(sum, at + stage * ROOM, at + stage * ROOM + P_BYTES, me);
        if (++stage == STAGES) stage = 0;
        if (++next == STAGES) next = 0;
    }
    /* local memory is used anew below: all copies and reads of tiles must be over */
    NV_COPIES_WAIT(0);
    barrier(CLK_LOCAL_MEM_FENCE);
#ifdef PARTS
    global float *of_tile = parts + w.parts_at + (long)j.tile * w.parts * (TM * TN);
    if (!meets(sum[0], of_tile, counters + w.counters_at + j.tile, j.part, w.parts,
               (local uint *)tiles, item))
        return;
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
#if LINES
    local float (*lines)[33] = (local float (*)[33])tiles + 16 * warp;
#define LINES_ARGS , lines
#else
#define LINES_ARGS
#endif
    results(s, w, j, j.row + warp % WARPS_M * WM, j.column + warp / WARPS_M * WN, lane,
            sum[0] PLACE_ARGS LINES_ARGS, y EXTRA_ARGS);
}
