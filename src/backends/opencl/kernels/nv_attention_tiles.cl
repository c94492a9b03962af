/* What the kernels of attention share: numbers in memory and in the matrix units, tiles of rows as wgmma reads them from local
 * memory, how these get there, and how products leave.  Behind nv_common.cl.
 *
 * Options: X the type of the operands (f32, bf16, f16); KIND what the units multiply (tf32, bf16, f16); SAME: both are one; SPLIT:
 * f32 as the sum of two tf32; ALIGNED: rows of X begin at multiples of 16 bytes; M, BOOLS: the type of a mask; DIRECT, PACK and
 * further ones: see below. */
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

/* One item of the four warps arrives: predicated, since ptxas lets no wgmma run on over a branch. */
INLINE void nv_barrier_arrive_if(uint b, bool arrives) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %1, 0;\n@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}\n"
                 ::"r"(b), "r"((uint)arrives) : "memory");
}
/* x, or -infinity where a > b: no branch, which would keep ptxas from letting wgmma run on. */
INLINE float nv_hidden(float x, int a, int b) {
    float y;
    asm("{\n.reg .pred p;\nsetp.gt.s32 p, %2, %3;\nselp.f32 %0, 0fFF800000, %1, p;\n}\n" : "=f"(y) : "f"(x), "r"(a), "r"(b));
    return y;
}

/* ---- types ---- */
typedef ushort memory_bf16;
typedef ushort memory_f16;
typedef float memory_f32;
typedef uchar memory_bool;
#define MEMORY(tag) FAC_CAT(memory_, tag)
INLINE float from_bf16(ushort x) { return as_float((uint)x << 16); }
INLINE float from_f16(ushort x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y; }
INLINE float from_f32(float x) { return x; }
INLINE void put_one_f32(global float *p, float x) { *p = x; }
INLINE void put_one_bf16(global ushort *p, float x) { *p = (ushort)nv_pack_bf16(x, 0); }
INLINE void put_one_f16(global ushort *p, float x) { *p = (ushort)nv_pack_f16(x, 0); }
INLINE void put_two_f32(global float *p, float x, float y) { *(global float2 *)p = (float2)(x, y); }
INLINE void put_two_bf16(global ushort *p, float x, float y) { *(global uint *)p = nv_pack_bf16(x, y); }
INLINE void put_two_f16(global ushort *p, float x, float y) { *(global uint *)p = nv_pack_f16(x, y); }
#define FROM(tag, x) FAC_CAT(from_, tag)(x)
/* The two numbers of a pair. */
INLINE void apart_bf16(float *x, uint p) { x[0] = as_float(p << 16), x[1] = as_float(p & 0xffff0000u); }
INLINE void apart_f16(float *x, uint p) { x[0] = from_f16((ushort)p), x[1] = from_f16((ushort)(p >> 16)); }
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
/* SPLIT: numbers are the sum of two of TF32, whose tiles lie one behind the other. */
#ifdef SPLIT
#define PARTS 2
#else
#define PARTS 1
#endif

INLINE uint4 chunk_of_tf32(const float *x) {
    return (uint4)(nv_to_tf32(x[0]), nv_to_tf32(x[1]), nv_to_tf32(x[2]), nv_to_tf32(x[3]));
}
INLINE uint4 chunk_of_bf16(const float *x) {
    return (uint4)(nv_pack_bf16(x[0], x[1]), nv_pack_bf16(x[2], x[3]), nv_pack_bf16(x[4], x[5]), nv_pack_bf16(x[6], x[7]));
}
INLINE uint4 chunk_of_f16(const float *x) {
    return (uint4)(nv_pack_f16(x[0], x[1]), nv_pack_f16(x[2], x[3]), nv_pack_f16(x[4], x[5]), nv_pack_f16(x[6], x[7]));
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
            x[i] = f.x, x[i + 1] = f.y, x[i + 2] = f.z, x[i + 3] = f.w;
        }
    } else
#endif
        UNROLL for (int i = 0; i < CHUNK; i++) x[i] = i < n ? FROM(X, p[i]) : 0;
    chunk_parts(v, x);
}

/* REGISTERS: of an item that multiplies; those that bring data are four warps that give most of theirs away. */
#define ITEMS (128 * (GROUPS + 1))
#define LEAST (GROUPS == 3 ? 32 : REGISTERS > 232 ? 24 : 40)
#define LESS() asm volatile("//@alone\n"); NV_REGISTERS_LESS(LEAST)
#define MORE() NV_REGISTERS_MORE(REGISTERS)

/* Rows of one head where they lie, of the type that the units multiply: rows first .. first + n - 1 by 128 items, 16 bytes each;
 * what is not there as zeros. */
typedef struct lines { global const MEMORY(X) *x; long step; int rows, size, panels; } lines;
INLINE void bring_rows(uint to, lines l, int first, int n, int item) {
    const int c = item & 7, r = item >> 3;
    to += r * 128 + ((c ^ (r & 7)) << 4);
    for (int p = 0; p < l.panels; p++) {
        const int left = NUMBER * (l.size - p * PANEL) - 16 * c, bytes = left < 0 ? 0 : left > 16 ? 16 : left;
        global const MEMORY(X) *from = l.x + (bytes ? p * PANEL + c * CHUNK : 0);
        for (int i = r; i < n; i += 16) {
            const int row = first + i;
            nv_copy16(to + p * (n * 128) + (i - r) * 128, from + (row < l.rows ? row : 0) * l.step, row < l.rows ? bytes : 0);
        }
    }
}
INLINE void all_brought(void) { asm volatile("cp.async.wait_all;" ::: "memory"); }

