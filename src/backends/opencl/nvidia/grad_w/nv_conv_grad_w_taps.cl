/* Gradient by the weights of a convolution of 3 x 3 taps and stride 1: see nv_conv_grad_w.cl.
 *
 * Nine taps see the same pixels, shifted.  So x streams through a ring in local memory, one row of
 * CHUNK channels a position, each read once, and the three warp groups that multiply take a row of
 * taps each: columns (s, c) of one instruction are chunks of the ring that lie one position apart.
 * Positions are pixels of dy with pads after each row and each image (tall x broad), where dy is
 * zero; x's are shifted by the pads, so tap (r, s) is the row r far_h broad + s far_w further on.
 *
 *   local memory: STAGES of dy (64 positions of 64 rows of dw, high and low), the ring (high, low),
 *   its first rows again after; f32 as they come, AHEAD times a block of x and one of dy
 *
 * The fillers are `lead` blocks of 64 positions ahead with x. */
#define LANES (CHUNK / 8)                           /* items that bring a row of x */
#define X_ROWS (FILLERS / LANES)                    /* of x and dy that are brought at once */
#define Y_ROWS (FILLERS / 8)
#define PASSES (64 / X_ROWS)
#define Y_PASSES (64 / Y_ROWS)
#define BYTES (CHUNK * 2)                           /* of a row of the ring */
#define PARTS (TERMS == 3 ? 2 : 1)
#define STAGE (8192 * PARTS)
#define AGAIN 32                                    /* rows of the ring that are there twice */
#define N (3 * CHUNK)
#define ARRIVING_X (256 * CHUNK) /* bytes of a block of x, and of x and dy, as they come */
#define ARRIVING (ARRIVING_X + 16384)

#ifdef JOINED
INLINE place unit_at(const sizes s, int tile_m, int tile_n, int unit) {
    return (place){ tile_m * 64 + unit / (CHUNK / WIDE), 0,
                    tile_n * CHUNK + unit % (CHUNK / WIDE) * WIDE };
}
#endif

