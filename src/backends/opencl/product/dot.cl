/* Dot products of four bytes each, added to 32 bits: FAC_DOT says by what, 1
 * cl_khr_integer_dot_product, 2 NVIDIA's dp4a. */
#if FAC_DOT == 2
static inline uint fac_dot_signed(uint a, uint b, uint c) {
    uint r;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
static inline uint fac_dot_unsigned(uint a, uint b, uint c) {
    uint r;
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
#else
#pragma OPENCL EXTENSION cl_khr_integer_dot_product : enable
static inline uint fac_dot_signed(uint a, uint b, uint c) {
    return (uint)dot_4x8packed_ss_int(a, b) + c;
}
static inline uint fac_dot_unsigned(uint a, uint b, uint c) {
    return dot_4x8packed_uu_uint(a, b) + c;
}
#endif