/* DIRECT: all operands are read so, by the four warps that bring data; else from images by bulk copies that one item asks for. */
#ifdef DIRECT
#define BRINGERS 128
#define STREAM MEMORY(X)
#define ARRIVED() nv_proxy_fence()
#else
#define BRINGERS 1
#define STREAM uchar
#define ARRIVED()
#endif

INLINE ulong describe(uint a, uint lead) {
    return (ulong)((a >> 4) & 0x3fff) | (ulong)lead << 16 | (ulong)64 << 32 | (ulong)1 << 62;
}
/* Steps along rows of an operand of n rows; along the rows of a turned operand that is x wide */
#define ALONG(i, n) ((i) / 4 * ((n) * 8) + (i) % 4 * 2)

#ifdef BLOCK
/* A product as it was left, 64 x BLOCK, as the A operand of the next one. */
INLINE void as_operand(uint *p, const float *s) {
#ifdef SPLIT
    UNROLL for (int i = 0; i < BLOCK / 2; i += 4) {
        const float x[] = { s[i], s[i + 2], s[i + 1], s[i + 3] };
        UNROLL for (int u = 0; u < 4; u++) p[i + u] = nv_high(x[u]), p[BLOCK / 2 + i + u] = nv_low(x[u]);
    }
#elif NUMBER == 4
    UNROLL for (int i = 0; i < BLOCK / 2; i += 4) {
        p[i] = nv_to_tf32(s[i]), p[i + 1] = nv_to_tf32(s[i + 2]);
        p[i + 2] = nv_to_tf32(s[i + 1]), p[i + 3] = nv_to_tf32(s[i + 3]);
    }
#else
    UNROLL for (int i = 0; i < BLOCK / 4; i++) p[i] = FAC_CAT(nv_pack_, KIND)(s[2 * i], s[2 * i + 1]);
#endif
}

/* Rows first and first + 8 of sums, `wide` numbers each, of which `size` are there. */
INLINE void put_rows(global MEMORY(X) *y, long step, int first, int rows, int size, int wide, int t, const float *x,
                     float factor) {
    UNROLL for (int k = 0; k < 2; k++) {
        const int row = first + 8 * k;
        if (row >= rows) continue;
        global MEMORY(X) *to = y + row * step;
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
#endif

/* Which tile of which head number `id` of all is.  CAUSAL: of 16 heads at a time, so that their operands stay in the cache, the
 * long tiles first; else all tiles of a head. */
INLINE int2 place_of(int id, int all, int tiles, bool last_is_long) {
#ifdef CAUSAL
    const int heads = all / tiles, section = id / (16 * tiles), in = id % (16 * tiles);
    const int left = heads - section * 16, together = left < 16 ? left : 16, tile = in / together;
    return (int2)(last_is_long ? tiles - 1 - tile : tile, section * 16 + in % together);
#else
    return (int2)(id % tiles, id / tiles);
#endif
}

#ifdef PACK
/* Images of tiles of rows of x, as wgmma reads them from local memory: panels of ROWS rows of 128 bytes, whose eight chunks of 16
 * bytes are swizzled.  TURNED: panels of SIZE rows, one for each number of x's rows, of 32 rows of x each. */
typedef struct args { long x, to, H, rows, tiles, size, batch, head, row; } args;
kernel void pack(const args a, global const MEMORY(X) *x, global uint4 *to) {
#ifdef TURNED
    const int lines = SIZE, panels = ROWS / PANEL;
#else
    const int lines = ROWS, panels = PANELS(SIZE);
#endif
    const int unit = (int)get_global_id(0);
#ifdef TURNED
    const int line = unit % lines, c = unit / lines % 8, panel = unit / lines / 8;
#else
    const int c = unit % 8, line = unit / 8 % lines, panel = unit / 8 / lines;
#endif
    if (panel >= panels) return;
    const int tile = (int)get_global_id(1);
    const long bh = get_global_id(2);
    global const MEMORY(X) *p = x + a.x + bh / a.H * a.batch + bh % a.H * a.head;
    uint4 v[PARTS];
#ifdef TURNED
    /* the A operand of P V is P as the product S left it: keys 2t, 2t + 1 of eight stand at t and t + 4 */
    const int first = tile * ROWS + panel * PANEL + c / 2 * 8 + c % 2;
    float n[4];
    UNROLL for (int i = 0; i < 4; i++)
        n[i] = line < a.size && first + 2 * i < a.rows ? FROM(X, p[(first + 2 * i) * a.row + line]) : 0;
    chunk_parts(v, n);
#else
    const int row = tile * ROWS + line, at = panel * PANEL + c * CHUNK;
    load_chunk(v, p + row * a.row + at, row < a.rows ? (int)a.size - at : 0);
#endif
    UNROLL for (int k = 0; k < PARTS; k++)
        to[a.to + (((bh * a.tiles + tile) * PARTS + k) * panels + panel) * (lines * 8) + line * 8 + (c ^ (line & 7))] = v[k];
}
#endif

