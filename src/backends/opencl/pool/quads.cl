/* Images with channels last: an item makes TP x TQ neighbouring pixels of four neighbouring
 * channels, which lie side by side, so what windows share is read once into registers, or again out
 * of the first cache by the items of the same group.
 *
 * In front of this: IN and OUT, tags of element types (f32, f16, bf16); KR, KS the window, SR, SS
 * its strides, DR, DS its dilations, PAD_R, PAD_S what is in front of the image; GRAD_X when `in`
 * is what windows make and `out` what they see (gradients by x: pixel i of `out` meets pixel a of
 * `in` by tap r when  i = a SR + r DR - PAD_R). */
#define UNROLL _Pragma("unroll")
#define MEMORY(tag) FAC_CAT(memory_, tag)
#define LOAD4(tag, p) FAC_CAT(load4_, tag)(p)
#define STORE4(tag, p, v) FAC_CAT(store4_, tag)(p, v)
/* what has no more digits than the type */
#define STORE_EXACT4(tag, p, v) FAC_CAT(store_exact4_, tag)(p, v)
#define LOAD1(tag, p, i) FAC_CAT(load1_, tag)(p, i)
#define STORE1(tag, p, i, v) FAC_CAT(store1_, tag)(p, i, v)
#define load1_f32(p, i) (p)[i]
#define load1_f16(p, i) fac_load_f16(p, i)
#define load1_bf16(p, i) fac_load_bf16(p, i)
#define store1_f32(p, i, v) (p)[i] = (v)
#define store1_f16(p, i, v) fac_store_f16(p, i, v)
#define store1_bf16(p, i, v) fac_store_bf16(p, i, v)

typedef float memory_f32;
typedef ushort memory_f16;
typedef ushort memory_bf16;

static inline float4 load4_f32(global const float *p) { return *(global const float4 *)p; }
static inline float4 load4_bf16(
    global const ushort *p) { /* words: conversions of single ones are slow */
    const uint2 two = *(global const uint2 *)p;
    return as_float4((uint4)(two.x << 16, two.x & 0xffff0000, two.y << 16, two.y & 0xffff0000));
}
static inline float4 load4_f16(global const ushort *p) {
    const ushort4 bits = *(global const ushort4 *)p;
    return (float4)(fac_from_f16(bits.x), fac_from_f16(bits.y), fac_from_f16(bits.z),
                    fac_from_f16(bits.w));
}
static inline void store4_f32(global float *p, float4 v) { *(global float4 *)p = v; }
static inline void store4_bf16(global ushort *p, float4 v) {
    *(global ushort4 *)p =
        (ushort4)(fac_bits_bf16(v.x), fac_bits_bf16(v.y), fac_bits_bf16(v.z), fac_bits_bf16(v.w));
}
#define store_exact4_f32 store4_f32
#define store_exact4_f16 store4_f16
static inline void store_exact4_bf16(global ushort *p, float4 v) {
    const uint4 bits = as_uint4(v);
    *(global uint2 *)p =
        (uint2)(bits.x >> 16 | (bits.y & 0xffff0000), bits.z >> 16 | (bits.w & 0xffff0000));
}
static inline void store4_f16(global ushort *p, float4 v) {
    *(global ushort4 *)p =
        (ushort4)(fac_bits_f16(v.x), fac_bits_f16(v.y), fac_bits_f16(v.z), fac_bits_f16(v.w));
}

/* What all these kernels begin with: places of their buffers, then these.  A group is `lanes`
 * neighbours of four channels times `across` x `down` tiles; `blocks` groups make a pixel's
 * channels. */
typedef struct { long n, h, w; } steps;
typedef struct { long height, width; steps step; } image;
typedef struct { long channels, lanes, blocks, across, down; image in, out; } quads;

/* The tile of an item; not live: after an edge. */
typedef struct { int image, p, q, channel; bool live; } spot;
static inline spot spot_of(const quads *g) {
    const int id = get_local_id(0), lanes = g->lanes, across = g->across, blocks = g->blocks,
              tile = id / lanes;
    const int block = get_group_id(0) % blocks, wide = get_group_id(0) / blocks;
    spot s = { .image = get_group_id(2), .channel = (block * lanes + id % lanes) * 4 };
    s.p = (get_group_id(1) * (int)g->down + tile / across) * TP;
    s.q = (wide * across + tile % across) * TQ;
    s.live = tile < across * (int)g->down && s.channel < g->channels && s.p < g->out.height &&
             s.q < g->out.width;
    return s;
}

/* Rows of `in` that a tile meets: ROWS of them from FIRST_ROW of it on, the same for columns; and
 * the tap by which row i of the tile meets row a of those: negative when none does. */
