/* Convolution as a product on wgmma: rows of tiles are pixels, columns are channels of y.
 *
 * Pixels go from global memory straight into the registers that wgmma wants of its first operand:
 * lane 4 g + t of a warp reads 16 bytes of pixels g and g + 8, for each 64 bytes of channels; the
 * weights' terms are packed in the order that follows.  Weights come as ready images of local
 * memory by bulk copies, several k-tiles ahead.  One kernel for any window, stride, dilation and
 * padding: a k-tile is BK channels of one tap.
 *
 *   BM, BN, BK, ITEMS   rows, columns, terms of a k-tile; TEAMS of 128 items, each with 64 rows
 *                       (BM, ITEMS: in nv_conv_look.cl)
 *   STAGES              k-tiles of weights in local memory, each of STAGE bytes
 *   XMEM, X16           type of x's elements; it has 16 bits
 *   HALF, PACK2(a, b)   operands of 16 bits; two floats as one register, where x is f32 or FEW
 *   PARTS               2: high and low parts, three products (3XTF32)
 *   PROMOTE             k-tiles after which sums move to other registers: wgmma truncates when it
 *                       adds; 0: never
 *   AHEAD               one product runs while the next operands are made ready
 *   FEW                 x has so many channels (1 .. 4), anywhere: terms are [tap][4 channels]
 *   RAGGED              the last k-tile of a tap has less than BK channels
 *   SPLIT               sums are split along the k-tiles; the last group of a tile adds the parts,
 *                       in their order
 *   DEEP                images have a depth
 *   POOL                the largest of 2 x 2 neighbours is the result: nv_conv_rows_pool.cl
 *   MULTIPLY(d, a, b)   the instruction */
#if !defined(X16) || defined(FEW)
#define FLOATS 1
#else
#define FLOATS 0
#endif
#define LOADS                                                                                      \
    (BK / (FLOATS ? 16 : 32)) /* of 16 bytes: of a pixel's part of a k-tile, by one lane */
#define RAW (8 * LOADS)
#ifdef HALF
#define STEPS (BK / 16)
#else
#define STEPS (BK / 8)
#endif
#define TILE_BYTES (STAGE / PARTS)
#if STAGE / PARTS / BN == 128
#define DESCRIPTOR nv_descriptor128
#else
#define DESCRIPTOR nv_descriptor64
#endif
INLINE void load16_or_zero(uint *v, global const XMEM *p, int there) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.s32 p, %5, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\n"
        "mov.u32 %2, 0;\nmov.u32 %3, 0;\n"
        "@p ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];\n}\n"
        : "=&r"(v[0]), "=&r"(v[1]), "=&r"(v[2]), "=&r"(v[3])
        : "l"(p), "r"(there));
}

#ifdef FEW
INLINE void load_pixels(uint *raw, const look *s, const sight *v, walk *k, global const XMEM *x,
                        local const TAP *taps, int t) {
    UNROLL for (int j = 0; j < LOADS; j++) {
        const int4 tap = taps[k->tap * (BK / 4) + 4 * j + t];
        UNROLL for (int i = 0; i < 2; i++) {
            const int there = sees(s, v + i, tap);
            global const XMEM *from = x + (v[i].at + tap.s0);
            UNROLL for (int c = 0; c < 4; c++)
                raw[4 * (i * LOADS + j) + c] =
                    c < FEW ? load1_or_zero(from + c * s->channel, there) : 0;
        }
    }
    k->tap++;
}
#else
INLINE void load_pixels(uint *raw, const look *s, const sight *v, walk *k, global const XMEM *x,
                        local const TAP *taps, int t) {
    UNROLL for (int i = 0; i < 2; i++) {
        global const XMEM *from = x + (v[i].at + k->at);
        UNROLL for (int j = 0; j < LOADS; j++) {
#ifdef RAGGED
            const int there = k->block + (4 * j + t) * (int)(16 / sizeof(XMEM)) < s->channels &&
                              (v[i].inside >> k->tap & 1);
#else
            const int there = v[i].inside >> k->tap & 1;
#endif
            load16_or_zero(raw + 4 * (i * LOADS + j), from + j * (int)(64 / sizeof(XMEM)), there);
        }
    }
    if (++k->tap == s->all_taps) {
        k->tap = 0;
        k->block += BK;
    }
    k->at = taps[k->tap] + k->block;
}
#endif

/* Registers of the first operand, and the low parts of split numbers.  raw: [pixel g, g + 8][16
 * bytes][4]. */
