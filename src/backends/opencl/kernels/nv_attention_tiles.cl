INLINE void nv_local_store4(uint a, uint4 v) {
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(a), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
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
/* numbers of a kind: tf32, bf16, f16 */
#define size_tf32 4
#define size_bf16 2
#define size_f16 2
#define NUMBER FAC_CAT(size_, KIND)
#define PANEL (128 / NUMBER)            /* numbers in a row of a panel */
#define CHUNK (16 / NUMBER)
#define STEP (32 / NUMBER)              /* terms of one wgmma */
#define PANELS(n) (((n) + PANEL - 1) / PANEL)

INLINE uint4 chunk_of_tf32(const float *x) {
    return (uint4)(nv_to_tf32(x[0]), nv_to_tf32(x[1]), nv_to_tf32(x[2]), nv_to_tf32(x[3]));
}
INLINE uint4 chunk_of_bf16(const float *x) {
    return (uint4)(nv_pack_bf16(x[0], x[1]), nv_pack_bf16(x[2], x[3]), nv_pack_bf16(x[4], x[5]), nv_pack_bf16(x[6], x[7]));
}
INLINE uint4 chunk_of_f16(const float *x) {
    return (uint4)(nv_pack_f16(x[0], x[1]), nv_pack_f16(x[2], x[3]), nv_pack_f16(x[4], x[5]), nv_pack_f16(x[6], x[7]));
}
#define CHUNK_OF(x) FAC_CAT(chunk_of_, KIND)(x)

/* CHUNK neighbours from p, of which n are there. */
INLINE uint4 load_chunk(global const MEMORY(X) *p, int n) {
    float x[CHUNK];
#ifdef ALIGNED
#ifdef SAME
    if (n >= CHUNK) return *(global const uint4 *)p;
#else
    if (n >= CHUNK) {
        UNROLL for (int i = 0; i < CHUNK; i += 4) {
            float4 v = *(global const float4 *)(p + i);
            x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
        }
        return CHUNK_OF(x);
    }
#endif
#endif
    UNROLL for (int i = 0; i < CHUNK; i++) x[i] = i < n ? FROM(X, p[i]) : 0;
    return CHUNK_OF(x);
}

/* REGISTERS: of an item that multiplies, where the one that brings data is one of four warps that give theirs away; else a warp. */
#ifdef REGISTERS
#define ITEMS (128 * (GROUPS + 1))
#define LEAST (GROUPS == 3 ? 32 : REGISTERS > 232 ? 24 : 40)
#define LESS() asm volatile("//@alone\n"); NV_REGISTERS_LESS(LEAST)
#define MORE() NV_REGISTERS_MORE(REGISTERS)
#else
#define ITEMS (128 * GROUPS + 32)
#define LESS()
#define MORE()
#endif

#ifdef DIRECT
/* Operands are read where they lie, 16 bytes an item, by all four warps that bring data; rows of SIZE numbers of the type that the
 * units multiply.  Rows first .. first + n - 1 of x, of which `rows` are there. */
#define BRINGERS 128
#define STREAM MEMORY(X)
#define ARRIVED() nv_proxy_fence()
INLINE void bring_rows(uint to, global const MEMORY(X) *x, long step, int first, int n, int rows, int size, int panels, int item) {
    const int c = item & 7, r = item >> 3;
    to += r * 128 + ((c ^ (r & 7)) << 4);
    for (int p = 0; p < panels; p++) {
        const int left = 2 * (size - p * PANEL) - 16 * c, bytes = left < 0 ? 0 : left > 16 ? 16 : left;
        global const MEMORY(X) *from = x + (bytes ? p * PANEL + c * CHUNK : 0);
        for (int i = r; i < n; i += BRINGERS / 8) {
            const int row = first + i;
            nv_copy16(to + p * (n * 128) + (i - r) * 128, from + (row < rows ? row : 0) * step, row < rows ? bytes : 0);
        }
    }
}
#else
#define BRINGERS 1
#define STREAM uchar
#define ARRIVED()
#endif

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
    uint4 v;
#ifdef TURNED
    /* the A operand of P V is P as the product S left it: keys 2t, 2t + 1 of eight stand at t and t + 4 */
    const int first = tile * ROWS + panel * PANEL + c / 2 * 8 + c % 2;
    float n[4];
    UNROLL for (int i = 0; i < 4; i++)
        n[i] = line < a.size && first + 2 * i < a.rows ? FROM(X, p[(first + 2 * i) * a.row + line]) : 0;
    v = chunk_of_tf32(n);
#else
    const int row = tile * ROWS + line, at = panel * PANEL + c * CHUNK;
    v = row < a.rows ? load_chunk(p + row * a.row + at, (int)a.size - at) : (uint4)(0);
#endif
    to[a.to + ((bh * a.tiles + tile) * panels + panel) * (lines * 8) + line * 8 + (c ^ (line & 7))] = v;
}
#endif

