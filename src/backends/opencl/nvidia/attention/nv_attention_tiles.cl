/* What the kernels of attention share: numbers in memory and in the matrix units, tiles of rows as
 * wgmma reads them from local memory, how these get there, and how products leave.  After
 * nv_common.cl.
 *
 * Options: X the type of the operands (f32, bf16, f16); KIND what the units multiply (tf32, bf16,
 * f16); SAME: both are one; SPLIT: f32 as the sum of two tf32; ALIGNED: rows of X begin at
 * multiples of 16 bytes; M, BOOLS: the type of a mask; CHUNKS: 16 bytes of all results can be
 * stored at once; MAPS, PACK and further ones: see below. */
INLINE void put_chunk(uint a, uint4 v) {
    const uint x[] = { v.x, v.y, v.z, v.w };
    nv_local_store4(a, x);
}
INLINE float nv_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
INLINE float nv_other_lane(float x, int mask) {
    float y;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(y) : "f"(x), "r"(mask));
    return y;
}

INLINE uint nv_other_word(uint x, int mask) {
    uint y;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(y) : "r"(x), "r"(mask));
    return y;
}

/* One item of the four warps arrives: predicated, since ptxas lets no wgmma run on over a branch.
 */
INLINE void nv_barrier_arrive_if(uint b, bool arrives) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.u32 p, %1, 0;\n"
        "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}\n" ::
            "r"(b),
        "r"((uint)arrives)
        : "memory");
}
/* x, or -infinity where a > b: no branch, which would keep ptxas from letting wgmma run on. */
INLINE float nv_hidden(float x, int a, int b) {
    float y;
    asm("{\n.reg .pred p;\nsetp.gt.s32 p, %2, %3;\nselp.f32 %0, 0fFF800000, %1, p;\n}\n"
        : "=f"(y)
        : "f"(x), "r"(a), "r"(b));
    return y;
}

/* ---- types ---- */
typedef ushort memory_bf16;
typedef ushort memory_f16;
typedef float memory_f32;
typedef uchar memory_bool;
#define MEMORY(tag) FAC_CAT(memory_, tag)
INLINE float from_bf16(ushort x) { return as_float((uint)x << 16); }
INLINE float from_f16(ushort x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}
INLINE float from_f32(float x) { return x; }
INLINE void put_one_f32(global float *p, float x) { *p = x; }
INLINE void put_one_bf16(global ushort *p, float x) { *p = (ushort)nv_pack_bf16(x, 0); }
INLINE void put_one_f16(global ushort *p, float x) { *p = (ushort)nv_pack_f16(x, 0); }
INLINE void put_two_f32(global float *p, float x, float y) { *(global float2 *)p = (float2)(x, y); }
INLINE void put_two_bf16(global ushort *p, float x, float y) {
    *(global uint *)p = nv_pack_bf16(x, y);
}
INLINE void put_two_f16(global ushort *p, float x, float y) {
    *(global uint *)p = nv_pack_f16(x, y);
}
#define FROM(tag, x) FAC_CAT(from_, tag)(x)
/* The two numbers of a pair. */
INLINE void apart_bf16(float *x, uint p) {
    x[0] = as_float(p << 16);
    x[1] = as_float(p & 0xffff0000u);
}
INLINE void apart_f16(float *x, uint p) {
    x[0] = from_f16((ushort)p);
    x[1] = from_f16((ushort)(p >> 16));
}
#define LOG2E 1.44269504088896340736f
/* numbers of a kind: tf32, bf16, f16 */
#define size_tf32 4
#define size_bf16 2
#define size_f16 2
#define NUMBER FAC_CAT(size_, KIND)
#define PANEL (128 / NUMBER)            /* numbers in a row of a panel */
#define CHUNK (16 / NUMBER)
#define STEP (32 / NUMBER)              /* terms of one wgmma */
#define PANELS(n) (((n) + PANEL - 1) / PANEL)
/* SPLIT: numbers are the sum of two of TF32, whose tiles lie one after the other. */
#ifdef SPLIT
#define PARTS 2
#else
#define PARTS 1
#endif

