/* What the kernels of gradients by weights share (nv_conv_grad_w_taps.cl, _tiles.cl, _few.cl).
 *
 *   dw[k][tap][c] = sum over pixels p of dy[p][k] x[pixel that p sees through tap][c]
 *
 * The sum runs over pixels, in memory channels lie side by side: both operands have rows that run
 * along m and n, which wgmma takes of 16-bit elements only (the transposed form).  So f32 tensors
 * are rounded, or split into high and low, on their way into local memory, by warp groups of their
 * own (FILLERS items); others multiply.
 *
 *   TERMS 1   one number of 16 bits          3   high high + high low + low high
 *   SCALED    f16 made of f32: 11 digits as TF32's, 22 in two parts.  f16's range is small, so both
 *             tensors are multiplied by powers of two, guessed from a sample and checked when all
 *             has been read: the largest must have come out between 4 and 60000, else the group
 *             does its part once more, now knowing the largest.
 *
 * MEM: float, or ushort (then TERMS 1, not SCALED); PACK(a, b): two floats as 16 bits each.  Rows
 * of 64 elements are 128 bytes, 16-byte chunk c of row r at c ^ (r & 7); of 32 elements 64 bytes,
 * chunk c at c ^ (r / 2 & 3). */
#if TERMS == 3
#define SUMS(i) sum[i]
#else
#define SUMS(i) acc[i]
#endif

typedef struct sizes {
    long x, dy, parts, dw, counters;                /* where they begin */
#ifdef MAPS
    long maps;
#endif
    long positions, each; /* of all images; of a part of the sum, a multiple of 64 */
    long height, width, high, wide;                 /* of x, of dy */
    long tall, broad, tall_m, tall_s, broad_m,
        broad_s; /* rows and columns of positions, and to divide by them */
    long x_image, x_row, x_column, dy_image, dy_row, dy_column;
    long channels, rows;                            /* of x and dy, in a group */
    long down, across, up, left, far_h, far_w;      /* strides, pads, dilations */
    long taps, width_taps;
    long tiles_m, tiles_n;
    long ring, lead;
    long groups, transposed, x_channel;
    long splits, pitch;                             /* parts of the sum; floats of a row of them */
} sizes;

INLINE int nv_shuffle(int v, int lane) {
    int r;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(r) : "r"(v), "r"(lane));
    return r;
}
INLINE uint nv_quot(uint x, uint m, uint s) { return (uint)((ulong)x * m >> s); }

/* Eight neighbours; nothing there: zeros. */
#define WORDS (8 * sizeof(MEM) / 4)
INLINE void load_words(uint *v, global const void *p, int there) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.s32 p, %5, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\n"
        "mov.u32 %2, 0;\nmov.u32 %3, 0;\n"
        "@p ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];\n}\n"
        : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
        : "l"(p), "r"(there));
}
INLINE void load_eight(uint *v, global const MEM *p, int off, int left) {
    load_words(v, p + (off < 0 ? 0 : off), off >= 0 && left > 0);
    if (WORDS == 8) load_words(v + 4, p + (off < 0 ? 0 : off) + 4, off >= 0 && left > 4);
}
#ifndef HALVES
/* f32 come by asynchronous copies, into local memory after the stages: as many as there is room for
 * are on their way, and no register waits for them.  `lanes` neighbours bring a row, first its
 * first half, then the other: each instruction whole lines, since the second cache is asked for a
 * line's halves one by one.  Each takes eight neighbours of the row then, which others of its warp
 * brought; 16-byte pieces of the second half are swapped in pairs, so that they come out of
 * different banks. */
