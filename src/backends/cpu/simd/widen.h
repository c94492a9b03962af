/* Vectors of f64, half as many as of f32, and the folds on them. */
#ifndef FACULA_CPU_WIDEN_H
#define FACULA_CPU_WIDEN_H
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/streams.h"

enum { VD = VL / 2 };
typedef double  dvec __attribute__((vector_size(VL * 4)));
typedef int64_t lvec __attribute__((vector_size(VL * 4)));
typedef float   hvec __attribute__((vector_size(VL * 2)));

/* gcc 12 makes two halves and puts them together where one instruction would do; but not of the lower half of a wider vector. */
INLINE dvec widen_f32(const float *p) {
#if defined(__AVX512F__)
    return (dvec)_mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif defined(__AVX2__)
    return (dvec)_mm256_cvtps_pd(_mm_loadu_ps(p));
#elif VL == 8
    typedef double wide __attribute__((vector_size(VL * 8)));
    hvec h;
    memcpy(&h, p, sizeof h);
    const wide both = __builtin_convertvector(__builtin_shufflevector(h, h, 0, 1, 2, 3, -1, -1, -1, -1), wide);
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

/* The sum of all lanes in f64, by halves: a chain of them would take longer than a row of some hundred numbers. */
INLINE double total(vec a) {
    float lane[VL];
    double sum[VD];
    store(lane, a);
    store_f64(sum, widen_f32(lane) + widen_f32(lane + VD));
    UNROLL for (int half = VD / 2; half > 0; half /= 2)
        UNROLL for (int k = 0; k < half; k++) sum[k] += sum[k + half];
    return sum[0];
}

/* The larger (smaller) of the two; NaN if either is: the instructions give x then, so a NaN of a is put back. */
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