INLINE uint4 chunk_of_tf32(const float *x) {
    return (uint4)(nv_to_tf32(x[0]), nv_to_tf32(x[1]), nv_to_tf32(x[2]), nv_to_tf32(x[3]));
}
INLINE uint4 chunk_of_bf16(const float *x) {
    return (uint4)(nv_pack_bf16(x[0], x[1]), nv_pack_bf16(x[2], x[3]), nv_pack_bf16(x[4], x[5]),
                   nv_pack_bf16(x[6], x[7]));
}
INLINE uint4 chunk_of_f16(const float *x) {
    return (uint4)(nv_pack_f16(x[0], x[1]), nv_pack_f16(x[2], x[3]), nv_pack_f16(x[4], x[5]),
                   nv_pack_f16(x[6], x[7]));
}
INLINE void chunk_parts(uint4 *v, const float *x) {
#ifdef SPLIT
    v[0] = (uint4)(nv_high(x[0]), nv_high(x[1]), nv_high(x[2]), nv_high(x[3]));
    v[1] = (uint4)(nv_low(x[0]), nv_low(x[1]), nv_low(x[2]), nv_low(x[3]));
#else
    *v = FAC_CAT(chunk_of_, KIND)(x);
#endif
}

/* CHUNK neighbours from p, of which n are there, in PARTS. */
INLINE void load_chunk(uint4 *v, global const MEMORY(X) *p, int n) {
    float x[CHUNK];
#if defined(ALIGNED) && defined(SAME)
    if (n >= CHUNK) {
        *v = *(global const uint4 *)p;
        return;
    }
#endif
#if defined(ALIGNED) && !defined(SAME)
    if (n >= CHUNK) {
        UNROLL for (int i = 0; i < CHUNK; i += 4) {
            const float4 f = *(global const float4 *)(p + i);
            x[i] = f.x;
            x[i + 1] = f.y;
            x[i + 2] = f.z;
            x[i + 3] = f.w;
        }
    } else
#endif
        UNROLL for (int i = 0; i < CHUNK; i++) x[i] = i < n ? FROM(X, p[i]) : 0;
    chunk_parts(v, x);
}

/* REGISTERS: of an item that multiplies; those that bring data are four warps that give most of
 * theirs away. */
#define ITEMS (128 * (GROUPS + 1))
#if GROUPS == 3
#define LEAST 32
#elif REGISTERS > 232
#define LEAST 24
#else
#define LEAST 40
#endif
#define LESS() asm volatile("//@alone\n"); NV_REGISTERS_LESS(LEAST)
#define MORE() NV_REGISTERS_MORE(REGISTERS)

/* MAPS: operands are brought from where they lie by tensor maps (nv_maps.cl); else by bulk copies
 * from images.  Either way one item asks for all. */
#ifdef MAPS
/* An operand as its map wants it: strides in numbers. */
#define ROWS_OF(x, a, batch_count, head_count, row_count, wide, box)                               \
    {                                                                                              \
        (ulong)((x) + (a).x), (uint)(wide), (uint)(row_count), (uint)(head_count),                 \
            (uint)(batch_count), 2 * (ulong)(a).x##_row, 2 * (ulong)(a).x##_head,                  \
            2 * (ulong)(a).x##_batch, (box)                                                        \
    }
/* n rows of a head, from `first` on. */
INLINE void bring_box(uint to, global const uchar *map, int panels, int n, int first, int head,
                      int batch, uint b) {
    for (int p = 0; p < panels; p++)
        nv_map_load(to + p * (n * 128), map, p * PANEL, first, head, batch, b);
}
#define STREAM MEMORY(X)
#else
#define STREAM uchar
#endif

INLINE ulong describe(uint a, uint lead) {
    return (ulong)((a >> 4) & 0x3fff) | (ulong)lead << 16 | (ulong)64 << 32 | (ulong)1 << 62;
}
/* Steps along rows of an operand of n rows; along those of a transposed operand that is x wide */
#define ALONG(i, n) ((i) / 4 * ((n) * 8) + (i) % 4 * 2)

