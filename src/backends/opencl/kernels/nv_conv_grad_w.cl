/* What the kernels of gradients by weights share (nv_conv_grad_w_taps.cl, _tiles.cl, _few.cl).
 *
 *   dw[k][tap][c] = sum over pixels p of dy[p][k] x[pixel that p sees through tap][c]
 *
 * The sum runs over pixels, in memory channels lie side by side: both operands have rows that run along m and n, which wgmma
 * takes of 16-bit elements only (the transposed form).  So f32 tensors are rounded, or split into high and low, on their way into
 * local memory, by a warp group of its own (the filler); three others multiply.
 *
 *   TERMS 1   one number of 16 bits          3   high high + high low + low high
 *   SCALED    f16 made of f32: 11 digits as TF32's, 22 in two parts.  f16's range is small, so both tensors are multiplied by
 *             powers of two, guessed from a sample and checked when all has been read: the largest must have come out
 *             between 4 and 60000, else the group does its part once more, now knowing the largest.
 *
 * MEM: float, or ushort (then TERMS 1, not SCALED); PACK(a, b): two floats as 16 bits each.  Rows of 64 elements are 128 bytes,
 * 16-byte chunk c of row r at c ^ (r & 7); of 32 elements 64 bytes, chunk c at c ^ (r / 2 & 3). */
#define FILLERS 128
#if TERMS == 3
#define SUMS(i) sum[i]
#else
#define SUMS(i) acc[i]
#endif

typedef struct sizes {
    long x, dy, parts;                              /* where they begin */
    long positions, each;                           /* of all images; of a part of the sum, a multiple of 64 */
    long height, width, high, wide;                 /* of x, of dy */
    long tall, broad, tall_m, tall_s, broad_m, broad_s;     /* rows and columns of positions, and to divide by them */
    long x_image, x_row, x_column, dy_image, dy_row, dy_column;
    long channels, rows;                            /* of x and dy, in a group */
    long down, across, up, left, far_h, far_w;      /* strides, pads, dilations */
    long taps, width_taps;
    long tiles_m, tiles_n;
    long ring, lead;
    long groups, turned, x_channel;
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
    asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %5, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\nmov.u32 %2, 0;\nmov.u32 %3, 0;\n"
                 "@p ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];\n}\n"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "l"(p), "r"(there));
}
INLINE void load_eight(uint *v, global const MEM *p, int off, int left) {
    load_words(v, p + (off < 0 ? 0 : off), off >= 0 && left > 0);
    if (WORDS == 8) load_words(v + 4, p + (off < 0 ? 0 : off) + 4, off >= 0 && left > 4);
}
INLINE void store_words(uint at, uint a, uint b, uint c, uint d) {
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
INLINE float low_of(float v, uint packed, int second) {
#ifdef SCALED
    float h;
    if (second) asm("{\n.reg .f16 l, h;\nmov.b32 {l, h}, %1;\ncvt.f32.f16 %0, h;\n}\n" : "=f"(h) : "r"(packed));
    else asm("{\n.reg .f16 l, h;\nmov.b32 {l, h}, %1;\ncvt.f32.f16 %0, l;\n}\n" : "=f"(h) : "r"(packed));
    return v - h;
#else
    return v - as_float(second ? packed & 0xffff0000u : packed << 16);
#endif
}
/* Into local memory at `at`, the low parts at `low`; twice when `also` is not 0 (that much further). */
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
        a *= scale, b *= scale;
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

/* An operand whose rows run along m or n: chunks of 64 (32) of them lie `apart` bytes from each other, eight rows 1024 (512). */
INLINE ulong turned128(uint at, uint apart) {
    return (ulong)((at >> 4) & 0x3fff) | (ulong)(apart >> 4) << 16 | (ulong)64 << 32 | (ulong)1 << 62;
}
INLINE ulong turned64(uint at, uint apart) {
    return (ulong)((at >> 4) & 0x3fff) | (ulong)(apart >> 4) << 16 | (ulong)32 << 32 | (ulong)2 << 62;
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
