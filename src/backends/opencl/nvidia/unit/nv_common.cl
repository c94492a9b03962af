/* What NVIDIA's GPUs have beyond OpenCL C, by inline PTX: asynchronous copies into local memory,
 * barriers that count them, and the matrix units (mma.sync from compute capability 8.0 on, wgmma of
 * 9.0).
 *
 * The driver compiles OpenCL C for the plain sm_90, where wgmma is refused.  Such instructions
 * stand in the text as PTX comments after a mark, SM90A, and are uncovered in the PTX that the
 * driver made of it (nvidia/unit/ptx.c).  Only texts that multiply by wgmma define it
 * (nvidia/unit/wgmma_text.c): all others are for any card from sm_80 on.  Local memory is addressed
 * by 32-bit numbers, as PTX does. */
#define GROUP(items) __attribute__((reqd_work_group_size(items, 1, 1)))
#define UNROLL _Pragma("unroll")
#define INLINE static inline __attribute__((always_inline))
#define LOCAL_AT(p) ((uint)(size_t)(p))

/* ---- barriers that count arrivals and bytes (mbarrier): 8 bytes of local memory each ---- */

INLINE void nv_barrier_init(uint b, uint arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(arrivals) : "memory");
}
/* After the inits of one item, before the group's barrier. */
INLINE void nv_barriers_made(void) {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
INLINE void nv_barrier_arrive(uint b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
}
/* Arrives, and says how many bytes of bulk copies are still to come. */
INLINE void nv_barrier_expect(uint b, uint bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes)
                 : "memory");
}
/* Arrives when all of this item's copies so far (nv_copy16) are there. */
INLINE void nv_barrier_arrive_copies(uint b) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(b) : "memory");
}
/* Waits for the end of the phase of this parity: 0 is the first one. */
INLINE void nv_barrier_wait(uint b, uint parity) {
    uint done;
    do {
        asm volatile(
            "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n}\n"
            : "=r"(done)
            : "r"(b), "r"(parity)
            : "memory");
    } while (!done);
}
/* A barrier of `items` of the group's items (whole warps); id 1 .. 15. */
INLINE void nv_meet(int id, int items) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(items) : "memory");
}
INLINE void nv_come(int id, int items) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(items) : "memory");
}

/* ---- copies ---- */

/* 16 bytes, of which the first n are read and the others become zero. */
INLINE void nv_copy16(uint to, global const void *from, int n) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(n)
                 : "memory");
}
/* The same through the first cache, for what neighbours read again. */
INLINE void nv_copy16_near(uint to, global const void *from, int n) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(n)
                 : "memory");
}
/* All 16 bytes, or zeros where they are not there: then `base` is the address, and is not read. */
INLINE void nv_copy16_or_zero(uint to, global const void *from, global const void *base,
                              bool there) {
    const int n = there ? 16 : 0;
    nv_copy16(to, there ? from : base, n);
}
INLINE void nv_copy16_near_or_zero(uint to, global const void *from, global const void *base,
                                   bool there) {
    const int n = there ? 16 : 0;
    nv_copy16_near(to, there ? from : base, n);
}
INLINE void nv_copy4(uint to, global const void *from, int n) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(n)
                 : "memory");
}
#define NV_COPIES_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define NV_COPIES_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

/* A contiguous piece by the copy engine (16-byte multiples); `b` counts its bytes.  One item asks
 * for all. */
INLINE void nv_bulk_load(uint to, global const void *from, uint bytes, uint b) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(to),
        "l"(from), "r"(bytes), "r"(b)
        : "memory");
}
INLINE void nv_bulk_store(global void *to, uint from, uint bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from),
                 "r"(bytes)
                 : "memory");
}
/* Into the second cache only, and nothing waits for it: where many rows are needed soon, one item
 * asks for a whole one. */
INLINE void nv_bulk_ahead(global const void *from, uint bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}
#define NV_BULK_COMMIT() asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define NV_BULK_WAIT_READ(n) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(n) : "memory")
#define NV_BULK_WAIT(n) asm volatile("cp.async.bulk.wait_group %0;" ::"n"(n) : "memory")

/* What ordinary stores and nv_copy16 wrote to local memory becomes visible to wgmma and bulk
 * copies. */
