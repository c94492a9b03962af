/* Gradient by the weights of any convolution whose channels lie side by side: see
 * nv_conv_grad_w.cl.
 *
 * A tile is 128 x COLUMNS of dw, in chunks of 64: those of rows (k of dy) and those of columns (64
 * channels of x as one tap sees them), or the other way round when `transposed`.  Each of two warp
 * groups multiplies one chunk of rows by all columns; one or two others fill stages of 64 pixels.
 * AHEAD chunks are on their way at once, of 16 bits into its registers, of f32 into local memory
 * after the stages.  MAPS: the copy engine fills them (nv_conv_grad_w_maps.cl). */
#define ACROSS (COLUMNS / 64)
#define ROWS_AT_ONCE (FILLERS / 8)
#define PASSES (64 / ROWS_AT_ONCE)
#ifdef MAPS
#define FILLED 1                                    /* arrivals that a stage waits for */
#else
#define FILLED FILLERS
#endif
#ifdef HALVES
#define ARRIVING 0
#else
#define ARRIVING 16384                              /* bytes of a chunk as it comes */
#endif

#ifdef JOINED
/* A part lies as its items have it: quad q of item i at (256 q + i).  A unit is a quad of a warp:
 * 16 rows x 8 columns of the tile, of which numbers follow each other as they do in dw. */
INLINE place place_of(const sizes s, int tile_m, int tile_n, int unit, int number) {
    const int each_tap = ((int)s.channels + 63) / 64, transposed = (int)s.transposed,
              quad = unit / 8;
    const int m = transposed ? number % 16 : number / 8,
              n = transposed ? number / 16 : number % 8;
    const int chunk_m = tile_m * 2 + unit % 8 / 4, chunk_n = tile_n * ACROSS + quad / 8;
    const int row = unit % 4 * 16 + m, column = quad % 8 * 8 + n,
              seen = transposed ? chunk_m : chunk_n;
    return (place){ transposed ? chunk_n * 64 + column : chunk_m * 64 + row, seen / each_tap,
                    seen % each_tap * 64 + (transposed ? row : column),
                    (m % 8 * 4 + n / 2) * 4 + m / 8 * 2 + n % 2 };
}
INLINE bool is_there(const sizes s, int chunk, bool seen) {
    return seen ? chunk < (int)s.taps * (((int)s.channels + 63) / 64) : chunk * 64 < (int)s.rows;
}
INLINE int quad_at(const sizes s, int tile_m, int tile_n, int unit, int lane) {
    const bool transposed = s.transposed;
    if (!is_there(s, tile_m * 2 + unit % 8 / 4, transposed) ||
        !is_there(s, tile_n * ACROSS + unit / 64, !transposed))
        return -1;
    return (unit * 32 + lane) * 4;
}
INLINE int parts_apart(const sizes s) { return (int)get_num_groups(0) * (SUMMED * MULTIPLIERS); }
#endif

