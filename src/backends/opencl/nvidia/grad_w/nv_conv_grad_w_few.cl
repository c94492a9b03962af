/* Gradient by the weights of a convolution whose x has few channels, lying anywhere (a first
 * layer's images): see nv_conv_grad_w.cl.
 *
 * The product is transposed: rows are those of dw's row (c, r, s), columns 64 channels of dy, and
 * the sum runs over BAND rows of SEGMENT pixels of dy a stage.  x comes as lines, one for each row
 * of the image and channel that the stage sees, of 16-bit numbers, those that are ACROSS apart side
 * by side: what a tap sees is a run of such a line then, and two neighbours of it are a register of
 * the multiplier's left operand.  They begin at any number, so each line is there twice, once
 * shifted by one.
 *
 *   local memory, a stage: dy (PIXELS rows of 64, high and low), x (LINES lines x ACROSS phases x 2
 *   copies x LINE words, high, low)
 *
 * Each warp group of GROUPS multiplies 64 rows, two or four others fill.  BAND, SEGMENT, ... : the
 * sizes that places in local memory and in registers depend on are constants, a network has one
 * such layer. */
#define WARPS (FILLERS / 32)
#define PIXELS (BAND * SEGMENT)
#define X_ROWS ((BAND - 1) * DOWN + (TAPS_H - 1) * FAR_H + 1)
#define LINES (X_ROWS * CHANNELS)
#define LENGTH ((SEGMENT - 1) * ACROSS + (TAPS_W - 1) * FAR_W + 1)
#define PHASE (2 * LINE)                            /* words of both copies */
#define PARTS (TERMS == 3 ? 2 : 1)
#define Y_BYTES (PIXELS * 128)
#define X_BYTES (LINES * ACROSS * PHASE * 4)
#define STAGE ((Y_BYTES + X_BYTES) * PARTS + 1023 & ~1023)
#define X_TURNS ((LINES + WARPS - 1) / WARPS)       /* a warp brings every so many-th line, */
#define LOADS ((LENGTH + 31) / 32)                  /* an item every 32nd number of it, */
#define Y_ROWS (FILLERS / 8)
#define Y_TURNS                                                                                    \
    ((PIXELS + Y_ROWS - 1) / Y_ROWS) /* and eight channels of every 32nd or 64th pixel */
#define ALL (CHANNELS * TAPS_H * TAPS_W)

INLINE uint load_one(global const MEM *p, int there) {
#ifdef HALVES
    ushort v;
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\nmov.u16 %0, 0;\n@p ld.global.nc.u16 %0, [%1];\n"
        "}\n"
        : "=h"(v)
        : "l"(p), "r"(there));
#else
    uint v;
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\nmov.u32 %0, 0;\n@p ld.global.nc.u32 %0, [%1];\n"
        "}\n"
        : "=r"(v)
        : "l"(p), "r"(there));
#endif
    return v;
}
INLINE void store_half(uint at, uint v) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "h"((ushort)v) : "memory");
}
/* Number i of a phase of a line, into both copies.  The first has no place in the second one: it
 * falls past the other's end. */
INLINE void store_twice(uint phase, int i, uint v) {
    store_half(phase + 2 * i, v);
    store_half(phase + 4 * LINE + 2 * i - 2, v);
}
INLINE void put_one(uint v, float scale, float *most, uint phase, int i) {
#ifdef HALVES
    store_twice(phase, i, v);
#else
    float a = as_float(v);
#ifdef SCALED
    *most = fmax(*most, fabs(a));
    a *= scale;
#endif
    const uint h = PACK(a, 0.0f);
    store_twice(phase, i, h);
    if (TERMS == 3) store_twice(phase + X_BYTES, i, PACK(low_of(a, h, 0), 0.0f));
#endif
}

#ifdef JOINED
INLINE place unit_at(const sizes s, int tile_m, int tile_n, int unit) {
    return (place){ tile_n * 64 + unit / GROUPS, 0, (tile_m * GROUPS + unit % GROUPS) * 64 };
}
#endif

