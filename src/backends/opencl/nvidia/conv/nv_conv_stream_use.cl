/* The end of nv_conv_stream.cl: what the consumers do with the sums of a tile
 * (nv_conv_stream_product.cl made them), and the kernel. */

/* The four neighbouring channels 16 q + 4 t of row g + 8 i: that is how weights are packed. */
#define FOUR(sums, q, i) \
    { (sums)[8 * (q) + 2 * (i)], (sums)[8 * (q) + 2 * (i) + 1], \
      (sums)[8 * (q) + 4 + 2 * (i)], (sums)[8 * (q) + 5 + 2 * (i)] }

#if KEEPS
#define KEPT_PARAM , moments_kept *kept
#define KEPT_ARG , &kept
#else
#define KEPT_PARAM
#define KEPT_ARG
#endif
#if MOMENTS
#define MOMENTS_PARAMS , local float *own_moments, int consumer, global float *moments KEPT_PARAM
#define MOMENTS_ARGS , of_rows + consumer * MOMENT_FLOATS, consumer, moments KEPT_ARG
#else
#define MOMENTS_PARAMS
#define MOMENTS_ARGS
#endif

#if FORESEEN
/* What this warp's rows of a tile will be finished with, on its way to the second cache while they
 * are multiplied: loads into registers, which are few, then wait for that cache only. */
INLINE void foresee(const sizes *s, const ends *e, int tile, int row0, int warp,
                    int lane EXTRA_PARAMS) {
    const int first = tile % s->across * BN, rest = s->rows - first;
    if (lane >= 16) return;
    UNROLL for (int m = 0; m < ROWS; m++) {
        spot at;
        if (find(s, e, row0 + m * 64 + warp * 16 + lane, &at))
            foresee_row(e, &at, first, rest < BN ? rest : BN EXTRA_ARGS);
    }
}
#endif

/* Each warp has 16 rows of each block for itself.  Extras of AHEAD groups of channels are read
 * before the first of them is stored: what is stored would hold back what is read after it.
 * own: this consumer's rows in local memory, if results go so. */
