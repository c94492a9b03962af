/* Vectors of one instruction set in portable GNU C, for the files of this folder.  FAC_ISA is set
 * by cmake/simd.cmake. */
#ifndef FACULA_CPU_VECTOR_H
#define FACULA_CPU_VECTOR_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#include "backends/cpu/device/simd.h"

#define FAC_JOIN_(a, b) a##_##b
#define FAC_JOIN(a, b) FAC_JOIN_(a, b)
#define FAC_SIMD(name) FAC_JOIN(name, FAC_ISA)

/* VL: floats in a vector.  MR: pixels of the largest tile; MR x 2 accumulators, 2 weights and a
 * pixel fit the registers. */
#if defined(__AVX512F__)
#define VL 16
#define MR 14
#elif defined(                                                                                     \
    __AVX__) /* without __AVX2__: portable code for such a machine, see bench/portable.py */
#define VL 8
#define MR 6
#elif defined(__aarch64__)
#define VL 4
#define MR 12
#else
#define VL 4
#define MR 6
#endif

/* Loops that may write over what they read, element by element. */
#if defined(__clang__)
#define IN_PLACE _Pragma("clang loop vectorize(assume_safety)")
#else
#define IN_PLACE _Pragma("GCC ivdep")
#endif

typedef float vec __attribute__((vector_size(VL * 4)));
typedef int32_t ivec __attribute__((vector_size(VL * 4)));

/* Kernels are functions of constants, written once and inlined into every variant.  FAC_ROLLED: see
 * cmake/simd.cmake. */
#if defined(FAC_ROLLED)
#define INLINE static inline
#define UNROLL
#else
#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#endif

INLINE vec load(const float *p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}
INLINE void store(float *p, vec v) { memcpy(p, &v, sizeof v); }
/* v in a register: compilers like to read a vector again for each of its uses, and then loads are
 * the limit. */
INLINE vec held(vec v) {
#if defined(__x86_64__)
    __asm__("" : "+v"(v));
#elif defined(__aarch64__)
    __asm__("" : "+w"(v));
#endif
    return v;
}
/* to + a b.  With sixteen registers, fifteen of them in use, compilers let sums wander from one to
 * another, and some to memory. */
INLINE vec add_product(vec to, vec a, vec b) {
#if defined(__AVX2__) && defined(__FMA__) && VL == 8 && !defined(FAC_ROLLED)
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(to) : "x"(a), "x"(b));
    return to;
#else
    return to + a * b;
#endif
}
/* What is stored before goes first, `next` is computed after that.  On Zen 4 a store of 512 bits
 * may take the time of a multiply-add or two, less where it follows at once what made its number:
 * max, min, store, and then the next. */
INLINE void store_first(vec *next) {
#if defined(__AVX512F__)
    __asm__ volatile("" : "+v"(*next) : : "memory");
#else
    (void)next;
#endif
}
/* The first n lanes, 0 < n <= VL, zeros after them; nothing after them in memory is touched. */
INLINE vec load_some(const float *p, int n) {
#if defined(__AVX512F__)
    return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#elif defined(__AVX2__)
    const ivec lane = { 0, 1, 2, 3, 4, 5, 6, 7 };
    return (vec)_mm256_maskload_ps(p, (__m256i)(lane < n));
#else
    vec v = { 0 };
    for (int i = 0; i < n; i++) v[i] = p[i];
    return v;
#endif
}
INLINE void store_some(float *p, vec v, int n) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif defined(__AVX2__)
    const ivec lane = { 0, 1, 2, 3, 4, 5, 6, 7 };
    _mm256_maskstore_ps(p, (__m256i)(lane < n), (__m256)v);
#else
    for (int i = 0; i < n; i++) p[i] = v[i];
#endif
}
INLINE vec all(float x) { return x - (vec){ 0 }; }
/* Past the caches, where the set can do that: p is aligned to a vector, and fac_streams_end() makes
 * it seen. */
INLINE void stream(float *p, vec v) {
#if defined(__AVX512F__)
    _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX2__)
    _mm256_stream_ps(p, (__m256)v);
#else
    store(p, v);