INLINE void make_operand(const look *s, uint *a, uint *low, const uint *raw) {
    UNROLL
    for (int k = 0; k < STEPS; k++) UNROLL
    for (int h = 0; h < 2; h++) UNROLL
    for (int i = 0; i < 2; i++) {
#if defined(HALF) && FLOATS
        const uint *from = raw + 4 * (i * LOADS + k) + 2 * h;
        a[4 * k + 2 * h + i] = PACK2(as_float(from[0]), as_float(from[1]));
#else
        const uint from = raw[4 * (i * LOADS + k / 2) + 2 * (k & 1) + h];
#if defined(HALF) && defined(AHEAD)
        /* a register of its own: the next pixels are loaded while wgmma still reads this one, and
         * copies are seen through */
        a[4 * k + 2 * h + i] = from | s->zero;
#elif defined(HALF)
        a[4 * k + 2 * h + i] = from;
#elif PARTS == 2
        a[4 * k + 2 * h + i] = nv_high(as_float(from));
        low[4 * k + 2 * h + i] = nv_low(as_float(from));
#else
        a[4 * k + 2 * h + i] = nv_to_tf32(as_float(from));
#endif
#endif
    }
}

INLINE void multiply(float *sums, const uint *a, const uint *low, uint stage) {
    const ulong b = DESCRIPTOR(stage);
    NV_WGMMA_FENCE();
    UNROLL for (int k = 0; k < STEPS; k++) {
#if PARTS == 2
        MULTIPLY(sums, low + 4 * k, b + 2 * k);
        MULTIPLY(sums, a + 4 * k, b + 2 * k + (TILE_BYTES >> 4));
#endif
        MULTIPLY(sums, a + 4 * k, b + 2 * k);
    }
    NV_WGMMA_COMMIT();
}

/* The ring of stages: full[stage] counts bytes that came, empty[stage] teams that are done with it.
 */
typedef struct { uint base, full, empty, parity; int stage, i, n; global const uchar *from; } ring;

INLINE void fetch(const ring *r, int i, int stage) {
    nv_barrier_expect(r->full + 8 * stage, STAGE);
    nv_bulk_load(r->base + stage * STAGE, r->from + (size_t)i * STAGE, STAGE, r->full + 8 * stage);
}

/* Fetches into the stage of `back` k-tiles ago, which all teams are done with or soon will be. */
INLINE void refill(const ring *r, int back) {
    if (get_local_id(0) || r->i < back || r->i - back + STAGES >= r->n) return;
    const int wraps = r->stage < back, stage = r->stage - back + (wraps ? STAGES : 0);
    nv_barrier_wait(r->empty + 8 * stage, wraps ? r->parity ^ 1 : r->parity);
    fetch(r, r->i - back + STAGES, stage);
}

INLINE void release(const ring *r, int back) {
    if ((get_local_id(0) & 127) || r->i < back) return;
    nv_barrier_arrive(r->empty +
                      8 * (r->stage < back ? r->stage - back + STAGES : r->stage - back));
}

INLINE void next(ring *r) {
    r->i++;
    if (++r->stage == STAGES) {
        r->stage = 0;
        r->parity ^= 1;
    }
}

INLINE void promote(float *sums, float *whole) {
    UNROLL for (int q = 0; q < BN / 2; q++) {
        whole[q] += sums[q];
        sums[q] = 0;
    }
}

#define CONTEXT                                                                                    \
    const look *s, const sight *v, walk *k, global const XMEM *x, local const TAP *taps, int t
#define CONTEXT_ARGS s, v, k, x, taps, t
#ifdef AHEAD
#define BACK 2
/* a, low: this k-tile's operand, ready; raw1: what the next one's is made of; raw0 receives the one
 * after that. */