INLINE void finish_tile(const sizes *s, const ends *e, float sums[ROWS][BN / 2], global RESULT *y,
                        local RESULT *own, int tile, int row0, int warp,
                        int lane MOMENTS_PARAMS EXTRA_PARAMS) {
    const int g = lane >> 2, t = lane & 3, first = tile % s->across * BN;
    UNROLL for (int m = 0; m < ROWS; m++) {
        const int row = m * 64 + warp * 16 + g;
        spot to[2];
        bool there[2] = { true, true };
        if (!SLOTS)
            UNROLL for (int i = 0; i < 2; i++) there[i] = find(s, e, row0 + row + 8 * i, &to[i]);
#ifdef NORM
        /* a place in local memory may be none of the image */
        bool real[2] = { there[0], there[1] };
        if (SLOTS)
            UNROLL for (int i = 0; i < 2; i++) real[i] = find(s, e, row0 + row + 8 * i, &to[i]);
#endif
        UNROLL for (int q0 = 0; q0 < BN / 16; q0 += AHEAD) {
            more with[AHEAD][2];
            asm volatile("" ::: "memory");      /* and no further ahead: registers are few */
            UNROLL for (int q = 0; q < AHEAD; q++) {
                const int channel = first + 16 * (q0 + q) + 4 * t;
                if (channel >= s->rows) continue;
                more_of_channels(e, channel, &with[q][0] EXTRA_ARGS);
                with[q][1] = with[q][0];
                UNROLL for (int i = 0; i < 2; i++) {
#if SLOTS && ADDED
                    LOCAL_GET4(with[q][i].v[ADDED - 1],
                               own + (row + 8 * i) * PITCH + 16 * (q0 + q) + 4 * t);
#elif !SLOTS
                    if (there[i]) more_of_pixel(e, &to[i], channel, &with[q][i] EXTRA_ARGS);
#endif
                }
            }
            UNROLL for (int q = 0; q < AHEAD; q++) {
#ifdef NORM
                float whole[2][4] = { { 0, 0, 0, 0 }, { 0, 0, 0, 0 } };
#endif
                UNROLL for (int i = 0; i < 2; i++) {
                    const int channel = first + 16 * (q0 + q) + 4 * t;
                    float v[4] = FOUR(sums[m], q0 + q, i);
                    if (!there[i] || channel >= s->rows) continue;
                    finish4(v, &with[q][i]);
#ifdef NORM
                    float along[4];
                    norm4(v, along, &with[q][i]);
                    if (real[i])
                        UNROLL for (int j = 0; j < 4; j++) {
                            whole[0][j] += v[j];
                            whole[1][j] += along[j];
                        }
#endif
#if SLOTS
                    LOCAL_PUT4(own + (row + 8 * i) * PITCH + 16 * (q0 + q) + 4 * t, v);
#else
                    store4(e, &to[i], channel, v, y);
#endif
#if MOMENTS && !defined(NORM)
                    float *keep = sums[m] + 8 * (q0 + q) + 2 * i;
                    keep[0] = v[0];
                    keep[1] = v[1];
                    keep[4] = v[2];
                    keep[5] = v[3];
#endif
                }
#ifdef NORM
                float *const kept = sums[m] + 8 * (q0 + q);
                UNROLL for (int i = 0; i < 2; i++)
                    UNROLL for (int j = 0; j < 4; j++)
                        kept[2 * i + 4 * (j / 2) + j % 2] = whole[i][j];
#endif
            }
        }
    }
#if SLOTS
    nv_proxy_fence();
    warp_meet();
    if (lane < 16) {
        UNROLL for (int m = 0; m < ROWS; m++) {
            const int r = m * 64 + warp * 16 + lane;
            spot to;
            if (find(s, e, row0 + r, &to))
                nv_bulk_store(y + e->p[0].at + to.at[0] + first, LOCAL_AT(own + r * PITCH),
                              row_bytes(s, tile));
        }
        NV_BULK_COMMIT();
    }
#endif
#if MOMENTS
    UNROLL for (int m = 0; m < ROWS; m++) {
        const int row = row0 + m * 64 + warp * 16 + g;
        float mean[MOMENT_COLUMNS], m2[MOMENT_COLUMNS];
        spot unused;
        if (row0 + m * 64 >= s->positions) continue;
        const float n = nv_columns(sums[m], find(s, e, row, &unused), find(s, e, row + 8, &unused),
                                   own_moments, 8 + consumer, 32 * warp + lane, mean, m2);
#if KEEPS
        keep_moments(kept, mean, m2, n);
#else
        const int part = s->first_part + row0 / 64 + m;
        nv_put_columns(mean, m2, n, 32 * warp + lane, first, s->rows, s->rows,
                       moments + s->moments + (long)part * 2 * s->rows,
                       moments + s->moments + (long)s->parts * 2 * s->rows + part);
#endif
    }
#endif
}

