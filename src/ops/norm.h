/* What layer_norm, rms_norm, group_norm, instance_norm and their gradients share. */
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

/* Operand i has the dims axis.. of x as they are, or is absent. */
static inline bool fac_norm_covers(const fac_node *n, int i, int axis) {
    const fac_type *x = &n->in[0]->type;
    if (!n->in[i]) return true;
    const fac_type *t = &n->in[i]->type;
    bool good = t->dtype == x->dtype && t->dims.n == x->dims.n - axis;
    for (int k = 0; good && k < t->dims.n; k++) good = t->dims.d[k] == x->dims.d[axis + k];
    return good;
}

/* The types of a gradient of rows: of x, dy and a scale that may be absent, dx and sums over the
 * dims before `axis`. */
static inline bool fac_norm_grad_infer(fac_node *n, int64_t from) {
    const fac_type *x = &n->in[0]->type;
    const int axis = x->dims.n ? fac_axis(from, x->dims.n) : -1;
    if (axis < 0) return fac_fail(n, FAC_E_ARGUMENT, "x has no dim %lld", (long long)from);
    fac_dims row = { 0 };
    for (int k = axis; k < x->dims.n; k++) row.d[row.n++] = x->dims.d[k];
    for (int i = 1; i < 3; i++) {
        if (!n->in[i]) continue;
        const fac_dims *have = &n->in[i]->type.dims, *want = i == 1 ? &x->dims : &row;
        bool differ = have->n != want->n;
        for (int k = 0; k < have->n && !differ; k++)
            differ = have->d[k] >= 0 && want->d[k] >= 0 && have->d[k] != want->d[k];
        if (n->in[i]->type.dtype != x->dtype)
            return fac_fail(n, FAC_E_DTYPE, "all operands must have one dtype");
        if (differ)
            return fac_fail(n, FAC_E_SHAPE,
                            i == 1 ? "x and dy differ"
                                   : "scale must have the normalized dims of x");
    }
    n->out[0]->type = *x;
    for (int k = 1; k < n->nout; k++) n->out[k]->type = (fac_type){ x->dtype, row };
    return true;
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