INLINE void advance(float *sums, float *whole, ring *r, uint *a0, uint *low0, uint *a1, uint *low1,
                    uint *raw0, uint *raw1, CONTEXT) {
    nv_barrier_wait(r->full + 8 * r->stage, r->parity);
    multiply(sums, a0, low0, r->base + r->stage * STAGE);
    if (r->i + 2 < r->n) load_pixels(raw0, CONTEXT_ARGS);
    refill(r, BACK);
    NV_WGMMA_WAIT(1);
    release(r, 1);
    if (r->i + 1 < r->n) make_operand(s, a1, low1, raw1);
#if PROMOTE
    if ((r->i & (PROMOTE - 1)) == PROMOTE - 1) {
        NV_WGMMA_WAIT(0);
        promote(sums, whole);
    }
#endif
    next(r);
}
#else
#define BACK 1
INLINE void advance(float *sums, float *whole, ring *r, uint *raw0, uint *raw1, CONTEXT) {
    uint a[4 * STEPS], low[PARTS == 2 ? 4 * STEPS : 1];
    if (r->i + 1 < r->n) load_pixels(raw1, CONTEXT_ARGS);
    make_operand(s, a, low, raw0);
    nv_barrier_wait(r->full + 8 * r->stage, r->parity);
    multiply(sums, a, low, r->base + r->stage * STAGE);
    refill(r, BACK);
    NV_WGMMA_WAIT(0);
    release(r, 0);
#if PROMOTE
    if ((r->i & (PROMOTE - 1)) == PROMOTE - 1) promote(sums, whole);
#endif
    next(r);
}
#endif

/* Columns in groups of 16; several together, so that their loads are on the way at once. */
#if EXTRAS < 2 || BN < 128 || defined(FEW) || defined(NORM)
#define TOGETHER 1
#elif TEAMS == 4
#define TOGETHER 2
#else
#define TOGETHER 4
#endif
INLINE void finish_tile(const look *s, const ends *e, float *sums, int row, int first, int t,
                        global RESULT *y EXTRA_PARAMS) {
    spot at[2];
    const int column = first % s->row_tiles * BN + 4 * t, group = first / s->row_tiles * s->rows;
    UNROLL for (int i = 0; i < 2; i++) {
        const pixel p = pixel_of(s, row + 8 * i);
        at[i] = spot_of(e, p.image, p.depth, p.row, p.column);
    }
    UNROLL for (int q0 = 0; q0 < BN / 16; q0 += TOGETHER) {
        more m[TOGETHER][2];
        UNROLL for (int q = 0; q < TOGETHER; q++) UNROLL for (int i = 0; i < 2; i++) {
            const int c = column + 16 * (q0 + q);
            if (c >= s->rows || row + 8 * i >= s->pixels) continue;
            more_of_channels(e, group + c, &m[q][i] EXTRA_ARGS);
            more_of_pixel(e, &at[i], group + c, &m[q][i] EXTRA_ARGS);
        }
        UNROLL for (int q = 0; q < TOGETHER; q++) {
#ifdef NORM
            float whole[2][4] = { { 0, 0, 0, 0 }, { 0, 0, 0, 0 } };
#endif
            UNROLL for (int i = 0; i < 2; i++) {
                const int c = column + 16 * (q0 + q), k = 8 * (q0 + q) + 2 * i;
                if (c >= s->rows || row + 8 * i >= s->pixels) continue;
                float v[4] = { sums[k], sums[k + 1], sums[k + 4], sums[k + 5] };
                finish4(v, &m[q][i]);
#ifdef NORM
                float along[4];
                norm4(v, along, &m[q][i]);
                UNROLL for (int j = 0; j < 4; j++) {
                    whole[0][j] += v[j];
                    whole[1][j] += along[j];
                }
#elif defined(MOMENTS)
                sums[k] = v[0];
                sums[k + 1] = v[1];
                sums[k + 4] = v[2];
                sums[k + 5] = v[3];
#endif
                store4(e, &at[i], group + c, v, y);
            }
#ifdef NORM
            float *const kept = sums + 8 * (q0 + q);
            UNROLL
            for (int i = 0; i < 2; i++) UNROLL
            for (int j = 0; j < 4; j++) kept[2 * i + 4 * (j / 2) + j % 2] = whole[i][j];
#endif
        }
    }
}
#ifdef MOMENTS
typedef struct { long at, channels; } places;
#define MOMENTS_PARAMS , global float *moments, const places left
#else
#define MOMENTS_PARAMS
#endif