kernel GROUP(ITEMS) void conv_stream(const sizes all, const ends e, global const MEM *restrict x,
                                     global const MEM *restrict w,
                                     global RESULT *restrict y EXTRA_PARAMS
#if MOMENTS
                                     , global float *restrict moments
#endif
#if MAPPED
                                     , global uchar *restrict maps
#endif
#if KEEPS
                                     , const endings to, global float *of_channels0,
                                     global float *of_channels1, global const float *var,
                                     global uint *done
#endif
                                     ) {
    local char stages_a[SA * A_BYTES * (1 + SPLIT)] __attribute__((aligned(1024)));
    local char stages_b[SB * B_BYTES] __attribute__((aligned(1024)));
#if MAPPED
    local int room[32] __attribute__((aligned(128)));
#else
    local int2 rows[AROWS];
#endif
    local ulong barriers[2 * SA + 2 * SB + 2 * CONSUMERS * SLOTS + TEAMS];
#if SLOTS
    local RESULT results[CONSUMERS * SLOTS * SLOT] __attribute__((aligned(128)));
#endif
#if MOMENTS
    local float of_rows[CONSUMERS * MOMENT_FLOATS];
#endif
#if KEEPS
    local uint last;
    moments_kept kept = { .n = 0 };
#endif
    const int item = get_local_id(0), warp = item >> 5 & 3, lane = item & 31;
    ring a = { .at = LOCAL_AT(stages_a), .full = LOCAL_AT(barriers) },
         b = { .at = LOCAL_AT(stages_b) };
    a.empty = a.full + 8 * SA;
    b.full = a.empty + 8 * SA;
    b.empty = b.full + 8 * SB;
    const uint full = b.empty + 8 * SB, empty = full + 8 * CONSUMERS * SLOTS;
    const uint turns = empty + 8 * CONSUMERS * SLOTS;
    if (item == 0) {
        for (int i = 0; i < SA; i++)
            nv_barrier_init(a.full + 8 * i, FILLERS), nv_barrier_init(a.empty + 8 * i, TEAM);
        for (int i = 0; i < SB; i++)
            nv_barrier_init(b.full + 8 * i, 1), nv_barrier_init(b.empty + 8 * i, TEAM);
        for (int i = 0; i < CONSUMERS * SLOTS; i++)
            nv_barrier_init(full + 8 * i, 32), nv_barrier_init(empty + 8 * i, 64);
        for (int i = 0; i < TEAMS; i++) nv_barrier_init(turns + 8 * i, TEAM);
        nv_barriers_made();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < 128) {
#if MAPPED
        if (warp == 0)
            bring_a(&all, (global const char *)x, maps, LOCAL_AT(room), a.at, a.full, a.empty,
                    lane);
#else
        if (warp < 2)
            bring_a(&all, (global const char *)x + (all.x << 4), rows, a.at, a.full, a.empty, item);
#endif
        else if (warp == 2 && lane == 0)
            bring_b(&all, (global const char *)w, b.at, b.full, b.empty);
#if ADDED
        else if (warp == 3) bring_added(&all, &e, LOCAL_AT(results), full, empty, lane EXTRA_ARGS);
#endif
        return;
    }
    const int consumer = (item >> 7) - 1, team = consumer / TEAM, member = consumer % TEAM;
    a.base = a.at;
    a.at += member * MEMBER_ROWS * STEP_BYTES;
    int turn = 0;
    for (int next = get_group_id(0); next < all.tiles; next += get_num_groups(0), turn++) {
        int tile = next;
        TAKE(&all, tile)
        if (TEAMS > 1 && turn % TEAMS != team) {
            const int steps = s->blocks * s->tall.taps * s->wide.taps;
            pass(&a, HALO ? s->blocks : steps, SA);
            pass(&b, steps, SB);
            continue;
        }
        float sums[ROWS][BN / 2];
        const int row0 = tile / s->across * PLACES + member * MEMBER_ROWS;
#if FORESEEN
        foresee(s, &e, tile, row0, warp, lane EXTRA_ARGS);
#endif
        /* the first team goes ahead once uncalled */
        if (TEAMS > 1) nv_barrier_wait(turns + 8 * team, (turn / TEAMS & 1) ^ (team == 0));
        /* without a step nothing else keeps the warps of a team together, and one that comes two
         * turns late waits for ever */
        if (TEAMS > 1 && s->tall.taps * s->wide.taps == 0) nv_meet(EMPTY_TILE + consumer, 128);
        multiply(s, sums, &a, &b, SA * A_BYTES, item - 128, turns + 8 * ((team + 1) % TEAMS));
#if POOL
        finish_pooled(s, &e, sums, y, tile, row0, warp, lane EXTRA_ARGS);
#elif SLOTS
        const int use = turn / TEAMS, slot = consumer * SLOTS + use % SLOTS;
        if (lane < 16) {
            /* stores have read their rows: of the tile before, or of the one before that */
            if (SLOTS == 1 || ADDED) NV_BULK_WAIT_READ(0);
            else NV_BULK_WAIT_READ(1);
            if (ADDED && SLOTS > 1 && use)
                nv_barrier_arrive(empty + 8 * (consumer * SLOTS + (use - 1) % SLOTS));
        }
        if (ADDED) nv_barrier_wait(full + 8 * slot, use / SLOTS & 1);
        else warp_meet();
        finish_tile(s, &e, sums, y, results + slot * SLOT, tile, row0, warp,
                    lane MOMENTS_ARGS EXTRA_ARGS);
        if (ADDED && SLOTS == 1 && lane < 16) {
            NV_BULK_WAIT_READ(0);
            nv_barrier_arrive(empty + 8 * slot);
        }
#else
        finish_tile(s, &e, sums, y, 0, tile, row0, warp, lane MOMENTS_ARGS EXTRA_ARGS);
#endif
    }
#if KEEPS
    end_moments(&all, &to, &kept, of_rows, stages_a, &last, item - 128, moments, of_channels0,
                of_channels1, var, done);
#endif
#if SLOTS
    if (lane < 16) NV_BULK_WAIT(0);
#endif
}
