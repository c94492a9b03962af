/* Groups that make parts of one result: the last one to come, which sees what the others wrote, may
 * join them.  By instructions of NVIDIA's; what OpenCL C 1.2 has in their place promises nothing
 * between groups, though CPUs keep it. */
#ifdef FAC_NV_BF16
#define fac_fence() asm volatile("fence.acq_rel.gpu;" ::: "memory")
static inline uint fac_count_up(global uint *n) {
    uint before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(n) : "memory");
    return before;
}
#else
#define fac_fence() mem_fence(CLK_GLOBAL_MEM_FENCE)
#define fac_count_up(n) atomic_inc((volatile global uint *)(n))
#endif

/* True for the last of so many groups that count at *done, which is 0 again then.  All items of a
 * group call it together. */
static inline bool is_last(global uint *done, uint groups, local uint *before) {
    fac_fence();
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        const uint n = fac_count_up(done);
        *before = n;
        if (n == groups - 1) *done = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const bool last = *before == groups - 1;
    if (last) fac_fence();
    return last;
}
