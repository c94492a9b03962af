/* In front of kernels that are written once for all types of elements and all devices.  Options:
 *   T      the type computed in: float, double, long or ulong
 *   V      how many neighbours a work item takes at once: a vector's worth on CPUs, at most 16
 *          bytes on GPUs
 *   ALIGNED  lines are whole vectors, which begin at multiples of V elements: each comes in one
 *            access
 *   TAILS  with ALIGNED: but the last of a line, which may be shorter
 *   WIDE   places are numbers of 64 bits
 * A type of memory has a tag: f32, bf16, u8 ...  MEMORY(tag) names it; LOAD(tag, p, i), STORE(tag,
 * p, i, v) convert to and from T, LOADV and STOREV do so for V neighbours.  LOADER(name, tag) and
 * STORER(name, tag) make functions for n of them, where fewer may be left; what is not there reads
 * as `fill`. */
#ifdef WIDE
typedef long pos;
#else
typedef int pos;
#endif

#define MEMORY(tag) FAC_CAT(memory_, tag)
#define LOAD(tag, p, i) FAC_CAT(load_, tag)(p, i)
#define STORE(tag, p, i, v) FAC_CAT(store_, tag)(p, i, v)
#define LOADV(tag, p, i) FAC_CAT(loads_, tag)(p, i)
#define STOREV(tag, p, i, v) FAC_CAT(stores_, tag)(p, i, v)

/* A number that came as the bits of a T. */
#define bits_float(w) as_float((int)(w))
#define bits_double(w) as_double(w)
#define bits_long(w) (w)
#define bits_ulong(w) as_ulong(w)
#define REAL(w) FAC_CAT(bits_, T)(w)

typedef float memory_f32;
typedef ushort memory_f16;
typedef ushort memory_bf16;
typedef char memory_i8;
typedef uchar memory_u8;
typedef uchar memory_bool;
typedef short memory_i16;
typedef ushort memory_u16;
typedef int memory_i32;
typedef uint memory_u32;
typedef long memory_i64;
typedef ulong memory_u64;
#ifdef FAC_FP64
typedef double memory_f64;
#endif

/* ---- one ---- */

#define load_plain(p, i) ((T)(p)[i])
#define load_f16(p, i) ((T)fac_load_f16(p, (ulong)(i)))
#define load_bf16(p, i) ((T)fac_load_bf16(p, (ulong)(i)))
#define load_f32 load_plain
#define load_f64 load_plain
#define load_i8 load_plain
#define load_u8 load_plain
#define load_bool load_plain
#define load_i16 load_plain
#define load_u16 load_plain
#define load_i32 load_plain
#define load_u32 load_plain
#define load_i64 load_plain
#define load_u64 load_plain

#define store_f32(p, i, v) ((p)[i] = (float)(v))
#define store_f64(p, i, v) ((p)[i] = (double)(v))
#define store_f16(p, i, v) fac_store_f16(p, (ulong)(i), (float)(v))
#define store_bf16(p, i, v) fac_store_bf16(p, (ulong)(i), (float)(v))
#define store_i8(p, i, v) ((p)[i] = (char)(v))
#define store_u8(p, i, v) ((p)[i] = (uchar)(v))
#define store_bool(p, i, v) ((p)[i] = (uchar)((v) != 0))
#define store_i16(p, i, v) ((p)[i] = (short)(v))
#define store_u16(p, i, v) ((p)[i] = (ushort)(v))
#define store_i32(p, i, v) ((p)[i] = (int)(v))
#define store_u32(p, i, v) ((p)[i] = (uint)(v))
#define store_i64(p, i, v) ((p)[i] = (long)(v))
#define store_u64(p, i, v) ((p)[i] = (ulong)(v))

/* ---- V at once ---- */

#if V == 1

typedef T TV;
typedef union { TV v; T lane[1]; } lanes;
#define loads_f16 load_f16
#define loads_bf16 load_bf16
#define loads_f32 load_plain
#define loads_f64 load_plain
#define loads_i8 load_plain
#define loads_u8 load_plain
#define loads_bool load_plain
#define loads_i16 load_plain
#define loads_u16 load_plain
#define loads_i32 load_plain
#define loads_u32 load_plain
#define loads_i64 load_plain
#define loads_u64 load_plain
#define stores_bf16 store_bf16
#define stores_f32 store_f32
#define stores_f64 store_f64
#define stores_f16 store_f16
#define LOADER(name, tag) \
    static inline TV name(global const MEMORY(tag) *p, pos n, T fill) { return LOAD(tag, p, 0); }