#ifdef GRAD_X
#define FLOOR_OF(a, b) (((a) + 1000 * (b)) / (b) - 1000)
#define FROM_ROW FLOOR_OF(PAD_R - (KR - 1) * DR + SR - 1, SR)
#define FROM_COLUMN FLOOR_OF(PAD_S - (KS - 1) * DS + SS - 1, SS)
#define ROWS ((TP - 1 + PAD_R) / SR - FROM_ROW + 1)
#define COLUMNS ((TQ - 1 + PAD_S) / SS - FROM_COLUMN + 1)
#define FIRST_ROW(p) ((p) / SR + FROM_ROW)
#define FIRST_COLUMN(q) ((q) / SS + FROM_COLUMN)
#define MEETS(i, a, K, S, D, PAD, FROM)                                                            \
    (((i) + PAD - ((a) + FROM) * S) >= 0 && ((i) + PAD - ((a) + FROM) * S) % D == 0 &&             \
             ((i) + PAD - ((a) + FROM) * S) / D < K                                                \
         ? ((i) + PAD - ((a) + FROM) * S) / D                                                      \
         : -1)
#define ROW_TAP(i, a) MEETS(i, a, KR, SR, DR, PAD_R, FROM_ROW)
#define LAST_ROW(i)                                                                                \
    (((i) + PAD_R) / SR - FROM_ROW) /* the last one that row i of the tile could meet */
#define COLUMN_TAP(j, b) MEETS(j, b, KS, SS, DS, PAD_S, FROM_COLUMN)
#else
#define ROWS ((TP - 1) * SR + (KR - 1) * DR + 1)
#define COLUMNS ((TQ - 1) * SS + (KS - 1) * DS + 1)
#define FIRST_ROW(p) ((p) * SR - PAD_R)
#define FIRST_COLUMN(q) ((q) * SS - PAD_S)
#define MEETS(i, a, K, S, D)                                                                       \
    ((a) >= (i)*S && ((a) - (i)*S) % D == 0 && ((a) - (i)*S) / D < K ? ((a) - (i)*S) / D : -1)
#define ROW_TAP(i, a) MEETS(i, a, KR, SR, DR)
#define LAST_ROW(i) ((i) * SR + (KR - 1) * DR)
#define COLUMN_TAP(j, b) MEETS(j, b, KS, SS, DS)
#endif

/* Four elements, or `fill` (zero or an infinity) where there are none.  PTX: NVIDIA's compiler
 * makes a branch of such a load, after which nothing is begun early; a predicate of the load itself
 * is none. */
#define FETCH4(tag, p, there, fill) FAC_CAT(fetch4_, tag)(p, there, fill)
#ifdef PTX
#if KR * KS > 9 /* in the order of the text */
#define FETCH_ASM asm volatile
#else
#define FETCH_ASM asm
#endif
static inline float4 fetch4_f32(global const float *p, bool there, float fill) {
    float4 v;
    FETCH_ASM("{\n.reg .pred p;\nsetp.ne.s32 p, %5, 0;\nmov.f32 %0, %6;\nmov.f32 %1, %6;\n"
        "mov.f32 %2, %6;\nmov.f32 %3, %6;\n"
        "@p ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];\n}"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
        : "l"(p), "r"((int)there), "f"(fill));
    return v;
}
static inline float4 fetch4_bf16(global const ushort *p, bool there, float fill) {
    const uint one = as_uint(fill) & 0xffff0000, both = one | one >> 16;
    uint2 two;
    FETCH_ASM("{\n.reg .pred p;\nsetp.ne.s32 p, %3, 0;\nmov.b32 %0, %4;\nmov.b32 %1, %4;\n"
        "@p ld.global.nc.v2.u32 {%0, %1}, [%2];\n}"
        : "=r"(two.x), "=r"(two.y)
        : "l"(p), "r"((int)there), "r"(both));
    return as_float4((uint4)(two.x << 16, two.x & 0xffff0000, two.y << 16, two.y & 0xffff0000));
}
#else
#define fetch4_f32(p, there, fill) ((there) ? load4_f32(p) : (float4)(fill))
#define fetch4_bf16(p, there, fill) ((there) ? load4_bf16(p) : (float4)(fill))
#endif
#define fetch4_f16(p, there, fill) ((there) ? load4_f16(p) : (float4)(fill))

/* Sums of four channels are made before what follows is begun: of large windows NVIDIA's compiler
 * would put off all products until all rows are there, which no registers can hold. */
#if defined(PTX) && KR * KS > 9
#define MADE4(sum) \
    asm volatile("" : "+f"((sum).x), "+f"((sum).y), "+f"((sum).z), "+f"((sum).w))
#else
#define MADE4(sum)
#endif

/* COLUMNS pixels of a row of `in`, which has so many rows; `fill` where there are none.  Without
 * branches, so that the next row is on its way while this one is worked on. */
#define SEE_ROW(seen, x, row, first, g, rows, fill)                                                \
    UNROLL                                                                                         \
    for (int b_ = 0; b_ < COLUMNS; b_++)                                                           \
    seen[b_] =                                                                                     \
        FETCH4(IN, (x) + ((row) * (int)(g).in.step.h + ((first) + b_) * (int)(g).in.step.w),       \
               (uint)(row) < (uint)(rows) && (uint)((first) + b_) < (uint)(g).in.width, fill)
