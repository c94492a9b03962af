/* What layer_norm, rms_norm, group_norm and instance_norm share. */
#ifndef FACULA_OPS_NORM_H
#define FACULA_OPS_NORM_H
#include "facula/op.h"

/* Mean and variance (over n, not n - 1) of n neighbours. */
static inline void fac_moments(const double *x, int64_t n, double *mean, double *var) {
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < n; k++) sum += x[k];
    *mean = sum / (double)n;
    for (int64_t k = 0; k < n; k++) squares += (x[k] - *mean) * (x[k] - *mean);
    *var = squares / (double)n;
}

/* Does `d` broadcast to dims axis.. of x? */
static inline bool fac_norm_fits(const fac_dims *d, const fac_dims *x, int axis) {
    if (d->n > x->n - axis) return false;
    for (int k = 1; k <= d->n; k++) {
        int64_t have = d->d[d->n - k], want = x->d[x->n - k];
        if (have != 1 && have != want && have >= 0 && want >= 0) return false;
    }
    return true;
}

/* Which element of such a `d` belongs to element i of x. */
static inline int64_t fac_norm_at(const fac_dims *d, const fac_dims *x, int64_t i) {
    int64_t at = 0, step = 1;
    for (int k = 1; k <= d->n; k++) {
        if (d->d[d->n - k] != 1) at += i % x->d[x->n - k] * step;
        i /= x->d[x->n - k];
        step *= d->d[d->n - k];
    }
    return at;
}
#endif