INLINE void nv_warp_meet(void) { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
INLINE void ask_row(uint row, global const float *p, int off, int left, int lane, int lanes) {
    p += off < 0 ? 0 : off;
    nv_copy16(row + lane * 16, p + lane * 4, off >= 0 && lane * 4 < left ? 16 : 0);
    nv_copy16(row + ((lanes + lane) ^ 1) * 16, p + (lanes + lane) * 4,
              off >= 0 && (lanes + lane) * 4 < left ? 16 : 0);
}
INLINE void take_eight(uint *v, uint row, int lane, int lanes) {
    const int second = 2 * lane >= lanes;
    nv_local_load4(v, row + (2 * lane ^ second) * 16);
    nv_local_load4(v + 4, row + ((2 * lane + 1) ^ second) * 16);
}
#endif
INLINE void store_words(uint at, uint a, uint b, uint c, uint d) {
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}
INLINE float low_of(float v, uint packed, int second) {
#ifdef SCALED
    float h;
    if (second)
        asm("{\n.reg .f16 l, h;\nmov.b32 {l, h}, %1;\ncvt.f32.f16 %0, h;\n}\n"
            : "=f"(h)
            : "r"(packed));
    else
        asm("{\n.reg .f16 l, h;\nmov.b32 {l, h}, %1;\ncvt.f32.f16 %0, l;\n}\n"
            : "=f"(h)
            : "r"(packed));
    return v - h;
#else
    return v - as_float(second ? packed & 0xffff0000u : packed << 16);
#endif
}
/* Into local memory at `at`, the low parts at `low`; twice when `also` is not 0 (that much
 * further). */
INLINE void put_eight(const uint *v, float scale, float *most, uint at, uint low, uint also) {
#if TERMS == 1 && !defined(SCALED) && defined(HALVES)
    store_words(at, v[0], v[1], v[2], v[3]);
    if (also) store_words(at + also, v[0], v[1], v[2], v[3]);
#else
    uint h[4], l[4];
    UNROLL for (int i = 0; i < 4; i++) {
        float a = as_float(v[2 * i]), b = as_float(v[2 * i + 1]);
#ifdef SCALED
        *most = fmax(fmax(*most, fabs(a)), fabs(b));
        a *= scale;
        b *= scale;
#endif
        h[i] = PACK(a, b);
        if (TERMS == 3) l[i] = PACK(low_of(a, h[i], 0), low_of(b, h[i], 1));
    }
    store_words(at, h[0], h[1], h[2], h[3]);
    if (also) store_words(at + also, h[0], h[1], h[2], h[3]);
    if (TERMS == 3) {
        store_words(low, l[0], l[1], l[2], l[3]);
        if (also) store_words(low + also, l[0], l[1], l[2], l[3]);
    }
#endif
}

/* An operand whose rows run along m or n: chunks of 64 (32) of them lie `apart` bytes from each
 * other, eight rows 1024 (512). */
INLINE ulong transposed128(uint at, uint apart) {
    return (ulong)((at >> 4) & 0x3fff) | (ulong)(apart >> 4) << 16 | (ulong)64 << 32 |
           (ulong)1 << 62;
}
INLINE ulong transposed64(uint at, uint apart) {
    return (ulong)((at >> 4) & 0x3fff) | (ulong)(apart >> 4) << 16 | (ulong)32 << 32 |
           (ulong)2 << 62;
}

/* The power of two that brings the largest, of these bits, to 2^to; of nothing or infinity: 1. */
INLINE uint scale_of(uint most, int to) {
    const int e = most >> 23;
    return (uint)(!most || e == 255 ? 127 : clamp(254 + to - e, 1, 253)) << 23;
}
INLINE float inverse_of(uint scale) { return as_float((254 - (scale >> 23)) << 23); }
INLINE bool fits(uint most, uint scale) {
    const float m = as_float(most) * as_float(scale);
    return !most || most >> 23 == 255 || (m >= 4 && m <= 60000);
}

#ifdef SCALED
/* Fillers: the first scales, by the largest numbers of a sample. */
INLINE void begin_scales(local uint *peak, local uint *scales, float a, float b, int me,
                         int fillers) {
    atomic_max(&peak[0], as_uint(a)), atomic_max(&peak[1], as_uint(b));
    nv_meet(1, fillers);
    if (me < 2) scales[me] = scale_of(peak[me], 3);
    nv_meet(1, fillers);
}
/* Fillers, when all has been read: whether it must be once more, with the scales that are then
 * right.  items: of the group. */
INLINE bool fill_again(local uint *peak, local uint *scales, local uint *again, float a, float b,
                       int me, int round, int fillers, int items) {
    atomic_max(&peak[0], as_uint(a)), atomic_max(&peak[1], as_uint(b));
    nv_meet(1, fillers);
    if (!me && !round) *again = !fits(peak[0], scales[0]) || !fits(peak[1], scales[1]);
    nv_meet(2, items);
    const uint redo = *again;
    nv_meet(2, items);
    if (!redo || round) return false;
    if (me < 2) scales[me] = scale_of(peak[me], 14);
    nv_meet(1, fillers);
    return true;
}
/* The others hear of it, and else what takes the scales back. */
INLINE bool multiply_again(local uint *scales, local uint *again, int round, int items,
                           float *back_a, float *back_b) {
    nv_meet(2, items);
    const uint redo = *again;
    *back_a = inverse_of(scales[0]);
    *back_b = inverse_of(scales[1]);
    nv_meet(2, items);
    return redo && !round;
}
#endif

#ifndef FEW
/* Multiplies all stages as they come, from a: stages of `stage_bytes`, 16 rows of it after 16, and
 * b: likewise, or with a ring of so many rows, of row_bytes, through that, from row `at` on. low_a,
 * low_b: how much further the low parts lie, in 16 bytes. */
INLINE void multiply_all(float *acc, float *sum, int steps, int id, uint full, uint empty,
                         int *stage, uint *parity, ulong a0, ulong b0, uint stage_bytes, uint low_a,
                         uint low_b, uint ring, uint row_bytes, uint at) {
    for (int t = 0; t < steps;) {
        const int begin = t, stop = TERMS == 3 ? min(steps, t + PROMOTE) : steps;
        for (; t < stop; t++) {
            nv_barrier_wait(full + 8 * *stage, *parity);
            nv_proxy_fence();
            NV_WGMMA_FENCE();
            UNROLL for (int k = 0; k < 4; k++) {
                const uint step = *stage * (stage_bytes >> 4) + k * 128;
                const ulong a = a0 + step, b = b0 + (ring ? at * (row_bytes / 16) : step);
                MULTIPLY(acc, a, b);
                if (TERMS == 3) {
                    MULTIPLY(acc, a, b + low_b);
                    MULTIPLY(acc, a + low_a, b);
                }
                at += 16;
                if (at >= ring) at -= ring;
            }
            NV_WGMMA_COMMIT();
            NV_WGMMA_WAIT(1);
            if (t > begin && !(id & 127))
                nv_barrier_arrive(empty + 8 * (*stage ? *stage - 1 : STAGES - 1));
            if (++*stage == STAGES) {
                *stage = 0;
                *parity ^= 1;
            }
        }
        NV_WGMMA_WAIT(0);
        if (!(id & 127)) nv_barrier_arrive(empty + 8 * (*stage ? *stage - 1 : STAGES - 1));
        if (TERMS == 3) UNROLL for (int i = 0; i < SUMMED; i++) {
            sum[i] += acc[i];
            acc[i] = 0;
        }
    }
}
#endif

#ifdef JOINED
/* Of a tile: how many of its groups have written their parts (the low 16 bits), how many of them
 * would not wait longer (16 more), and in which run (32).  After all these words there is a flag
 * for each group, in the order of their parts. */
#define ARRIVALS(word) ((uint)(word) & 0xffff)
#define LEFT(word) ((uint)(word) >> 16)
enum { LEAVES, ADDS_ITS_SHARE, ADDS_OTHERS_TOO };

INLINE ulong nv_add64(global ulong *p, ulong x) {
    ulong before;
    asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;"
                 : "=l"(before)
                 : "l"(p), "l"(x)
                 : "memory");
    return before;
}
INLINE ulong nv_swap64(global ulong *p, ulong was, ulong x) {
    ulong before;
    asm volatile("atom.acq_rel.gpu.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(before)
                 : "l"(p), "l"(was), "l"(x)
                 : "memory");
    return before;
}
INLINE ulong nv_look64(global ulong *p) {
    ulong x;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"(p) : "memory");
    return x;
}
INLINE long nv_clock(void) {
    long x;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(x));
    return x;
}

