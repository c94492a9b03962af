/* Vectors of f64, half as many as of f32, and the folds on them. */
#ifndef FACULA_CPU_WIDEN_H
#define FACULA_CPU_WIDEN_H
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/device/streams.h"

enum { VD = VL / 2 };
typedef double dvec __attribute__((vector_size(VL * 4)));
typedef int64_t lvec __attribute__((vector_size(VL * 4)));
typedef float hvec __attribute__((vector_size(VL * 2)));

/* gcc 12 makes two halves and puts them together where one instruction would do; but not of the
 * lower half of a wider vector. */
INLINE dvec widen_f32(const float *p) {
#if defined(__AVX512F__)
    return (dvec)_mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif defined(__AVX2__)
    return (dvec)_mm256_cvtps_pd(_mm_loadu_ps(p));
#elif VL == 8
    typedef double wide __attribute__((vector_size(VL * 8)));
    hvec h;
    memcpy(&h, p, sizeof h);
    const wide both =
        __builtin_convertvector(__builtin_shufflevector(h, h, 0, 1, 2, 3, -1, -1, -1, -1), wide);
    return __builtin_shufflevector(both, both, 0, 1, 2, 3);
#else
    hvec h;
    memcpy(&h, p, sizeof h);
    return __builtin_convertvector(h, dvec);
#endif
}
INLINE dvec widen_f64(const double *p) {
    dvec v;
    memcpy(&v, p, sizeof v);
    return v;
}
INLINE void store_f64(double *p, dvec v) { memcpy(p, &v, sizeof v); }
INLINE dvec all_f64(double x) { return x - (dvec){ 0 }; }

/* Long sums are made of short ones in f32, which are joined in f64.  With u = 2^-24 a lane that
 * adds up m terms loses at most u m of the sum of their magnitudes.  CHUNK: vectors of a part where
 * all terms have one sign, or for a mean: what is lost is small against the result, or against the
 * numbers that the mean is of.  FEW_TERMS of each lane where terms may cancel: what is lost may be
 * more than what is left. */
enum { CHUNK = 256, FEW_TERMS = 8 };

/* The halves of a vector, added in f64. */
INLINE dvec folded(vec a) {
    float lane[VL];
    store(lane, a);
    return widen_f32(lane) + widen_f32(lane + VD);
}
/* The sum of all lanes, by halves: a chain of them would take longer than a row of some hundred
 * numbers. */
INLINE double across_f64(dvec a) {
    double sum[VD];
    store_f64(sum, a);
    UNROLL for (int half = VD / 2; half > 0; half /= 2) UNROLL for (int k = 0; k < half; k++)
        sum[k] += sum[k + half];
    return sum[0];
}
INLINE double total(vec a) { return across_f64(folded(a)); }

/* The larger (smaller) of the two; NaN if either is: the instructions give x then, so a NaN of a is
 * put back. */
#if defined(__AVX512F__)
INLINE dvec extreme(const int least, dvec a, dvec x) {
    const __m512d p = (__m512d)a, q = (__m512d)x;
    const __m512d top = least ? _mm512_min_pd(p, q) : _mm512_max_pd(p, q);
    return (dvec)_mm512_mask_mov_pd(top, _mm512_cmp_pd_mask(p, p, _CMP_UNORD_Q), p);
}
#elif defined(__AVX2__)
INLINE dvec extreme(const int least, dvec a, dvec x) {
    const __m256d p = (__m256d)a, q = (__m256d)x;
    const __m256d top = least ? _mm256_min_pd(p, q) : _mm256_max_pd(p, q);
    return (dvec)_mm256_blendv_pd(top, p, _mm256_cmp_pd(p, p, _CMP_UNORD_Q));
}
#else
INLINE dvec extreme(const int least, dvec a, dvec x) {
    const lvec take = (least ? x < a : x > a) | (x != x);
    return (dvec)(((lvec)x & take) | ((lvec)a & ~take));
}
#endif

/* `fold` is a constant wherever this is called, so one line of it is left. */
INLINE dvec fold_vector(int fold, dvec a, dvec x) {
    if (fold == FAC_FOLD_SUM) return a + x;
    if (fold == FAC_FOLD_PROD) return a * x;
    return extreme(fold == FAC_FOLD_MIN, a, x);
}
INLINE double fold_number(int fold, double a, double x) {
    if (fold == FAC_FOLD_SUM) return a + x;
    if (fold == FAC_FOLD_PROD) return a * x;
    if (fold == FAC_FOLD_MAX) return x > a || x != x ? x : a;
    return x < a || x != x ? x : a;
}
#endif