#ifdef BLOCK
/* A product as it was left, 64 x BLOCK, as the A operand of the next one. */
INLINE void as_operand(uint *p, const float *s) {
#ifdef SPLIT
    UNROLL for (int i = 0; i < BLOCK / 2; i += 4) {
        const float x[] = { s[i], s[i + 2], s[i + 1], s[i + 3] };
        UNROLL
        for (int u = 0; u < 4; u++) {
            p[i + u] = nv_high(x[u]);
            p[BLOCK / 2 + i + u] = nv_low(x[u]);
        }
    }
#elif NUMBER == 4
    UNROLL for (int i = 0; i < BLOCK / 2; i += 4) {
        p[i] = nv_to_tf32(s[i]);
        p[i + 1] = nv_to_tf32(s[i + 2]);
        p[i + 2] = nv_to_tf32(s[i + 1]);
        p[i + 3] = nv_to_tf32(s[i + 3]);
    }
#else
    UNROLL
    for (int i = 0; i < BLOCK / 4; i++) p[i] = FAC_CAT(nv_pack_, KIND)(s[2 * i], s[2 * i + 1]);
#endif
}

/* Rows first and first + 8 of sums, `wide` numbers each, of which `size` are there. */
#if defined(CHUNKS) && defined(SAME)
#define STORED_AT_ONCE                                                                             \
    8 /* 16 bytes of y at once, where `wide` is a multiple of 32: four lanes have them together */
#else
#define STORED_AT_ONCE 2
#endif
/* v[i] of lane t and v[t] of lane i change places, of four lanes each.  By bits: compilers make a
 * choice between two places in memory of one between registers. */
INLINE void turn_pair(uint *x, uint *y, uint second, int lanes) {
    const uint all = -second, got = nv_other_word(*y ^ ((*x ^ *y) & all), lanes);
    *x ^= (*x ^ got) & all;
    *y = got ^ ((*y ^ got) & all);
}
INLINE void turn_words(uint *v, int t) {
    UNROLL for (int i = 0; i < 4; i += 2) turn_pair(v + i, v + i + 1, t & 1, 1);
    UNROLL for (int i = 0; i < 2; i++) turn_pair(v + i, v + i + 2, t >> 1, 2);
}
INLINE void put_rows(global MEMORY(X) * y, long step, int first, int rows, int size, int wide,
                     int t, const float *x, float factor) {
    UNROLL for (int k = 0; k < 2; k++) {
        const int row = first + 8 * k;
        global MEMORY(X) *to = y + row * step;
#if STORED_AT_ONCE == 8
        if (wide % 32 == 0) {
            UNROLL for (int i = 0; i < wide / 8; i += 4) {
                uint v[4];
                UNROLL for (int u = 0; u < 4; u++)
                    v[u] = FAC_CAT(nv_pack_, KIND)(x[4 * (i + u) + 2 * k] * factor,
                                                   x[4 * (i + u) + 2 * k + 1] * factor);
                turn_words(v, t);
                if (row < rows && 8 * (i + t) < size)
                    *(global uint4 *)(to + 8 * (i + t)) = (uint4)(v[0], v[1], v[2], v[3]);
            }
            continue;
        }
#endif
        if (row >= rows) continue;
        UNROLL for (int i = 0; i < wide / 8; i++) {
            const int col = 8 * i + 2 * t;
            const float x0 = x[4 * i + 2 * k] * factor, x1 = x[4 * i + 2 * k + 1] * factor;
#ifdef PAIRS
            if (col < size) FAC_CAT(put_two_, X)(to + col, x0, x1);
#else
            if (col < size) FAC_CAT(put_one_, X)(to + col, x0);
            if (col + 1 < size) FAC_CAT(put_one_, X)(to + col + 1, x1);
#endif
        }
    }
}
#endif

#ifdef M
/* What a mask adds to a score, in units of ln 2. */
INLINE float mask_at(global const MEMORY(M) *p) {
#ifdef BOOLS
    return *p ? 0.0f : -INFINITY;
#else
    return FROM(M, *p) * LOG2E;
#endif
}

/* Where the mask of head h of sequence b begins: sequences come in groups of m_each. */
#define IN_GROUP(a, b) ((b) % (int)(a).m_each)
#define GROUP_OF(a, b) ((b) / (int)(a).m_each)
#define MASK_OF(a, b, h)                                                                           \
    ((a).mask + GROUP_OF(a, b) * (a).m_group + IN_GROUP(a, b) * (a).m_batch + (h) * (a).m_head)
