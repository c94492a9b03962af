/* What kernels of convolutions on the matrix units share, whose rows are pixels (nv_conv_rows.cl,
 * nv_mma_conv.cl): where pixels and taps lie, and sums whose parts are done by several groups.
 *
 *   BM, BN, ITEMS           the tile, items of a group
 *   FEW, X16, DEEP, SPLIT   as those kernels have them
 *   POOL                    four rows are the pixels of a window of 2 x 2; out: how many windows
 *                           there are */
#define SUMS (BM * BN / ITEMS)                  /* of an item */
typedef struct {
    long x, w, work, counters;                  /* where they begin: elements; w: bytes */
    int image, step[3], channel;                /* of x */
    int in[3], out[3], origin[3], stride[3], far[3], taps[3];
    uint multiplier[3], shift[3];               /* quotients by out */
    int pixels, rows, channels, row_tiles, k_tiles, each_k, all_taps;
    int zero;                                   /* which the compiler must not know */
} look;

#ifdef FEW
#define TAPS_MOST 256
#define TAP int4
#else
#define TAPS_MOST 32
#define TAP int
#endif

INLINE uint quotient(uint x, uint multiplier, uint shift) {
    return (uint)((ulong)x * multiplier >> shift);
}

typedef struct { int image, depth, row, column; } pixel;
INLINE pixel pixel_of(const look *s, uint m) {
    pixel p;
#ifdef POOL
    const uint corner = m & 3;
    m >>= 2;
#endif
    const uint line = quotient(m, s->multiplier[2], s->shift[2]),
               plane = quotient(line, s->multiplier[1], s->shift[1]);
    p.column = m - line * s->out[2];
    p.row = line - plane * s->out[1];
#ifdef POOL
    p.column = 2 * p.column + (corner & 1);
    p.row = 2 * p.row + (corner >> 1);
#endif
#ifdef DEEP
    p.image = quotient(plane, s->multiplier[0], s->shift[0]);
    p.depth = plane - p.image * s->out[0];
#else
    p.image = plane;
    p.depth = 0;
#endif
    return p;
}

/* What is known of a pixel of y: where its tap 0 lies in x; which taps lie inside (FEW: where tap 0
 * is in the image). */
typedef struct {
    int at;
#ifdef FEW
    int depth, row, column;
#else
    uint inside;
#endif
} sight;
INLINE sight sight_of(const look *s, int m) {
    sight v;
    const pixel p = pixel_of(s, m);
    const int d = p.depth * s->stride[0] + s->origin[0], h = p.row * s->stride[1] + s->origin[1],
        w = p.column * s->stride[2] + s->origin[2];
    v.at = p.image * s->image + d * s->step[0] + h * s->step[1] + w * s->step[2];
#ifdef FEW
    v.depth = d;
    v.row = m < s->pixels ? h : -(1 << 29);
    v.column = w;
#else
    uint inside = 0, bit = 1;
    for (int a = 0; a < s->taps[0]; a++)
        for (int b = 0; b < s->taps[1]; b++)
            for (int c = 0; c < s->taps[2]; c++, bit <<= 1)
                if ((uint)(d + a * s->far[0]) < (uint)s->in[0] &&
                    (uint)(h + b * s->far[1]) < (uint)s->in[1] &&
                    (uint)(w + c * s->far[2]) < (uint)s->in[2])
                    inside |= bit;
    v.inside = m < s->pixels ? inside : 0;
#endif
    return v;
}

/* How far each tap lies from tap 0 (FEW: with its coordinates; taps after the last one lie
 * outside). */
INLINE void fill_taps(const look *s, local TAP *taps) {
    for (int i = get_local_id(0); i < TAPS_MOST; i += ITEMS) {
        const int t2 = max(s->taps[2], 1), t1 = max(s->taps[1], 1);
        const int c = i % t2, b = i / t2 % t1, a = i / t2 / t1;
        const int d = a * s->far[0], h = b * s->far[1], w = c * s->far[2];
        const int far = d * s->step[0] + h * s->step[1] + w * s->step[2];
#ifdef FEW
        taps[i] = i < s->all_taps ? (int4)(far, d, h, w) : (int4)(0, 0, -(1 << 29), 0);
#else
        taps[i] = far;
#endif
    }
}

/* Which k-tile is read next. */
typedef struct { int tap, block, at; } walk;

#ifdef FEW
INLINE int sees(const look *s, const sight *v, int4 tap) {
#ifdef DEEP
    if ((uint)(v->depth + tap.s1) >= (uint)s->in[0]) return 0;
#endif
    return (uint)(v->row + tap.s2) < (uint)s->in[1] && (uint)(v->column + tap.s3) < (uint)s->in[2];
}
#ifdef X16
INLINE float half_of(ushort x) {
    float v[2];
    nv_two_f16(v, x);
    return v[0];
}
#endif
INLINE uint load1_or_zero(global const XMEM *p, int there) {
#ifdef X16
    return there ? as_uint(X_AS_FLOAT(*p)) : 0;
#else
    uint v;
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\nmov.u32 %0, 0;\n@p ld.global.nc.u32 %0, [%1];\n"
        "}\n"
        : "=&r"(v)
        : "l"(p), "r"(there));
    return v;
#endif
}
#endif

#ifdef SPLIT
/* AT_ONCE: parts that are read together. */
#if SUMS <= 32
#define AT_ONCE 4
#elif SUMS <= 64
#define AT_ONCE 2
#else
#define AT_ONCE 1
#endif
#define SPLIT_PARAMS , global float *work, global uint *counters
/* Parts of a tile go to memory; the group that comes last adds them all in their order.  false:
 * this one did not. */
INLINE int add_parts(float *sums, global float *work, global uint *counter, local uint *last) {
    const int tile = get_group_id(1) * get_num_groups(0) + get_group_id(0),
              parts = get_num_groups(2), item = get_local_id(0);
    global float *mine = work + (size_t)tile * parts * (BM * BN) + item * 4;
    UNROLL for (int q = 0; q < SUMS / 4; q++)
        nv_store4(mine + (size_t)get_group_id(2) * (BM * BN) + q * (ITEMS * 4), sums[4 * q],
                  sums[4 * q + 1], sums[4 * q + 2], sums[4 * q + 3]);
    nv_fence_device();
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) *last = nv_count(counter + tile);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (*last != (uint)parts - 1) return 0;
    nv_fence_device();
    UNROLL for (int q = 0; q < SUMS; q++) sums[q] = 0;
    for (int z = 0; z < parts; z += AT_ONCE) {
        float v[AT_ONCE][SUMS / 4][4];
        UNROLL for (int u = 0; u < AT_ONCE; u++) UNROLL for (int q = 0; q < SUMS / 4; q++)
            nv_load4(v[u][q], mine + (size_t)(z + u < parts ? z + u : parts - 1) * (BM * BN) +
                                  q * (ITEMS * 4));
        UNROLL for (int u = 0; u < AT_ONCE; u++)
            if (z + u < parts) {
                UNROLL for (int q = 0; q < SUMS; q++) sums[q] += v[u][q / 4][q % 4];
            }
    }
    if (item == 0) counter[tile] = 0;
    return 1;
}
#else
#define SPLIT_PARAMS
#endif