#define STORER(name, tag) \
    static inline void name(global MEMORY(tag) *p, pos n, TV v) { STORE(tag, p, 0, v); }
#define STORE_LANES(tag, p, i, x) STORE(tag, p, i, x)

#else

typedef FAC_CAT(T, V) TV;
typedef union { TV v; T lane[V]; } lanes;
#define VECTOR(name) FAC_CAT(name, V)
#define CONVERT(type) VECTOR(FAC_CAT(convert_, type))
#ifdef ALIGNED
#define MANY(type, p, i) (*(global const VECTOR(type) *)((p) + (i)))
#define MANY_TO(type, p, i, x) (*(global VECTOR(type) *)((p) + (i)) = CONVERT(type)(x))
#if V != 8
#define loads_f16(p, i) CONVERT(T)(VECTOR(vloada_half)(0, (global const half *)((p) + (i))))
#define stores_f16(p, i, x)                                                                        \
    FAC_CAT(VECTOR(vstorea_half), _rte)(CONVERT(float)(x), 0, (global half *)((p) + (i)))
#endif
#else
#define MANY(type, p, i) VECTOR(vload)(0, (p) + (i))
#define MANY_TO(type, p, i, x) VECTOR(vstore)(CONVERT(type)(x), 0, (p) + (i))
#define loads_f16(p, i) CONVERT(T)(VECTOR(vload_half)(0, (global const half *)((p) + (i))))
#define stores_f16(p, i, x)                                                                        \
    FAC_CAT(VECTOR(vstore_half), _rte)(CONVERT(float)(x), 0, (global half *)((p) + (i)))
#endif
#if V == 8 && defined(ALIGNED)
/* Eight elements of 16 bits come and go as four words: of a vector of eight numbers compilers make
 * two accesses. */
#define WORDS_OF_EIGHT
static inline TV seen_bf16(uint4 words) {
    uint8 bits;
    bits.even = words << 16;
    bits.odd = words & 0xffff0000;
    return CONVERT(T)(as_float8(bits));
}
static inline TV seen_f16(uint4 words) {
    union { uint4 words; ushort each[8]; } from = { .words = words };
    union { float8 v; float lane[8]; } r;
    for (int l = 0; l < 8; l++) r.lane[l] = fac_from_f16(from.each[l]);
    return CONVERT(T)(r.v);
}
static inline uint4 words_f16(float8 v) {
    union { float8 v; float lane[8]; } from = { .v = v };
    union { uint4 words; ushort each[8]; } r;
    for (int l = 0; l < 8; l++) r.each[l] = fac_bits_f16(from.lane[l]);
    return r.words;
}
#define loads_bf16(p, i) seen_bf16(come_bf16(p, i))
#define loads_f16(p, i) seen_f16(come_f16(p, i))
#define stores_bf16(p, i, x) (*(global uint4 *)((p) + (i)) = words_bf16(CONVERT(float)(x)))
#define stores_f16(p, i, x) (*(global uint4 *)((p) + (i)) = words_f16(CONVERT(float)(x)))
#ifdef FAC_NV_BF16
static inline uint4 words_bf16(float8 v) {
    union { float8 v; float lane[8]; } from = { .v = v };
    union { uint4 words; uint pair[4]; } to;
    for (int l = 0; l < 4; l++)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
            : "=r"(to.pair[l])
            : "f"(from.lane[2 * l + 1]), "f"(from.lane[2 * l]));
    return to.words;
}
#else
static inline uint4 words_bf16(float8 v) {
    const uint8 u = as_uint8(v),
                bits = select((u + 0x7fff + (u >> 16 & 1)) >> 16, u >> 16 | 64, v != v);
    return bits.even | bits.odd << 16;
}
#endif
#else
#define loads_bf16(p, i) CONVERT(T)(VECTOR(as_float)(CONVERT(uint)(MANY(ushort, p, i)) << 16))
#define stores_bf16(p, i, x) MANY_TO(ushort, p, i, bits_bf16(CONVERT(float)(x)))
#ifdef FAC_NV_BF16
static inline VECTOR(ushort) bits_bf16(VECTOR(float) v) {
    union { VECTOR(float) v; float lane[V]; } from = { .v = v };
    union { VECTOR(ushort) v; uint pair[V / 2]; } to;
    for (int l = 0; l < V / 2; l++)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
            : "=r"(to.pair[l])
            : "f"(from.lane[2 * l + 1]), "f"(from.lane[2 * l]));
    return to.v;
}
#else
static inline VECTOR(uint) bits_bf16(VECTOR(float) v) {
    const VECTOR(uint) u = VECTOR(as_uint)(v);
    return select((u + 0x7fff + (u >> 16 & 1)) >> 16, u >> 16 | 64, v != v);
}
#endif
#endif
#define loads_f32(p, i) CONVERT(T)(MANY(float, p, i))
#define loads_f64(p, i) CONVERT(T)(MANY(double, p, i))
#define loads_i8(p, i) CONVERT(T)(MANY(char, p, i))
#define loads_u8(p, i) CONVERT(T)(MANY(uchar, p, i))
#define loads_bool(p, i) CONVERT(T)(MANY(uchar, p, i))
#define loads_i16(p, i) CONVERT(T)(MANY(short, p, i))
#define loads_u16(p, i) CONVERT(T)(MANY(ushort, p, i))
#define loads_i32(p, i) CONVERT(T)(MANY(int, p, i))
#define loads_u32(p, i) CONVERT(T)(MANY(uint, p, i))
#define loads_i64(p, i) CONVERT(T)(MANY(long, p, i))
#define loads_u64(p, i) CONVERT(T)(MANY(ulong, p, i))
#define stores_f32(p, i, x) MANY_TO(float, p, i, x)
#define stores_f64(p, i, x) MANY_TO(double, p, i, x)
#define STORE_LANES(tag, p, i, x) \
    do { \
        lanes each = { .v = (x) }; \
        for (int l = 0; l < V; l++) STORE(tag, p, (i) + l, each.lane[l]); \
    } while (0)