kernel GROUP(ITEMS) void conv_rows(const look s, const ends e, global const XMEM *restrict x,
                                   global const uchar *restrict w,
                                   global RESULT *y SPLIT_PARAMS MOMENTS_PARAMS EXTRA_PARAMS) {
    local uchar tiles[STAGES * STAGE] __attribute__((aligned(1024)));
    local ulong barriers[2 * STAGES];
    local TAP taps[TAPS_MOST];
#ifdef SPLIT
    local uint last;
#endif
    const int item = get_local_id(0), g = (item & 31) >> 2, t = item & 3, first = get_group_id(0);
    const int row = get_group_id(1) * BM + (item >> 5) * 16 + g;
#ifdef SPLIT
    const int k0 = get_group_id(2) * s.each_k, rest = s.k_tiles - k0,
              n = rest < s.each_k ? rest : s.each_k;
#else
    const int k0 = 0, n = s.k_tiles;
#endif
    ring r = { LOCAL_AT(tiles), LOCAL_AT(barriers), LOCAL_AT(barriers) + 8 * STAGES, 0, 0, 0, n,
               w + s.w + ((size_t)first * s.k_tiles + k0) * STAGE };
    if (item == 0) {
        for (int i = 0; i < STAGES; i++) {
            nv_barrier_init(r.full + 8 * i, 1);
            nv_barrier_init(r.empty + 8 * i, TEAMS);
        }
        nv_barriers_made();
        for (int i = 0; i < STAGES && i < n; i++) fetch(&r, i, i);
    }
    fill_taps(&s, taps);
    sight v[2] = { sight_of(&s, row), sight_of(&s, row + 8) };
#ifndef FEW
    UNROLL for (int i = 0; i < 2; i++) v[i].at += t * (int)(16 / sizeof(XMEM));
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    walk k;
#ifdef FEW
    k.tap = k0;
    k.block = k.at = 0;
    x += s.x;
#else
    k.tap = s.all_taps ? k0 % s.all_taps : 0;
    k.block = s.all_taps ? k0 / s.all_taps * BK : 0;
    k.at = taps[k.tap] + k.block;
    x += s.x + (long)(first / s.row_tiles) * s.channels;
#endif
    float sums[BN / 2];
    float whole[PROMOTE ? BN / 2 : 1];
    uint raw0[RAW], raw1[RAW];
    UNROLL for (int q = 0; q < BN / 2; q++) sums[q] = 0;
    UNROLL for (int q = 0; q < (PROMOTE ? BN / 2 : 1); q++) whole[q] = 0;
#define STEP_ARGS &s, v, &k, x, taps, t
    if (n > 0) load_pixels(raw0, STEP_ARGS);
#ifdef AHEAD
    uint a0[4 * STEPS], a1[4 * STEPS], low0[PARTS == 2 ? 4 * STEPS : 1],
        low1[PARTS == 2 ? 4 * STEPS : 1];
    if (n > 1) load_pixels(raw1, STEP_ARGS);
    if (n > 0) make_operand(&s, a0, low0, raw0);
    while (r.i + 1 < n) {
        advance(sums, whole, &r, a0, low0, a1, low1, raw0, raw1, STEP_ARGS);
        advance(sums, whole, &r, a1, low1, a0, low0, raw1, raw0, STEP_ARGS);
    }
    if (r.i < n) advance(sums, whole, &r, a0, low0, a1, low1, raw0, raw1, STEP_ARGS);
    NV_WGMMA_WAIT(0);
#else
    while (r.i + 1 < n) {
        advance(sums, whole, &r, raw0, raw1, STEP_ARGS);
        advance(sums, whole, &r, raw1, raw0, STEP_ARGS);
    }
    if (r.i < n) advance(sums, whole, &r, raw0, raw1, STEP_ARGS);
#endif
#if PROMOTE
    UNROLL for (int q = 0; q < BN / 2; q++) sums[q] += whole[q];
#endif
#ifdef SPLIT
    if (!add_parts(sums, work + s.work, counters + s.counters, &last)) return;
#endif
#ifdef POOL
    finish_pooled(&s, &e, sums, row, first, t, y EXTRA_ARGS);
#else
    finish_tile(&s, &e, sums, row, first, t, y EXTRA_ARGS);
#endif
#ifdef MOMENTS
    barrier(CLK_LOCAL_MEM_FENCE);               /* nothing needs the weights any more */
    const int team = item >> 7, part = get_group_id(1) * TEAMS + team,
              channel = first / s.row_tiles * s.rows;
    const int parts = (s.pixels + 63) / 64, all = (int)left.channels,
              column = first % s.row_tiles * BN;
    moments += left.at;
    const int end = part < parts ? channel + s.rows : 0;        /* all meet */
    nv_moments(sums, row < s.pixels, row + 8 < s.pixels,
               (local float *)tiles + team * MOMENT_FLOATS, 0, item, channel + column, end, all,
               moments + (size_t)part * 2 * all, moments + (size_t)parts * 2 * all + part);
#endif
}
