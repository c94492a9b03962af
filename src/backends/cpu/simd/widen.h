/* Vectors of f64, half as many as of f32, and the folds on them. */
#ifndef FACULA_CPU_WIDEN_H
#define FACULA_CPU_WIDEN_H
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/streams.h"

enum { VD = VL / 2 };
typedef double  dvec __attribute__((vector_size(VL * 4)));
typedef int64_t lvec __attribute__((vector_size(VL * 4)));
typedef float   hvec __attribute__((vector_size(VL * 2)));

INLINE dvec widen_f32(const float *p) {
    hvec h;
    memcpy(&h, p, sizeof h);
    return __builtin_convertvector(h, dvec);
}
INLINE dvec widen_f64(const double *p) {
    dvec v;
    memcpy(&v, p, sizeof v);
    return v;
}
INLINE void store_f64(double *p, dvec v) { memcpy(p, &v, sizeof v); }
INLINE dvec all_f64(double x) { return x - (dvec){ 0 }; }

INLINE dvec pick(lvec mask, dvec yes, dvec no) { return (dvec)(((lvec)yes & mask) | ((lvec)no & ~mask)); }

/* `fold` is a constant wherever this is called, so one line of it is left. */
INLINE dvec fold_vector(int fold, dvec a, dvec x) {
    if (fold == FAC_FOLD_SUM) return a + x;
    if (fold == FAC_FOLD_PROD) return a * x;
    if (fold == FAC_FOLD_MAX) return pick((x > a) | (x != x), x, a);
    return pick((x < a) | (x != x), x, a);
}
INLINE double fold_number(int fold, double a, double x) {
    if (fold == FAC_FOLD_SUM) return a + x;
    if (fold == FAC_FOLD_PROD) return a * x;
    if (fold == FAC_FOLD_MAX) return x > a || x != x ? x : a;
    return x < a || x != x ? x : a;
}
#endif