kernel GROUP(MULTIPLIERS + FILLERS) void grad_w(const sizes s, global const MEM *restrict x,
                                                global const MEM *restrict dy, global float *parts,
                                                global RESULT *dw, global ulong *counters
#ifdef MAPS
                                                ,
                                                global uchar *maps
#endif
) {
    local uchar memory[STAGES * STAGE + AHEAD * ARRIVING] __attribute__((aligned(1024)));
    local ulong bars[2 * STAGES];
#ifdef MAPS
    local uchar room[256] __attribute__((aligned(128)));
#endif
    local int4
        chunks[CHUNKS]; /* what it sees down and across, elements, rows or channels that are left */
    local uint peak[2], scales[2], again;
    const int id = get_local_id(0), lane = id & 31, warp = id >> 5 & 3, role = id >> 7;
    const int tile = get_group_id(0), blocks = (int)s.tiles_n,
              group = tile / (blocks * (int)s.tiles_m);
    const int tile_m = tile / blocks % (int)s.tiles_m, tile_n = tile % blocks;
    const int first = (int)get_group_id(1) * (int)s.each,
              end = min(first + (int)s.each, (int)s.positions);
    const int steps = (end - first + 63) / 64, C = (int)s.channels, K = (int)s.rows,
              each_tap = (C + 63) / 64;
    const bool transposed = s.transposed;
    const uint full = LOCAL_AT(bars), empty = full + 8 * STAGES, base = LOCAL_AT(memory);
    if (!id) {
        for (int i = 0; i < STAGES; i++)
            nv_barrier_init(full + 8 * i, FILLED), nv_barrier_init(empty + 8 * i, 2);
        nv_barriers_made();
        peak[0] = peak[1] = 0;
        scales[0] = scales[1] = 127u << 23;
        again = 0;
    }
    if (id < CHUNKS) {
        const int chunk = id < 2 ? tile_m * 2 + id : tile_n * ACROSS + id - 2;
        const int tap = chunk / each_tap, c = chunk % each_tap * 64, r = tap / (int)s.width_taps,
                  q = tap % (int)s.width_taps;
        if ((id < 2) != transposed)
            chunks[id] = (int4)(0, 0, group * K + chunk * 64, K - chunk * 64);
        else
            chunks[id] = (int4)(r * (int)s.far_h, q * (int)s.far_w,
                                group * C + c + r * (int)s.far_h * (int)s.x_row +
                                    q * (int)s.far_w * (int)s.x_column,
                                tap < (int)s.taps ? C - c : 0);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (role >= 2) {
#ifdef MAPS
        fill_mapped(s, x + s.x, dy + s.dy, maps_of_group(maps + s.maps), chunks, base,
                    LOCAL_AT(room), full, first, steps, id - MULTIPLIERS);
#else
        /* lanes 0 .. 15 find this warp's rows in x, the others in dy */
        const bool mine = lane < 16;
        const int me = id - MULTIPLIERS, my_row = me / 8, c = id % 8 * 8;
        const int row = (lane & 15) / 4 * ROWS_AT_ONCE + me / 32 * 4 + lane % 4;
        const int tall = (int)s.tall, broad = (int)s.broad, down = mine ? (int)s.down : 1,
                  across = mine ? (int)s.across : 1;
        const int high = mine ? (int)s.height : (int)s.high,
                  wide = mine ? (int)s.width : (int)s.wide;
        const int up = mine ? (int)s.up : 0,
                  left = mine ? (int)s.left : 0;
        const int image_step = mine ? (int)s.x_image : (int)s.dy_image,
                  row_step = mine ? (int)s.x_row : (int)s.dy_row;
        const int column_step = mine ? (int)s.x_column : (int)s.dy_column;
        const uint tm = (uint)s.tall_m, ts = (uint)s.tall_s, bm = (uint)s.broad_m,
                   bs = (uint)s.broad_s;
        global const MEM *xp = x + s.x, *yp = dy + s.dy;
        const uint to = base + my_row * 128 + (((my_row & 7) ^ (id % 8)) << 4);
        float most[2] = { 0, 0 }, scale[2] = { 1, 1 };
        int at, h, w;
#define FIND(t)                                                                                    \
    do {                                                                                           \
        const int p_ = first + (t)*64 + row;                                                       \
        const uint q_ = nv_quot(p_, bm, bs), n_ = nv_quot(q_, tm, ts);                             \
        h = p_ < end ? ((int)q_ - (int)n_ * tall) * down - up : -(1 << 30); \
        w = (p_ - (int)q_ * broad) * across - left; \
        at = (int)n_ * image_step + ((int)q_ - (int)n_ * tall) * down * row_step - up * row_step + \
             w * column_step;                                                                      \
    } while (0)
/* Of chunk i of the pixels found: ACT(j, where the operand begins, this row's offset in it or -1,
 * channels that are left). */
#define ROWS(rows, i, ACT) \
        do { \
            const bool sees_ = ((i) < 2) == transposed; \
            const int4 k_ = chunks[i]; \
            const int h_ = h + (mine == sees_ ? k_.x : 0); \
            const int w_ = w + (mine == sees_ ? k_.y : 0); \
            const int o_ = (uint)h_ < (uint)high && (uint)w_ < (uint)wide ? at + k_.z : -1; \
            EACH_ROW(rows, ACT); \
        } while (0)
/* The pixels nearest to those: a sample that lay in a row of pads would have the whole part read
 * twice. */
#define ROWS_NEAR(rows, i, ACT)                                                                    \
    do {                                                                                           \
        const bool sees_ = ((i) < 2) == transposed;                                                \
        const int4 k_ = chunks[i];                                                                 \
        const int h_ = h + (mine == sees_ ? k_.x : 0);                                             \
        const int w_ = w + (mine == sees_ ? k_.y : 0);                                             \
        const int near_ = (clamp(h_, 0, high - 1) - h_) * row_step +                               \
                          (clamp(w_, 0, wide - 1) - w_) * column_step;                             \
        const int o_ = h > -(1 << 29) ? at + k_.z + near_ : -1;                                    \
        EACH_ROW(rows, ACT);                                                                       \
    } while (0)
#define EACH_ROW(rows, ACT) \
            const int lane_ = (sees_ ? 0 : 16) + lane / 8; \
            UNROLL for (int j_ = 0; j_ < (rows); j_++) \
                ACT(j_, sees_ ? xp : yp, nv_shuffle(o_, lane_ + j_ * 4), k_.w)
#define PUT(v, j, i, stage)                                                                        \
    put_eight(v, scale[(i) >= 2], &most[(i) >= 2],                                                 \
              to + (stage)*STAGE + (i)*8192 + (j)*ROWS_AT_ONCE * 128,                              \
              to + (stage)*STAGE + (CHUNKS + (i)) * 8192 + (j)*ROWS_AT_ONCE * 128, 0)
        int stage = 0;
        uint parity = 1;
#ifdef HALVES
        uint v[AHEAD][PASSES][WORDS];
        FIND(0);
        UNROLL for (int i = 0; i < AHEAD; i++) {
#define INTO(j, p, off, left) load_eight(v[i][j], (p) + c, off, (left) - c)
            ROWS(PASSES, i, INTO);
#undef INTO
        }
        for (int t = 0; t < steps; t++) {
            nv_barrier_wait(empty + 8 * stage, parity);
            UNROLL for (int i = 0; i < CHUNKS; i++) {
                UNROLL for (int j = 0; j < PASSES; j++) PUT(v[i % AHEAD][j], j, i, stage);
                if (i == CHUNKS - AHEAD) FIND(t + 1);
#define INTO(j, p, off, left) load_eight(v[i % AHEAD][j], (p) + c, off, (left) - c)
                ROWS(PASSES, (i + AHEAD) % CHUNKS, INTO);
#undef INTO
            }
            nv_barrier_arrive(full + 8 * stage);
            if (++stage == STAGES) {
                stage = 0;
                parity ^= 1;
            }
        }
#else
        const uint arriving = base + STAGES * STAGE + my_row * 256;
#ifdef SCALED
        /* a sample: some of the first pixels and of those in the middle */
        uint sample[2][2][2][WORDS];
        UNROLL for (int i = 0; i < 2; i++) {
            FIND(i * (steps / 2));
            UNROLL for (int k = 0; k < 2; k++) {
#define INTO(j, p, off, left) load_eight(sample[i][k][j], (p) + c, off, (left) - c)
                ROWS_NEAR(2, 2 * k, INTO);
#undef INTO
            }
        }
#endif
        for (int round = 0; round < 2; round++) {
            int asked_step = 0, asked_chunk = 0;            /* what is asked for next */
            uint place = arriving;
#define INTO(j, p, off, left) ask_row(place + (j) * ROWS_AT_ONCE * 256, p, off, left, lane % 8, 8)
#define ASK() \
            do { \
                ROWS(PASSES, asked_chunk, INTO); \
                NV_COPIES_COMMIT(); \
                if (++asked_chunk == CHUNKS) { \
                    asked_chunk = 0, asked_step++; \
                    FIND(asked_step); \
                } \
                place += ARRIVING; \
                if (place == arriving + AHEAD * ARRIVING) place = arriving; \
            } while (0)
            FIND(0);
            for (int i = 0; i < AHEAD; i++) ASK();
#ifdef SCALED
            if (!round) {
                UNROLL for (int i = 0; i < 8; i++) UNROLL for (int e = 0; e < 8; e++)
                    most[i / 2 % 2] =
                        fmax(most[i / 2 % 2], fabs(as_float(sample[i / 4][i / 2 % 2][i % 2][e])));
                begin_scales(peak, scales, most[0], most[1], me, FILLERS);
            }
            scale[0] = as_float(scales[0]);
            scale[1] = as_float(scales[1]);
#endif
            for (int t = 0; t < steps; t++) {
                nv_barrier_wait(empty + 8 * stage, parity);
                UNROLL for (int i = 0; i < CHUNKS; i++) {
                    uint v[PASSES][WORDS];
                    NV_COPIES_WAIT(AHEAD - 1);
                    nv_warp_meet();
                    UNROLL
                    for (int j = 0; j < PASSES; j++)
                        take_eight(v[j], place + j * ROWS_AT_ONCE * 256, lane % 8, 8);
                    UNROLL for (int j = 0; j < PASSES; j++) PUT(v[j], j, i, stage);
                    nv_warp_meet();
                    ASK();
                }
                nv_barrier_arrive(full + 8 * stage);
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
            NV_COPIES_WAIT(0);
#ifdef SCALED
            if (!fill_again(peak, scales, &again, most[0], most[1], me, round, FILLERS,
                            MULTIPLIERS + FILLERS))
                break;
            nv_warp_meet();
#else
            break;
#endif
        }
#undef INTO
#endif
#endif
        return;
    }
    float acc[SUMMED], sum[SUMMED];
    const ulong ba = transposed128(base + role * 8192, 0),
                bb = transposed128(base + 2 * 8192, 8192);
    int stage = 0;
    uint parity = 0;
    for (int round = 0; round < 2; round++) {
        UNROLL for (int i = 0; i < SUMMED; i++) acc[i] = sum[i] = 0;
        multiply_all(acc, sum, steps, id, full, empty, &stage, &parity, ba, bb, STAGE, CHUNKS * 512,
                     CHUNKS * 512, 0, 0, 0);
#ifdef SCALED
        float back_a, back_b;
        if (multiply_again(scales, &again, round, MULTIPLIERS + FILLERS, &back_a, &back_b))
            continue;
        UNROLL for (int i = 0; i < SUMMED; i++) SUMS(i) = SUMS(i) * back_a * back_b;
#endif
        break;
    }
#ifdef JOINED
    global float *mine = parts + s.parts + (long)tile * (SUMMED * MULTIPLIERS),
                 *to = mine + get_group_id(1) * parts_apart(s) + id * 4;
    UNROLL for (int i = 0; i < SUMMED; i += 4)
        if (chunks[role].w > 0 && chunks[2 + i / 32].w > 0)
            nv_store4(to + i * MULTIPLIERS, SUMS(i), SUMS(i + 1), SUMS(i + 2), SUMS(i + 3));
    finish(s, mine, dw + s.dw + (long)group * K * (int)s.taps * C, counters, (local float *)memory,
           &again, tile, tile_m, tile_n, SUMMED / 4 * 8, id);
#else
    const int all = (int)s.taps * C;
    global float *mine = parts + s.parts + ((long)get_group_id(1) * s.groups + group) * K * all;
    /* of the chunk with taps: where its channels begin in a row, and how many they are */
    UNROLL for (int j = 0; j < ACROSS; j++) {
        const int chunk_m = tile_m * 2 + role, chunk_n = tile_n * ACROSS + j,
                  seen = transposed ? chunk_m : chunk_n;
        const int k0 = (transposed ? chunk_n : chunk_m) * 64, tap = seen / each_tap,
                  c0 = seen % each_tap * 64;
        if (tap >= (int)s.taps) continue;
        UNROLL for (int h = 0; h < 2; h++) {
            const int m = warp * 16 + lane / 4 + 8 * h;
            UNROLL for (int i = 0; i < 8; i++) {
                const int n = i * 8 + lane % 4 * 2, e = 4 * (8 * j + i) + 2 * h;
                if (transposed) {
                    if (c0 + m < C && k0 + n < K)
                        mine[(long)(k0 + n) * all + tap * C + c0 + m] = SUMS(e);
                    if (c0 + m < C && k0 + n + 1 < K)
                        mine[(long)(k0 + n + 1) * all + tap * C + c0 + m] = SUMS(e + 1);
                } else if (k0 + m < K && c0 + n < C) {
                    *(global float2 *)(mine + (long)(k0 + m) * all + tap * C + c0 + n) =
                        (float2)(SUMS(e), SUMS(e + 1));
                }
            }
        }
    }
#endif
}