kernel GROUP(MULTIPLIERS + FILLERS) void grad_w(const sizes s, global const MEM *restrict x,
                                                global const MEM *restrict dy, global float *parts,
                                                global RESULT *dw, global ulong *counters) {
    local uchar memory[STAGES * STAGE] __attribute__((aligned(1024)));
    local ulong bars[2 * STAGES];
    local uint peak[2], scales[2], again;
    const int id = get_local_id(0), lane = id & 31, warp = id >> 5 & 3, role = id >> 7;
    const int tile_m = get_group_id(0) / (int)s.tiles_n, k0 = get_group_id(0) % (int)s.tiles_n * 64,
              K = (int)s.rows;
    const int first = (int)get_group_id(1) * (int)s.each,
              end = min(first + (int)s.each, (int)s.positions), steps = end - first;
    const uint full = LOCAL_AT(bars), empty = full + 8 * STAGES, base = LOCAL_AT(memory);
    if (!id) {
        for (int i = 0; i < STAGES; i++)
            nv_barrier_init(full + 8 * i, FILLERS), nv_barrier_init(empty + 8 * i, 4 * GROUPS);
        nv_barriers_made();
        peak[0] = peak[1] = 0;
        scales[0] = scales[1] = 127u << 23;
        again = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (role >= GROUPS) {
        const int me = id - MULTIPLIERS, first_line = me / 32, y_row = me / 8, c = me % 8 * 8,
                  y_left = K - k0 - c;
        const int height = (int)s.height, width = (int)s.width, high = (int)s.high,
                  wide = (int)s.wide;
        const int x_row = (int)s.x_row, x_channel = (int)s.x_channel;
        global const MEM *xp = x + s.x, *yp = dy + s.dy + k0 + c;
        const uint ya = base + y_row * 128 + (((y_row & 7) ^ (me % 8)) << 4),
                   xa = base + Y_BYTES * PARTS;
        uint vx[X_TURNS][LOADS], vy[Y_TURNS][WORDS];
        float mx = 0, my = 0, scale_x = 1, scale_y = 1;
        global const MEM *x_from;
        int image, p0, q0, w0, live;
        /* where stage t is */
#define FIND(t)                                                                                    \
    do {                                                                                           \
        const int u_ = first + (t);                                                                \
        live = u_ < end; \
        image = u_ / (BANDS * SEGMENTS); \
        p0 = u_ / SEGMENTS % BANDS * BAND; \
        q0 = u_ % SEGMENTS * SEGMENT; \
        w0 = q0 * ACROSS - (int)s.left + lane; \
        x_from = xp + image * (int)s.x_image + w0 * X_COLUMN; \
    } while (0)
#define BRING_X(i)                                                                                 \
    do {                                                                                           \
        const int line_ = first_line + WARPS * (i), h_ = p0 * DOWN - (int)s.up + line_ / CHANNELS; \
        const bool in_ = live && line_ < LINES && (uint)h_ < (uint)height;                         \
        global const MEM *from_ = x_from + (h_ * x_row + line_ % CHANNELS * x_channel);            \
        UNROLL                                                                                     \
        for (int e_ = 0; e_ < LOADS; e_++)                                                         \
            vx[i][e_] =                                                                            \
                load_one(from_ + e_ * 32 * X_COLUMN,                                               \
                         in_ && (uint)(w0 + e_ * 32) < (uint)width && lane + e_ * 32 < LENGTH);    \
    } while (0)
#define BRING_Y(i)                                                                                 \
    do {                                                                                           \
        const int row_ = y_row + Y_ROWS * (i), h_ = p0 + row_ / SEGMENT, c_ = q0 + row_ % SEGMENT; \
        const bool in_ = live && row_ < PIXELS && h_ < high && c_ < wide;                          \
        load_eight(vy[i], yp,                                                                      \
                   in_ ? image *(int)s.dy_image + h_ *(int)s.dy_row + c_ *(int)s.dy_column : -1,   \
                   y_left);                                                                        \
    } while (0)
#define PUT_X(i, stage)                                                                            \
    if (first_line + WARPS * (i) < LINES) UNROLL                                                   \
    for (int e_ = 0; e_ < LOADS; e_++) {                                                           \
        const int at_ = lane + e_ * 32;                                                            \
        const uint phase_ =                                                                        \
            xa + (stage)*STAGE + ((first_line + WARPS * (i)) * ACROSS + at_ % ACROSS) * PHASE * 4; \
        put_one(vx[i][e_], scale_x, &mx, phase_, at_ / ACROSS);                                    \
    }
#define PUT_Y(i, stage) \
        if (y_row + Y_ROWS * (i) < PIXELS) { \
            const uint to_ = ya + (stage) * STAGE + (i) * (FILLERS * 16); \
            put_eight(vy[i], scale_y, &my, to_, to_ + Y_BYTES, 0); \
        }
#define BRING() \
        do { \
            UNROLL for (int i_ = 0; i_ < X_TURNS; i_++) BRING_X(i_); \
            UNROLL for (int i_ = 0; i_ < Y_TURNS; i_++) BRING_Y(i_); \
        } while (0)
#ifdef SCALED
        for (int i = 0; i < 2; i++) {               /* a sample */
            FIND(i * (steps / 2));
            BRING();
            UNROLL
            for (int j = 0; j < X_TURNS; j++) UNROLL
            for (int e = 0; e < LOADS; e++) mx = fmax(mx, fabs(as_float(vx[j][e])));
            UNROLL
            for (int j = 0; j < Y_TURNS; j++) UNROLL
            for (int e = 0; e < 8; e++) my = fmax(my, fabs(as_float(vy[j][e])));
        }
        begin_scales(peak, scales, mx, my, me, FILLERS);
#endif
        int stage = 0;
        uint parity = 1;
        for (int round = 0; round < 2; round++) {
#ifdef SCALED
            scale_x = as_float(scales[0]);
            scale_y = as_float(scales[1]);
#endif
            FIND(0);
            BRING();
            for (int t = 0; t < steps; t++) {
                nv_barrier_wait(empty + 8 * stage, parity);
                FIND(t + 1);
                UNROLL for (int i = 0; i < X_TURNS; i++) {
                    PUT_X(i, stage);
                    BRING_X(i);
                }
                UNROLL for (int i = 0; i < Y_TURNS; i++) {
                    PUT_Y(i, stage);
                    BRING_Y(i);
                }
                nv_barrier_arrive(full + 8 * stage);
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
#ifdef SCALED
            if (!fill_again(peak, scales, &again, mx, my, me, round, FILLERS,
                            MULTIPLIERS + FILLERS))
                break;
#else
            break;
#endif
        }
        return;
    }
    /* this item's rows, where they begin in x's lines, in words; after the last: any place */
    const int m0 = (tile_m * GROUPS + role) * 64 + warp * 16 + lane / 4;
    uint begin[2];
    UNROLL for (int h = 0; h < 2; h++) {
        const int m = m0 + 8 * h < ALL ? m0 + 8 * h : 0, c = m / (TAPS_H * TAPS_W),
                  r = m / TAPS_W % TAPS_H, e = m % TAPS_W * FAR_W;
        const int line = r * FAR_H * CHANNELS + c, i = e / ACROSS;
        begin[h] = base + Y_BYTES * PARTS +
                   4 * ((line * ACROSS + e % ACROSS) * PHASE + i % 2 * LINE + i / 2 + lane % 4);
    }
    float acc[32];
#if TERMS == 3
    float sum[32];
#endif
    const ulong by = transposed128(base, 0);
    int stage = 0;
    uint parity = 0;
    for (int round = 0; round < 2; round++) {
        UNROLL for (int i = 0; i < 32; i++) acc[i] = 0;
#if TERMS == 3
        UNROLL for (int i = 0; i < 32; i++) sum[i] = 0;
#endif
        for (int t = 0; t < steps; t++) {
            uint a[2][PARTS][4];
            nv_barrier_wait(full + 8 * stage, parity);
            nv_proxy_fence();
            UNROLL for (int k = 0; k < PIXELS / 16; k++) {
                const uint at = stage * STAGE +
                                k / (SEGMENT / 16) * (DOWN * CHANNELS * ACROSS * PHASE * 4) +
                                k % (SEGMENT / 16) * 32;
                const ulong b = by + (uint)(stage * (STAGE >> 4) + k * 128);
                UNROLL for (int part = 0; part < PARTS; part++) UNROLL for (int i = 0; i < 4; i++)
                    a[k % 2][part][i] =
                        nv_local_load(begin[i % 2] + at + part * X_BYTES + i / 2 * 16);
                NV_WGMMA_FENCE();
                MULTIPLY(acc, a[k % 2][0], b);
#if TERMS == 3
                MULTIPLY(acc, a[k % 2][0], b + Y_BYTES / 16);
                MULTIPLY(acc, a[k % 2][1], b);
#endif
                NV_WGMMA_COMMIT();
                NV_WGMMA_WAIT(1);
            }
            NV_WGMMA_WAIT(0);
            if (!lane) nv_barrier_arrive(empty + 8 * stage);
            if (++stage == STAGES) {
                stage = 0;
                parity ^= 1;
            }
#if TERMS == 3
            UNROLL for (int i = 0; i < 32; i++) {
                sum[i] += acc[i];
                acc[i] = 0;
            }
#endif
        }
#ifdef SCALED
        float back_x, back_y;
        if (multiply_again(scales, &again, round, MULTIPLIERS + FILLERS, &back_x, &back_y))
            continue;
        UNROLL for (int i = 0; i < 32; i++) SUMS(i) = SUMS(i) * back_x * back_y;
#endif
        break;
    }
    const int pitch = (int)s.pitch;
    global float *mine = parts + s.parts + (long)get_group_id(1) * K * pitch;
    UNROLL for (int h = 0; h < 2; h++) {
        const int m = m0 + 8 * h;
        UNROLL for (int j = 0; j < 16; j++) {
            const int k = k0 + j / 2 * 8 + lane % 4 * 2 + j % 2;
            if (m < pitch && k < K) mine[(long)k * pitch + m] = SUMS(4 * (j / 2) + 2 * h + j % 2);
        }
    }
#ifdef JOINED
    finish(s, parts + s.parts, dw + s.dw, counters, (local float *)memory, &again, get_group_id(0),
           tile_m, k0 / 64, 64 * GROUPS, id);
#endif
}
