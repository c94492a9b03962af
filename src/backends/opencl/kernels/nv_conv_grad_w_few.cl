/* Gradient by the weights of a convolution whose x has few channels, lying anywhere (a first layer's images): see
 * nv_conv_grad_w.cl.
 *
 * Columns are (c, r, s) as dw has them, so that no channel is filled up; a tile is 64 rows of dw x COLUMNS.  One warp group multiplies,
 * three fill: 64 items bring eight columns of 64 neighbouring pixels, each its own pixel, so loads run along the image's rows. */
#define MULTIPLIERS 128
#define BRINGERS 384
#define CHUNKS (1 + (COLUMNS + 63) / 64)
#define STAGE (CHUNKS * 8192 * (TERMS == 3 ? 2 : 1))
#define EIGHTS (COLUMNS / 8)
#define TURNS ((EIGHTS + 5) / 6)

INLINE uint load_one(global const MEM *p, int there) {
#ifdef HALVES
    ushort v;
    asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\nmov.u16 %0, 0;\n@p ld.global.nc.u16 %0, [%1];\n}\n" : "=h"(v) : "l"(p), "r"(there));
#else
    uint v;
    asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\nmov.u32 %0, 0;\n@p ld.global.nc.u32 %0, [%1];\n}\n" : "=r"(v) : "l"(p), "r"(there));
#endif
    return v;
}