INLINE void nv_proxy_fence(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

INLINE void nv_load4(float *v, global const float *p) {
    asm volatile("ld.global.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "l"(p));
}
/* Of memory that nothing writes while the kernel runs. */
INLINE void nv_load4_still(float *v, global const float *p) {
    asm volatile("ld.global.nc.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "l"(p));
}
INLINE void nv_store4(global float *p, float a, float b, float c, float d) {
    asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(p), "f"(a), "f"(b), "f"(c), "f"(d)
                 : "memory");
}
INLINE void nv_local_store(uint at, int v) {
    asm volatile("st.shared.s32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}
INLINE int nv_local_load(uint at) {
    int v;
    asm volatile("ld.shared.s32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
    return v;
}
INLINE void nv_local_load4(uint *v, uint at) {
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(at)
                 : "memory");
}

INLINE void nv_local_store4(uint at, const uint *v) {
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(v[0]), "r"(v[1]), "r"(v[2]),
                 "r"(v[3])
                 : "memory");
}

/* ---- fences and counters between groups ---- */

INLINE void nv_fence_device(void) { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
INLINE uint nv_count(global uint *counter) {
    uint before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(counter)
                 : "memory");
    return before;
}

/* ---- numbers ---- */

/* x / d for 0 <= x < 2^31 with the multiplier and shift of fac_nv_divide (nvidia.h). */
INLINE uint nv_divide(uint x, uint multiplier, uint shift) {
    return mul_hi(x, multiplier) >> shift;
}

/* The matrix units drop the low 13 bits of TF32 operands: adding half of what is dropped first
 * rounds to nearest. */
INLINE uint nv_to_tf32(float x) { return as_uint(x) + 0x1000u; }
/* x = high + low, both TF32 but for low's last bits: products of such pairs are f32's but for low x
 * low. */
INLINE uint nv_high(float x) { return as_uint(x) & 0xffffe000u; }
INLINE uint nv_low(float x) { return as_uint(x - as_float(as_uint(x) & 0xffffe000u)); }
/* Two floats as bf16 or f16, the first in the low half. */
INLINE uint nv_pack_bf16(float a, float b) {
    uint r;
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(a), "f"(b));
    return r;
}
INLINE uint nv_pack_f16(float a, float b) {
    uint r;
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(a), "f"(b));
    return r;
}

/* A NaN wins. */
INLINE float nv_larger(float a, float b) {
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}
/* What the lane has whose number differs in these bits; all lanes of the warp ask. */
INLINE float nv_of_lane(float x, int bits) {
    float r;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(r) : "f"(x), "r"(bits));
    return r;
}
/* Of two values here and two in the lane whose number differs in these bits: an even lane gets the
 * larger of both first ones, the odd one beside it that of both second ones. */
INLINE float nv_larger_of_lanes(float first, float second, bool odd, int bits) {
    const float keeps = odd ? second : first;
    const float gives = odd ? first : second;
    return nv_larger(keeps, nv_of_lane(gives, bits));
}

/* ---- mma.sync: D[16][8] += A[16][k] B[k][8], by a warp; lane = 4 g + t ----
 * tf32 (k = 8): a = A[g][t], A[g + 8][t], A[g][t + 4], A[g + 8][t + 4]; b = B[t][g], B[t + 4][g]
 * bf16, f16 (k = 16): a = A[g][2t..], A[g + 8][2t..], A[g][2t + 8..], A[g + 8][2t + 8..]; b =
 * B[2t..][g], B[2t + 8..][g] d = D[g][2t], D[g][2t + 1], D[g + 8][2t], D[g + 8][2t + 1] */
INLINE void nv_mma_tf32(float *d, const uint *a, const uint *b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/* The same for a sum that begins with this product. */
INLINE void nv_mma_tf32_first(float *d, const uint *a, const uint *b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
}
INLINE void nv_mma_bf16(float *d, const uint *a, const uint *b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
INLINE void nv_mma_f16(float *d, const uint *a, const uint *b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/* Four 8 x 8 matrices of 16-bit elements (8 x 4 of 32-bit ones); lane l says where row l % 8 of
 * matrix l / 8 begins. */
INLINE void nv_matrices(uint *r, uint at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
INLINE void nv_matrices_transposed(uint *r, uint at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

/* ---- wgmma: D[64][n] += A[64][k] B[k][n] by four warps; its instructions:
 * nvidia/unit/wgmma_text.c ----
 * d[4 j ..]: rows 16 warp + g and + 8 (pairs), columns 8 j + 2 t, 2 t + 1 */
#define NV_WGMMA_FENCE() asm volatile(SM90A "wgmma.fence.sync.aligned;\n" ::: "memory")
#define NV_WGMMA_COMMIT() asm volatile(SM90A "wgmma.commit_group.sync.aligned;\n" ::: "memory")
#define NV_WGMMA_WAIT(n)                                                                           \
    asm volatile(SM90A "wgmma.wait_group.sync.aligned %0;\n" ::"n"(n) : "memory")
#define NV_REGISTERS_LESS(n) asm volatile(SM90A "setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(n))
#define NV_REGISTERS_MORE(n) asm volatile(SM90A "setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(n))

/* An operand in local memory whose rows run along the sum (K-major).  Rows of 128 bytes, the
 * 16-byte chunk c of row r lies at c ^ (r & 7), tiles begin at multiples of 1024; a start shifted
 * by whole rows is fine, 32 bytes along the row are + 2. */
INLINE ulong nv_descriptor128(uint at) {
    return (ulong)((at >> 4) & 0x3fff) | (ulong)1 << 16 | (ulong)64 << 32 | (ulong)1 << 62;
}
/* Rows of 64 bytes, chunk c of row r at c ^ (r >> 1 & 3). */
INLINE ulong nv_descriptor64(uint at) {
    return (ulong)((at >> 4) & 0x3fff) | (ulong)1 << 16 | (ulong)32 << 32 | (ulong)2 << 62;
}