#endif
}
INLINE void store_or_stream(float *p, vec v, bool past) {
    if (past)
        stream(p, v);
    else
        store(p, v);
}

/* a where it is NaN, else the larger (smaller) of the two. */
INLINE vec vmax(vec a, vec b) {
#if defined(__AVX512F__)
    return (vec)_mm512_max_ps((__m512)b, (__m512)a);
#elif defined(__AVX2__)
    return (vec)_mm256_max_ps((__m256)b, (__m256)a);
#elif defined(__SSE2__) && VL == 4
    return (vec)_mm_max_ps((__m128)b, (__m128)a);
#else
    ivec take = a < b;
    return (vec)(((ivec)b & take) | ((ivec)a & ~take));
#endif
}
INLINE vec vmin(vec a, vec b) {
#if defined(__AVX512F__)
    return (vec)_mm512_min_ps((__m512)b, (__m512)a);
#elif defined(__AVX2__)
    return (vec)_mm256_min_ps((__m256)b, (__m256)a);
#elif defined(__SSE2__) && VL == 4
    return (vec)_mm_min_ps((__m128)b, (__m128)a);
#else
    ivec take = a > b;
    return (vec)(((ivec)b & take) | ((ivec)a & ~take));
#endif
}
/* The larger of the two; NaN wins. */
INLINE vec larger(vec a, vec b) {
#if defined(__AVX512F__)
    const __mmask16 number =
        _mm512_cmp_ps_mask((__m512)b, (__m512)b, _CMP_ORD_Q); /* else b stays */
    return (vec)_mm512_mask_max_ps((__m512)b, number, (__m512)b, (__m512)a);
#else
    const ivec odd = b != b;
    return (vec)(((ivec)b & odd) | ((ivec)vmax(a, b) & ~odd));
#endif
}
/* Lanes where one of the two is NaN. */
INLINE ivec unordered(vec a, vec b) {
#if defined(__AVX512F__)
    return (ivec)_mm512_maskz_set1_epi32(_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q),
                                         -1);
#elif defined(__AVX2__)
    return (ivec)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q);
#else
    return (a != a) | (b != b);
#endif
}
/* Whether a bit is set anywhere. */
INLINE bool any_of(ivec mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
    uint64_t half[VL / 2], all = 0;
    memcpy(half, &mask, sizeof half);
    for (int k = 0; k < VL / 2; k++) all |= half[k];
    return all != 0;
#endif
}
/* Every lane receives lane i of its group of `group` lanes (2, 4, 8; 1: v itself). */
INLINE vec spread(vec v, const int group, const int i) {
    if (group == 1) return v;
#if defined(__AVX512F__)
    const ivec from = ((ivec){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 } & -group) + i;
    return (vec)_mm512_permutexvar_ps((__m512i)from, (__m512)v);
#elif defined(__AVX2__)
    const ivec from = ((ivec){ 0, 1, 2, 3, 4, 5, 6, 7 } & -group) + i;
    return (vec)_mm256_permutevar8x32_ps((__m256)v, (__m256i)from);
#elif VL == 8
    if (group == 2)
        return i == 0 ? __builtin_shufflevector(v, v, 0, 0, 2, 2, 4, 4, 6, 6)
                      : __builtin_shufflevector(v, v, 1, 1, 3, 3, 5, 5, 7, 7);
    return i == 0   ? __builtin_shufflevector(v, v, 0, 0, 0, 0, 4, 4, 4, 4)
           : i == 1 ? __builtin_shufflevector(v, v, 1, 1, 1, 1, 5, 5, 5, 5)
           : i == 2 ? __builtin_shufflevector(v, v, 2, 2, 2, 2, 6, 6, 6, 6)
                    : __builtin_shufflevector(v, v, 3, 3, 3, 3, 7, 7, 7, 7);
#else
    return i == 0 ? __builtin_shufflevector(v, v, 0, 0, 2, 2)
                  : __builtin_shufflevector(v, v, 1, 1, 3, 3);
#endif
}
INLINE vec clip(vec v, float lo, float hi) { return vmin(vmax(v, all(lo)), all(hi)); }
#endif