/* A group has written its part: it waits for the others of its tile, then adds its share of all
 * parts.  Usually they are on the device at once.  Should they not be, for another program has a
 * part of it, those that wait too long raise their flags and leave, for the last one, which never
 * waits, adds their shares too. */
INLINE int join(global ulong *word, global uint *flag, uint groups) {
    const ulong before = nv_add64(word, 1);
    const uint run = (uint)(before >> 32);
    if (ARRIVALS(before) == groups - 1) {
        nv_add64(word, ((ulong)1 << 32) - groups - ((ulong)LEFT(before) << 16));
        return LEFT(before) ? ADDS_OTHERS_TOO : ADDS_ITS_SHARE;
    }
    const long begin = nv_clock();
    for (;;) {
        const ulong now = nv_look64(word);
        if ((uint)(now >> 32) != run || ARRIVALS(now) == groups) return ADDS_ITS_SHARE;
        if (nv_clock() - begin < PATIENCE) continue;
        *(volatile global uint *)flag = 1;
        if (nv_swap64(word, now, now + (1 << 16)) == now) return LEAVES;
        *(volatile global uint *)flag = 0;
    }
}

/* One unit of a tile's result: WIDE x DEEP numbers, which lie in a part as WIDE x DEEP / 4 quads;
 * quad `lane` of a unit is kept with its numbers DEEP apart, so that all of a unit lie as
 * `place_of` knows them by their numbers.  Its kernel says where things are: */