kernel GROUP(MULTIPLIERS + FILLERS) void grad_w(const sizes s, global const MEM *restrict x,
                                                global const MEM *restrict dy, global float *parts,
                                                global RESULT *dw, global ulong *counters) {
    local uchar memory[LOCAL] __attribute__((aligned(1024)));
    local ulong bars[2 * STAGES];
    local uint peak[2], scales[2], again;
    const int id = get_local_id(0), lane = id & 31, warp = id >> 5 & 3, role = id >> 7;
    const int tile = get_group_id(0), blocks = (int)s.tiles_n,
              group = tile / (blocks * (int)s.tiles_m);
    const int k0 = tile / blocks % (int)s.tiles_m * 64, c0 = tile % blocks * CHUNK;
    const int first = (int)get_group_id(1) * (int)s.each,
              end = min(first + (int)s.each, (int)s.positions);
    const int steps = (end - first + 63) / 64, lead = (int)s.lead, ring = (int)s.ring;
    const uint full = LOCAL_AT(bars), empty = full + 8 * STAGES, ys = LOCAL_AT(memory),
               xs = ys + STAGES * STAGE;
    const uint low = (uint)(ring + AGAIN) * BYTES;
    if (!id) {
        for (int i = 0; i < STAGES; i++)
            nv_barrier_init(full + 8 * i, FILLERS), nv_barrier_init(empty + 8 * i, 3);
        nv_barriers_made();
        peak[0] = peak[1] = 0;
        scales[0] = scales[1] = 127u << 23;
        again = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (role >= 3) {
        /* lanes 0 .. 15 find this warp's rows of x, the others those of dy */
        const bool mine = lane < 16;
        const int me = id - MULTIPLIERS, brings = me / 32;
        const int row =
            mine ? lane / (32 / LANES) * X_ROWS + brings * (32 / LANES) + lane % (32 / LANES)
                 : (lane - 16) / 4 * Y_ROWS + brings * 4 + lane % 4;
        const int cx = id % LANES * 8, cy = id % 8 * 8, left_x = (int)s.channels - c0 - cx,
                  left_y = (int)s.rows - k0 - cy;
        const int xrow = me / LANES, yrow = me / 8;
        const int bound = mine ? (int)s.positions : end, tall = (int)s.tall, broad = (int)s.broad;
        const int high = mine ? (int)s.height : (int)s.high,
                  wide = mine ? (int)s.width : (int)s.wide;
        const int up = mine ? (int)s.up : 0,
                  left = mine ? (int)s.left : 0;
        const int image_step = mine ? (int)s.x_image : (int)s.dy_image,
                  row_step = mine ? (int)s.x_row : (int)s.dy_row;
        const int column_step = mine ? (int)s.x_column : (int)s.dy_column;
        const uint tm = (uint)s.tall_m, ts = (uint)s.tall_s, bm = (uint)s.broad_m,
                   bs = (uint)s.broad_s;
        global const MEM *xp = x + s.x + group * (int)s.channels + c0,
                         *yp = dy + s.dy + group * (int)s.rows + k0;
        /* bytes of this item's first row; further passes are 8 rows or a multiple further: the
         * swizzle is the same */
        const uint xa =
            xs + xrow * BYTES + (((CHUNK == 64 ? xrow & 7 : xrow >> 1 & 3) ^ (id % LANES)) << 4);
        const uint ya = ys + yrow * 128 + (((yrow & 7) ^ (id % 8)) << 4);
        float mx = 0, my = 0, scale_x = 1, scale_y = 1;
        int at;
#define FIND(bx, by) \
        do { \
            const int p_ = first + (mine ? (bx) : (by)) * 64 + row; \
            const uint q_ = nv_quot(p_, bm, bs), n_ = nv_quot(q_, tm, ts); \
            const int w_ = p_ - (int)q_ * broad - left, h_ = (int)q_ - (int)n_ * tall - up; \
            const bool in_ = p_ < bound && (uint)w_ < (uint)wide && (uint)h_ < (uint)high; \
            at = in_ ? (int)n_ * image_step + h_ * row_step + w_ * column_step : -1; \
        } while (0)
/* The pixel nearest to a position: a sample that lay in a row of pads would have the whole part
 * read twice. */
#define FIND_NEAR(bx, by)                                                                          \
    do {                                                                                           \
        const int p_ = min(first + (mine ? (bx) : (by)) * 64 + row, bound - 1);                    \
        const uint q_ = nv_quot(p_, bm, bs), n_ = nv_quot(q_, tm, ts);                             \
        const int w_ = clamp(p_ - (int)q_ * broad - left, 0, wide - 1),                            \
                  h_ = clamp((int)q_ - (int)n_ * tall - up, 0, high - 1);                          \
        at = (int)n_ * image_step + h_ * row_step + w_ * column_step;                              \
    } while (0)
#define X_OF(pass) nv_shuffle(at, (pass) * (32 / LANES) + lane / LANES)
#define Y_OF(pass) nv_shuffle(at, 16 + (pass) * 4 + lane / 8)
#define LOAD_X(vx, passes)                                                                         \
    UNROLL                                                                                         \
    for (int i_ = 0; i_ < (passes); i_++) load_eight(vx[i_], xp + cx, X_OF(i_), left_x)
#define LOAD_Y(vy, passes)                                                                         \
    UNROLL                                                                                         \
    for (int i_ = 0; i_ < (passes); i_++) load_eight(vy[i_], yp + cy, Y_OF(i_), left_y)
#define PUT_X(v, i, block)                                                                         \
    do {                                                                                           \
        const uint to_ = xa + (uint)((block)*64 + (i)*X_ROWS) * BYTES;                             \
        const bool twice_ = (block) == 0 && (i)*X_ROWS < AGAIN && xrow + (i)*X_ROWS < AGAIN;       \
        put_eight(v, scale_x, &mx, to_, to_ + low, twice_ ? (uint)ring * BYTES : 0);               \
    } while (0)
#define PUT_Y(v, i, stage)                                                                         \
    put_eight(v, scale_y, &my, ya + (stage)*STAGE + (i)*Y_ROWS * 128,                              \
              ya + (stage)*STAGE + 8192 + (i)*Y_ROWS * 128, 0)
        int stage = 0;
        uint parity = 1; /* of `empty`: nothing to wait for in the first round */
#ifdef HALVES
        uint vx[PASSES][WORDS], vy[Y_PASSES][WORDS];
        int block = 0;
        FIND(0, 0);
        LOAD_X(vx, PASSES);
        LOAD_Y(vy, Y_PASSES);
        for (int u = 0; u < lead; u++) {
            UNROLL for (int i = 0; i < PASSES; i++) PUT_X(vx[i], i, block);
            if (++block == ring / 64) block = 0;
            FIND(u + 1, 0);
            LOAD_X(vx, PASSES);
        }
        for (int t = 0; t < steps; t++) {
            FIND(lead + t + 1, t + 1);
            nv_barrier_wait(empty + 8 * stage, parity);
            UNROLL for (int i = 0; i < PASSES; i++) PUT_X(vx[i], i, block);
            if (++block == ring / 64) block = 0;
            if (t + 1 < steps) LOAD_X(vx, PASSES);
            UNROLL for (int i = 0; i < Y_PASSES; i++) PUT_Y(vy[i], i, stage);
            if (t + 1 < steps) LOAD_Y(vy, Y_PASSES);
            nv_barrier_arrive(full + 8 * stage);
            if (++stage == STAGES) {
                stage = 0;
                parity ^= 1;
            }
        }
#else
        const uint arriving = xs + PARTS * low;
#ifdef SCALED
        /* a sample: some of the first positions and of those in the middle */
        uint sample_x[2][1][WORDS], sample_y[2][1][WORDS];
        UNROLL for (int i = 0; i < 2; i++) {
            FIND_NEAR(lead + i * (steps / 2), i * (steps / 2));
            LOAD_X(sample_x[i], 1);
            LOAD_Y(sample_y[i], 1);
        }
#endif
        for (int round = 0; round < 2; round++) {
            int block = 0, asked = 0, next = 0,
                place = 0; /* blocks of x that were asked for; where the next one comes, and lies */
#define ASK()                                                                                      \
    do {                                                                                           \
        if (asked < lead + steps) {                                                                \
            const uint to_ = arriving + next * ARRIVING;                                           \
            FIND(asked, asked - lead);                                                             \
            UNROLL                                                                                 \
            for (int i_ = 0; i_ < PASSES; i_++)                                                    \
                ask_row(to_ + (xrow + i_ * X_ROWS) * (4 * CHUNK), xp, X_OF(i_), left_x + cx,       \
                        id % LANES, LANES);                                                        \
            if (asked >= lead) UNROLL                                                              \
            for (int i_ = 0; i_ < Y_PASSES; i_++)                                                  \
                ask_row(to_ + ARRIVING_X + (yrow + i_ * Y_ROWS) * 256, yp, Y_OF(i_), left_y + cy,  \
                        id % 8, 8);                                                                \
        }                                                                                          \
        NV_COPIES_COMMIT();                                                                        \
        asked++;                                                                                   \
        if (++next == AHEAD) next = 0;                                                             \
    } while (0)
            for (int i = 0; i < AHEAD; i++) ASK();
#ifdef SCALED
            if (!round) {
                UNROLL for (int i = 0; i < 2; i++) UNROLL for (int e = 0; e < 8; e++) {
                    mx = fmax(mx, fabs(as_float(sample_x[i][0][e])));
                    my = fmax(my, fabs(as_float(sample_y[i][0][e])));
                }
                begin_scales(peak, scales, mx, my, me, FILLERS);
            }
            scale_x = as_float(scales[0]);
            scale_y = as_float(scales[1]);
#endif
            for (int u = 0; u < lead + steps; u++) {
                const uint from = arriving + place * ARRIVING;
                uint v[Y_PASSES][WORDS];
                NV_COPIES_WAIT(AHEAD - 1);
                nv_warp_meet();
                if (u >= lead) nv_barrier_wait(empty + 8 * stage, parity);
                UNROLL
                for (int i = 0; i < PASSES; i++)
                    take_eight(v[i], from + (xrow + i * X_ROWS) * (4 * CHUNK), id % LANES, LANES);
                UNROLL for (int i = 0; i < PASSES; i++) PUT_X(v[i], i, block);
                if (++block == ring / 64) block = 0;
                if (u >= lead) {
                    UNROLL
                    for (int i = 0; i < Y_PASSES; i++)
                        take_eight(v[i], from + ARRIVING_X + (yrow + i * Y_ROWS) * 256, id % 8, 8);
                    UNROLL for (int i = 0; i < Y_PASSES; i++) PUT_Y(v[i], i, stage);
                    nv_barrier_arrive(full + 8 * stage);
                    if (++stage == STAGES) {
                        stage = 0;
                        parity ^= 1;
                    }
                }
                nv_warp_meet();
                ASK();
                if (++place == AHEAD) place = 0;
            }
            NV_COPIES_WAIT(0);
#ifdef SCALED
            if (!fill_again(peak, scales, &again, mx, my, me, round, FILLERS,
                            MULTIPLIERS + FILLERS))
                break;
            nv_warp_meet();
#else
            break;
#endif
        }
#endif
        return;
    }
    float acc[SUMMED], sum[SUMMED];
    const uint ahead = (uint)role * (uint)s.far_h * (uint)s.broad % (uint)ring;
    const uint apart = (uint)s.far_w * BYTES;
#if CHUNK == 64
    const ulong bx = transposed128(xs, apart);
#else
    const ulong bx = transposed64(xs, apart);
#endif
    const ulong by = transposed128(ys, 0);
    int stage = 0;
    uint parity = 0;
    for (int round = 0; round < 2; round++) {
        UNROLL for (int i = 0; i < SUMMED; i++) acc[i] = sum[i] = 0;
        multiply_all(acc, sum, steps, id, full, empty, &stage, &parity, by, bx, STAGE, 512,
                     low >> 4, ring, BYTES, ahead);
#ifdef SCALED
        float back_x, back_y;
        if (multiply_again(scales, &again, round, MULTIPLIERS + FILLERS, &back_x, &back_y))
            continue;
        UNROLL for (int i = 0; i < SUMMED; i++) SUMS(i) = SUMS(i) * back_x * back_y;
#endif
        break;
    }
    const int C = (int)s.channels, wide = 9 * C, rows = (int)s.rows;
    global float *mine = parts + s.parts + ((long)get_group_id(1) * s.groups + group) * rows * wide;
    UNROLL for (int h = 0; h < 2; h++) {
        const int k = k0 + warp * 16 + lane / 4 + 8 * h;
        UNROLL for (int j = 0; j < N / 8; j++) {
            const int c = c0 + j % (CHUNK / 8) * 8 + lane % 4 * 2;
            if (k < rows && c < C)
                *(global float2 *)(mine + (long)k * wide + (3 * role + j / (CHUNK / 8)) * C + c) =
                    (float2)(SUMS(4 * j + 2 * h), SUMS(4 * j + 2 * h + 1));
        }
    }
#ifdef JOINED
    finish(s, parts + s.parts + (long)group * rows * wide, dw + s.dw + (long)group * rows * wide,
           counters, (local float *)memory, &again, tile, k0 / 64, c0 / CHUNK, 64 * (CHUNK / WIDE),
           id);
#endif
}