#if defined(ALIGNED) && !defined(TAILS)
#define LOADER(name, tag) \
    static inline TV name(global const MEMORY(tag) *p, pos n, T fill) { return LOADV(tag, p, 0); }
#define STORER(name, tag) \
    static inline void name(global MEMORY(tag) *p, pos n, TV v) { STOREV(tag, p, 0, v); }
#else
#define LOADER(name, tag) \
    static inline TV name(global const MEMORY(tag) *p, pos n, T fill) { \
        if (n >= V) return LOADV(tag, p, 0); \
        lanes r; \
        for (int l = 0; l < V; l++) r.lane[l] = l < n ? LOAD(tag, p, l) : fill; \
        return r.v; \
    }
#define STORER(name, tag) \
    static inline void name(global MEMORY(tag) *p, pos n, TV v) { \
        if (n >= V) { \
            STOREV(tag, p, 0, v); \
            return; \
        } \
        lanes r = { .v = v }; \
        for (int l = 0; l < V; l++) \
            if (l < n) STORE(tag, p, l, r.lane[l]); \
    }
#endif

#endif

#define stores_i8(p, i, x) STORE_LANES(i8, p, i, x)
#define stores_u8(p, i, x) STORE_LANES(u8, p, i, x)
#define stores_bool(p, i, x) STORE_LANES(bool, p, i, x)
#define stores_i16(p, i, x) STORE_LANES(i16, p, i, x)
#define stores_u16(p, i, x) STORE_LANES(u16, p, i, x)
#define stores_i32(p, i, x) STORE_LANES(i32, p, i, x)
#define stores_u32(p, i, x) STORE_LANES(u32, p, i, x)
#define stores_i64(p, i, x) STORE_LANES(i64, p, i, x)
#define stores_u64(p, i, x) STORE_LANES(u64, p, i, x)

/* ---- V that have been asked for ---- */

/* CAME(tag): V neighbours as they come, COME(tag, p, i) asks for them, SEEN(tag, c) are the
 * numbers.  What is only kept in a register nothing waits for, while a conversion would. */
#define CAME(tag) FAC_CAT(came_, tag)
#define COME(tag, p, i) FAC_CAT(come_, tag)(p, i)
#define SEEN(tag, c) FAC_CAT(seen_, tag)(c)
typedef TV came_f32;
#define come_f32 loads_f32
#define seen_f32(c) (c)
#ifdef FAC_FP64
typedef TV came_f64;
#define come_f64 loads_f64
#define seen_f64(c) (c)
#endif
#ifdef WORDS_OF_EIGHT
typedef uint4 came_bf16, came_f16;
#define come_bf16(p, i) (*(global const uint4 *)((p) + (i)))
#define come_f16 come_bf16
#else
typedef TV came_bf16, came_f16;
#define come_bf16 loads_bf16
#define come_f16 loads_f16
#define seen_bf16(c) (c)
#define seen_f16(c) (c)
#endif
