/* What kernels of bits ask of NVIDIA's GPUs beside products (nv_bits_mma.cl, nv_bits_wgmma.cl).  A
 * test has another text in the place of both, in OpenCL C. */

#define PLACE uint /* in local memory */
#define PLACE_OF(tiles) LOCAL_AT(tiles)

INLINE void nv_copy8(uint to, global const void *from, int n) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(n)
                 : "memory");
}
/* G words, or zeros. */
INLINE void copy_words(PLACE to, global const uint *from, bool there) {
#if G == 4
    nv_copy16_near(to, from, there ? 16 : 0);
#elif G == 2
    nv_copy8(to, from, there ? 8 : 0);
#else
    nv_copy4(to, from, there ? 4 : 0);
#endif
}
#define COPY_16(to, from) nv_copy16(to, from, 16)
#define COPIES_END() NV_COPIES_COMMIT()
#define READ_4(v, at) nv_local_load4(v, at)

/* The bits of four lanes together. */
INLINE uint quad_or(uint x, local uint *room) {
    uint y;
    asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;" : "=r"(y) : "r"(x));
    x |= y;
    asm volatile("shfl.sync.bfly.b32 %0, %1, 2, 0x1f, 0xffffffff;" : "=r"(y) : "r"(x));
    return x | y;
}