kernel GROUP(MULTIPLIERS + BRINGERS)
void grad_w(const sizes s, global const MEM *restrict x, global const MEM *restrict dy, global float *restrict parts) {
    local uchar memory[STAGES * STAGE] __attribute__((aligned(1024)));
    local ulong bars[2 * STAGES];
    local int2 seen[COLUMNS];                       /* of a column: elements from the pixel's first, rows and columns */
    local uint peak[2], scales[2], again;
    const int id = get_local_id(0), lane = id & 31, warp = id >> 5 & 3;
    const int k0 = get_group_id(0) / (int)s.tiles_n * 64, n0 = get_group_id(0) % (int)s.tiles_n * COLUMNS;
    const int first = (int)get_group_id(1) * (int)s.each, end = min(first + (int)s.each, (int)s.positions);
    const int steps = (end - first + 63) / 64, K = (int)s.rows, taps = (int)s.taps, all = taps * (int)s.channels;
    const uint full = LOCAL_AT(bars), empty = full + 8 * STAGES, base = LOCAL_AT(memory);
    if (!id) {
        for (int i = 0; i < STAGES; i++) nv_barrier_init(full + 8 * i, BRINGERS), nv_barrier_init(empty + 8 * i, 1);
        nv_barriers_made();
        peak[0] = peak[1] = 0, scales[0] = scales[1] = 127u << 23, again = 0;
    }
    for (int i = id; i < COLUMNS; i += MULTIPLIERS + BRINGERS) {
        const int n = n0 + i, c = n / taps, r = n % taps / (int)s.width_taps * (int)s.far_h, q = n % (int)s.width_taps * (int)s.far_w;
        seen[i] = n < all ? (int2)(c * (int)s.x_channel + r * (int)s.x_row + q * (int)s.x_column, r << 16 | q) : (int2)(0, 0x4000 << 16);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id >= MULTIPLIERS) {
        const int me = id - MULTIPLIERS, turn = me / 64, row = me % 64, filler = me / 128, y_row = me % 128 / 8, y_left = K - k0 - id % 8 * 8;
        const int tall = (int)s.tall, broad = (int)s.broad, height = (int)s.height, width = (int)s.width;
        const uint tm = (uint)s.tall_m, ts = (uint)s.tall_s, bm = (uint)s.broad_m, bs = (uint)s.broad_s;
        global const MEM *xp = x + s.x, *yp = dy + s.dy + k0 + id % 8 * 8;
        const uint ya = base + y_row * 128 + (((y_row & 7) ^ (id % 8)) << 4), xa = base + 8192 + row * 128;
        const uint low = CHUNKS * 8192;
        uint vx[TURNS][8], vy[2][WORDS];
        float mx = 0, my = 0, scale_x = 1, scale_y = 1;
#define BRING(t) \
        do { \
            const int p_ = first + (t) * 64 + row; \
            const uint q_ = nv_quot(p_, bm, bs), n_ = nv_quot(q_, tm, ts); \
            const int h_ = p_ < end ? ((int)q_ - (int)n_ * tall) * (int)s.down - (int)s.up : -(1 << 24); \
            const int w_ = (p_ - (int)q_ * broad) * (int)s.across - (int)s.left; \
            const int at_ = (int)n_ * (int)s.x_image + h_ * (int)s.x_row + w_ * (int)s.x_column; \
            UNROLL for (int i_ = 0; i_ < TURNS; i_++) if (turn + 6 * i_ < EIGHTS) { \
                UNROLL for (int e_ = 0; e_ < 8; e_++) { \
                    const int2 k_ = seen[(turn + 6 * i_) * 8 + e_]; \
                    const int in_ = (uint)(h_ + (k_.y >> 16)) < (uint)height && (uint)(w_ + (k_.y & 0xffff)) < (uint)width; \
                    vx[i_][e_] = load_one(xp + (in_ ? at_ + k_.x : 0), in_); \
                } \
            } \
            UNROLL for (int i_ = 0; i_ < 2; i_++) if (filler + 3 * i_ < 4) { \
                const int y_ = first + (t) * 64 + y_row + 16 * (filler + 3 * i_); \
                const uint a_ = nv_quot(y_, bm, bs), b_ = nv_quot(a_, tm, ts); \
                load_eight(vy[i_], yp, y_ < end ? (int)b_ * (int)s.dy_image + ((int)a_ - (int)b_ * tall) * (int)s.dy_row + \
                           (y_ - (int)a_ * broad) * (int)s.dy_column : -1, y_left); \
            } \
        } while (0)
#define PUT(stage) \
        do { \
            UNROLL for (int i_ = 0; i_ < TURNS; i_++) if (turn + 6 * i_ < EIGHTS) { \
                const int g_ = turn + 6 * i_; \
                const uint to_ = xa + (stage) * STAGE + g_ / 8 * 8192 + (((g_ & 7) ^ (row & 7)) << 4); \
                COMBINE(vx[i_]); \
                put_eight(vx[i_], scale_x, &mx, to_, to_ + low, 0); \
            } \
            UNROLL for (int i_ = 0; i_ < 2; i_++) if (filler + 3 * i_ < 4) { \
                const uint to_ = ya + (stage) * STAGE + (filler + 3 * i_) * 2048; \
                put_eight(vy[i_], scale_y, &my, to_, to_ + low, 0); \
            } \
        } while (0)
#ifdef HALVES
#define COMBINE(v) UNROLL for (int k_ = 0; k_ < 4; k_++) v[k_] = v[2 * k_] | v[2 * k_ + 1] << 16
#else
#define COMBINE(v)
#endif
        int stage = 0;
        uint parity = 1;
        UNROLL for (int i = 0; i < TURNS; i++) UNROLL for (int e = 0; e < 8; e++) vx[i][e] = 0;
        UNROLL for (int i = 0; i < 2; i++) UNROLL for (int e = 0; e < (int)WORDS; e++) vy[i][e] = 0;
#ifdef SCALED
        for (int i = 0; i < 2; i++) {               /* a sample */
            BRING(i * (steps / 2));
            UNROLL for (int j = 0; j < TURNS; j++) UNROLL for (int e = 0; e < 8; e++) mx = fmax(mx, fabs(as_float(vx[j][e])));
            UNROLL for (int j = 0; j < 2; j++) UNROLL for (int e = 0; e < 8; e++) my = fmax(my, fabs(as_float(vy[j][e])));
        }
        atomic_max(&peak[0], as_uint(mx)), atomic_max(&peak[1], as_uint(my));
        nv_meet(1, BRINGERS);
        if (me < 2) scales[me] = scale_of(peak[me], 3);
        nv_meet(1, BRINGERS);
#endif
        for (int round = 0; round < 2; round++) {
#ifdef SCALED
            scale_x = as_float(scales[0]), scale_y = as_float(scales[1]);
#endif
            BRING(0);
            for (int t = 0; t < steps; t++) {
                nv_barrier_wait(empty + 8 * stage, parity);
                PUT(stage);
                nv_proxy_fence();
                nv_barrier_arrive(full + 8 * stage);
                BRING(t + 1);
                if (++stage == STAGES) stage = 0, parity ^= 1;
            }
#ifdef SCALED
            atomic_max(&peak[0], as_uint(mx)), atomic_max(&peak[1], as_uint(my));
            nv_meet(1, BRINGERS);
            if (!me && !round) again = !fits(peak[0], scales[0]) || !fits(peak[1], scales[1]);
            nv_meet(2, MULTIPLIERS + BRINGERS);
            const uint redo = again;
            nv_meet(2, MULTIPLIERS + BRINGERS);
            if (!redo || round) break;
            if (me < 2) scales[me] = scale_of(peak[me], 14);
            nv_meet(1, BRINGERS);
#else
            break;
#endif
        }
        return;
    }
    float acc[COLUMNS / 2];
#if TERMS == 3
    float sum[COLUMNS / 2];
#endif
    const ulong ba = turned128(base, 0), bb = turned128(base + 8192, 8192);
    int stage = 0;
    uint parity = 0;
    for (int round = 0; round < 2; round++) {
        UNROLL for (int i = 0; i < COLUMNS / 2; i++) acc[i] = 0;
#if TERMS == 3
        UNROLL for (int i = 0; i < COLUMNS / 2; i++) sum[i] = 0;
#endif
        for (int t = 0; t < steps;) {
            const int begin = t, stop = TERMS == 3 ? min(steps, t + PROMOTE) : steps;
            for (; t < stop; t++) {
                nv_barrier_wait(full + 8 * stage, parity);
                NV_WGMMA_FENCE();
                UNROLL for (int k = 0; k < 4; k++) {
                    const ulong a = ba + (uint)(stage * (STAGE >> 4) + k * 128), b = bb + (uint)(stage * (STAGE >> 4) + k * 128);
                    MULTIPLY(acc, a, b);
#if TERMS == 3
                    MULTIPLY(acc, a, b + CHUNKS * 512);
                    MULTIPLY(acc, a + CHUNKS * 512, b);
#endif
                }
                NV_WGMMA_COMMIT();
                NV_WGMMA_WAIT(1);
                if (t > begin && !id) nv_barrier_arrive(empty + 8 * (stage ? stage - 1 : STAGES - 1));
                if (++stage == STAGES) stage = 0, parity ^= 1;
            }
            NV_WGMMA_WAIT(0);
            if (!id) nv_barrier_arrive(empty + 8 * (stage ? stage - 1 : STAGES - 1));
#if TERMS == 3
            UNROLL for (int i = 0; i < COLUMNS / 2; i++) sum[i] += acc[i], acc[i] = 0;
#endif
        }
#ifdef SCALED
        nv_meet(2, MULTIPLIERS + BRINGERS);
        const uint redo = again;
        const float back_x = inverse_of(scales[0]), back_y = inverse_of(scales[1]);
        nv_meet(2, MULTIPLIERS + BRINGERS);
        if (redo && !round) continue;
        UNROLL for (int i = 0; i < COLUMNS / 2; i++) SUMS(i) = SUMS(i) * back_x * back_y;
#endif
        break;
    }
    parts += s.parts + (long)get_group_id(1) * K * all;
    UNROLL for (int h = 0; h < 2; h++) {
        const int k = k0 + warp * 16 + lane / 4 + 8 * h;
        UNROLL for (int j = 0; j < COLUMNS / 8; j++) {
            const int n = n0 + j * 8 + lane % 4 * 2;
            if (k < K && n < all) parts[(long)k * all + n] = SUMS(4 * j + 2 * h);
            if (k < K && n + 1 < all) parts[(long)k * all + n + 1] = SUMS(4 * j + 2 * h + 1);
        }
    }
}