#endif

/* Which tiles of all heads a group of items takes, one after the other.  CAUSAL, where there are
 * more of them than groups: a long one and then the short one of the same head that makes up for
 * it, so that all pairs see about as many keys; 16 heads at a time, whose operands stay in the
 * cache; what has no partner comes last.  Else the long ones come first. */
typedef struct turn { int at, second; } turn;
#ifndef PACK
INLINE int pairs_of(int all, int tiles) {
    return all > (int)get_num_groups(0) ? tiles / 2 : 0;
} /* of a head */
INLINE turn first_turn(void) { const turn u = { (int)get_group_id(0), 0 }; return u; }
INLINE bool is_turn(turn u, int all, int tiles) {
#ifdef CAUSAL
    return u.at < all - pairs_of(all, tiles) * (all / tiles);
#else
    return u.at < all;
#endif
}
INLINE turn next_turn(turn u, int all, int tiles) {
    turn next = { u.at + (int)get_num_groups(0), 0 };
#ifdef CAUSAL
    if (!u.second && u.at < pairs_of(all, tiles) * (all / tiles)) {
        next.at = u.at;
        next.second = 1;
    }
#endif
    return next;
}
/* Its tile and its head. */
INLINE int2 place_of(turn u, int all, int tiles, bool last_is_long) {
#ifdef CAUSAL
    const int heads = all / tiles, pairs = pairs_of(all, tiles), single = u.at - pairs * heads;
    int tile, head;
    if (single < 0) {
        const int section = u.at / (16 * pairs), in = u.at % (16 * pairs);
        const int left = heads - section * 16, together = left < 16 ? left : 16,
                  pair = in / together;
        tile = u.second ? tiles - 1 - pair : pair;
        head = section * 16 + in % together;
    } else {
        tile = pairs + single / heads;
        head = single % heads;
    }
    return (int2)(last_is_long ? tiles - 1 - tile : tile, head);
#else
    return (int2)(u.at % tiles, u.at / tiles);
#endif
}
#endif

#ifdef PACK
/* Images of tiles of rows of x, as wgmma reads them from local memory: panels of ROWS rows of 128
 * bytes, whose eight chunks of 16 bytes are swizzled.  TRANSPOSED: panels of SIZE rows, one for
 * each number of x's rows, of 32 rows of x each. */
typedef struct args { long x, to, H, rows, tiles, size, batch, head, row; } args;
kernel void pack(const args a, global const MEMORY(X) *x, global uint4 *to) {
#ifdef TRANSPOSED
    const int lines = SIZE, panels = ROWS / PANEL;
#else
    const int lines = ROWS, panels = PANELS(SIZE);
#endif
    const int unit = (int)get_global_id(0);
#ifdef TRANSPOSED
    const int line = unit % lines, c = unit / lines % 8, panel = unit / lines / 8;
#else
    const int c = unit % 8, line = unit / 8 % lines, panel = unit / 8 / lines;
#endif
    if (panel >= panels) return;
    const int tile = (int)get_global_id(1);
    const long bh = get_global_id(2);
    global const MEMORY(X) *p = x + a.x + bh / a.H * a.batch + bh % a.H * a.head;
    uint4 v[PARTS];
#ifdef TRANSPOSED
    /* the A operand of P V is P as the product S left it: keys 2t, 2t + 1 of eight stand at t and t
     * + 4 */
    const int first = tile * ROWS + panel * PANEL + c / 2 * 8 + c % 2;
    float n[4];
    UNROLL for (int i = 0; i < 4; i++)
        n[i] = line < a.size && first + 2 * i < a.rows ? FROM(X, p[(first + 2 * i) * a.row + line])
                                                       : 0;
    chunk_parts(v, n);
#else
    const int row = tile * ROWS + line, at = panel * PANEL + c * CHUNK;
    load_chunk(v, p + row * a.row + at, row < a.rows ? (int)a.size - at : 0);
#endif
    UNROLL for (int k = 0; k < PARTS; k++)
        to[a.to + (((bh * a.tiles + tile) * PARTS + k) * panels + panel) * (lines * 8) + line * 8 +
           (c ^ (line & 7))] = v[k];
}
#endif