typedef struct place {
    int k, tap, c, at;
} place; /* of a number in dw; at: in the unit's numbers as they are kept */
INLINE place place_of(const sizes s, int tile_m, int tile_n, int unit, int number);
INLINE int quad_at(const sizes s, int tile_m, int tile_n, int unit,
                   int lane); /* in a part; nothing there: -1 */
INLINE int parts_apart(const sizes s);

/* Adds the parts of one share of a tile, in a fixed order: `lanes` quads of each unit, in as many
 * turns as there are items for; through local memory, where they lie as in dw.  Each item has FOUR
 * quads, and asks for SOON parts of each at once: what counts is how many loads are on their way.
 */
#define FOUR 4
#define SOON 4
INLINE void add_parts(const sizes s, global const float *parts, global RESULT *dw,
                      local float *sums, int tile_m, int tile_n, int units, int share, int id) {
    const int splits = (int)s.splits, lanes = WIDE * DEEP / 4, C = (int)s.channels,
              taps = (int)s.taps;
    const int apart = parts_apart(s);                   /* all parts are less than 2 GiB */
    const int begin = units * share / splits, end = units * (share + 1) / splits;
    const int at_once = clamp(end - begin, 1, FOUR * MULTIPLIERS / lanes), all = at_once * lanes;
    const int turns = min(FOUR * MULTIPLIERS / all, splits);
    for (int first = begin; first < end; first += at_once) {
        int from[FOUR], turn[FOUR], to[FOUR];
        float4 x[FOUR], v[SOON][FOUR];
        UNROLL for (int i = 0; i < FOUR; i++) {
            const int task = (id + i * MULTIPLIERS) % all, unit = task / lanes, lane = task % lanes;
            turn[i] = (id + i * MULTIPLIERS) / all;
            const int at = turn[i] < turns && first + unit < end
                               ? quad_at(s, tile_m, tile_n, first + unit, lane)
                               : -1;
            from[i] = at < 0 ? 0 : at;
            to[i] = at < 0 ? -1
                           : turn[i] * all * 4 + unit * WIDE * DEEP + lane % (WIDE / 4) * 4 * DEEP +
                                 lane / (WIDE / 4);
            x[i] = (float4)(0);
        }
        for (int z = 0; z < splits; z += SOON * turns) {
            UNROLL for (int j = 0; j < SOON; j++) UNROLL for (int i = 0; i < FOUR; i++)
                v[j][i] = *(global const float4 *)(parts + (from[i] + min(z + j * turns + turn[i],
                                                                          splits - 1) *
                                                                          apart));
            UNROLL for (int j = 0; j < SOON; j++) UNROLL for (int i = 0; i < FOUR; i++)
                x[i] += z + j * turns + turn[i] < splits ? v[j][i] : (float4)(0);
        }
        UNROLL for (int i = 0; i < FOUR; i++) if (to[i] >= 0) {
            local float *at = sums + to[i];
            at[0] = x[i].x;
            at[DEEP] = x[i].y;
            at[2 * DEEP] = x[i].z;
            at[3 * DEEP] = x[i].w;
        }
        nv_meet(3, MULTIPLIERS);
        for (int i = id; i < at_once * WIDE * DEEP; i += MULTIPLIERS) {
            const int unit = i / (WIDE * DEEP);
            const place u = place_of(s, tile_m, tile_n, first + unit, i % (WIDE * DEEP));
            if (first + unit >= end || u.k >= (int)s.rows || u.c >= C || u.tap >= taps) continue;
            local const float *at = sums + unit * WIDE * DEEP + u.at;
            float r = at[0];
            for (int t = 1; t < turns; t++) r += at[t * all * 4];
            STORE(dw, ((long)u.k * C + u.c) * taps + u.tap, r);
        }
        nv_meet(3, MULTIPLIERS);
    }
}

