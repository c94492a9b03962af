/* How reference kernels compare numbers: NaN is above everything, as in NumPy and torch, and u64
 * arrives as a bit pattern. */
#ifndef FACULA_OPS_ORDER_H
#define FACULA_OPS_ORDER_H
#include <math.h>
#include "facula/op.h"

static inline bool fac_int_above(fac_dtype dtype, int64_t a, int64_t b) {
    return dtype == FAC_U64 ? (uint64_t)a > (uint64_t)b : a > b;
}
static inline bool fac_real_above(double a, double b) { return a > b || (isnan(a) && !isnan(b)); }

/* x[a] > x[b], x[a] < x[b]; NaN wins both ways. */
static inline bool fac_above(const fac_array *x, int64_t a, int64_t b) {
    return x->f ? fac_real_above(x->f[a], x->f[b]) : fac_int_above(x->type.dtype, x->i[a], x->i[b]);
}
static inline bool fac_below(const fac_array *x, int64_t a, int64_t b) {
    return x->f ? fac_real_above(-x->f[a], -x->f[b])
                : fac_int_above(x->type.dtype, x->i[b], x->i[a]);
}

/* The identities of max and min over integers; floats have the infinities. */
static inline int64_t fac_int_lowest(fac_dtype dtype) {
    const fac_dtype_info *t = fac_dtype_get(dtype);
    return t->kind == 'i' ? (int64_t)(UINT64_MAX << (t->bits - 1)) : 0;
}
static inline int64_t fac_int_highest(fac_dtype dtype) {
    const fac_dtype_info *t = fac_dtype_get(dtype);
    if (t->kind == 'b') return 1;
    uint64_t all = UINT64_MAX >> (64 - t->bits);
    return (int64_t)(t->kind == 'i' ? all >> 1 : all);
}
#endif
