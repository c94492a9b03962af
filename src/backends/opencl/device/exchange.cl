/* Reading the registers of neighbouring items, those of a subgroup, without local memory and
 * barriers.  FAC_EXCHANGE says by what: 1 cl_khr_subgroup_shuffle, 2 cl_intel_subgroups, 3 an
 * instruction of NVIDIA's, by which whole warps read.  Items are numbered in subgroups as they are
 * in their group: no standard promises that, the probe has seen it.
 *
 * There are functions that fold a whole subgroup at once (sub_group_reduce_add); but the order of
 * such a sum of floats may be another one each time (OpenCL C 3.0, functions of subgroups), and
 * results here are the same bits in every run. */
#if FAC_EXCHANGE == 3
#define fac_lanes() 32
static inline uint fac_exchange(uint x, int n) {
    uint y;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(y) : "r"(x), "r"(n));
    return y;
}
#else
#define fac_lanes() ((int)get_max_sub_group_size())
#if FAC_EXCHANGE == 1
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
static inline uint fac_exchange(uint x, int n) { return sub_group_shuffle_xor(x, (uint)n); }
#else
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
static inline uint fac_exchange(uint x, int n) { return intel_sub_group_shuffle_xor(x, (uint)n); }
#endif
#endif

/* NAME(x, n): the x of the item whose number differs in the bit n, which is less than fac_lanes();
 * all items of a subgroup call it together. */
#define EXCHANGER(NAME, TYPE)                                                                      \
    static inline TYPE NAME(TYPE x, int n) {                                                       \
        union {                                                                                    \
            TYPE value;                                                                            \
            uint word[sizeof(TYPE) / 4];                                                           \
        } both = { .value = x };                                                                   \
        _Pragma("unroll") for (int k = 0; k < (int)sizeof(TYPE) / 4; k++) both.word[k] =           \
            fac_exchange(both.word[k], n);                                                         \
        return both.value;                                                                         \
    }