#ifndef IN_ITEMS
/* Parts as the step of its own reads them, [k][tap][c]. */
INLINE place unit_at(const sizes s, int tile_m, int tile_n, int unit);
INLINE place place_of(const sizes s, int tile_m, int tile_n, int unit, int number) {
    const place u = unit_at(s, tile_m, tile_n, unit);
    return (place){ u.k, u.tap + number % DEEP, u.c + number / DEEP, number };
}
INLINE int quad_at(const sizes s, int tile_m, int tile_n, int unit, int lane) {
    const place u = unit_at(s, tile_m, tile_n, unit);
    const int c = u.c + lane % (WIDE / 4) * 4, tap = u.tap + lane / (WIDE / 4), taps = (int)s.taps,
              pitch = (int)s.pitch;
    return u.k < (int)s.rows && tap < taps && c < pitch ? (u.k * taps + tap) * pitch + c : -1;
}
INLINE int parts_apart(const sizes s) { return (int)(s.groups * s.rows * s.taps * s.pitch); }
#endif

/* The end of a group: its part is written, tile is the number of its tile. */
INLINE void finish(const sizes s, global const float *parts, global RESULT *dw,
                   global ulong *counters, local float *sums, local uint *how, int tile, int tile_m,
                   int tile_n, int units, int id) {
    const int share = get_group_id(1), splits = (int)s.splits;
    global uint *flags = (global uint *)(counters + s.counters + get_num_groups(0)) + tile * splits;
    nv_meet(
        3,
        MULTIPLIERS); /* the first item's fences stand for all that met before or meet after them */
    if (!id) {
        nv_fence_device();
        *how = splits > 1 ? join(counters + s.counters + tile, flags + share, (uint)splits)
                          : ADDS_ITS_SHARE;
        nv_fence_device();
    }
    nv_meet(3, MULTIPLIERS);
    if (*how == LEAVES) return;
    add_parts(s, parts, dw, sums, tile_m, tile_n, units, share, id);
    if (*how != ADDS_OTHERS_TOO) return;
    for (int z = 0; z < splits; z++) {
        if (!*(volatile global uint *)(flags + z)) continue;
        add_parts(s, parts, dw, sums, tile_m, tile_n, units, z, id);
        if (!id) flags[z] = 0;
    }
}
#endif
