/* See map_grad.h. */
#include "ops/map_grad.h"

fac_value *fac_grad_number(const fac_value *v, double number) {
    return fac_number(v->graph, v->type.dtype, number);
}
fac_value *fac_grad_shifted(fac_value *v, double number) {
    return fac_add(v, fac_grad_number(v, number));
}
fac_value *fac_grad_rest(fac_value *v) { return fac_sub(fac_grad_number(v, 1), v); }
fac_value *fac_grad_above(fac_value *v, double bound) {
    return fac_greater(v, fac_grad_number(v, bound));
}
fac_value *fac_grad_below(fac_value *v, double bound) {
    return fac_less(v, fac_grad_number(v, bound));
}
fac_value *fac_grad_where(fac_value *condition, fac_value *v) {
    return fac_where(condition, v, fac_grad_number(v, 0));
}

/* Passes over norms, pools and convolutions know these forms. */
fac_value *fac_grad_past(fac_value *y, double bound, fac_value *v) {
    return fac_where(fac_less_or_equal(y, fac_grad_number(y, bound)), fac_grad_number(v, 0), v);
}
fac_value *fac_grad_short_of(fac_value *y, double bound, fac_value *v) {
    return fac_where(fac_greater_or_equal(y, fac_grad_number(y, bound)), fac_grad_number(v, 0), v);
}
fac_value *fac_grad_sign(fac_value *v) {
    return fac_where(fac_isnan(v), fac_grad_number(v, 0), fac_sign(v));
}

void fac_grad_flat(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    (void)dy;
    dx[0] = fac_grad_spread(fac_grad_number(n->in[0], 0), n->in[0]);
}

/* Equal dims need no op, not even one that is a view: it would cut a chain in two. */
fac_value *fac_grad_unbroadcast(const fac_node *n, int i, fac_value *v) {
    return fac_dims_equal(&v->type.dims, &n->in[i]->type.dims) ? v : fac_sum_like(v, n->in[i]);
}

void fac_grad_weighted(const fac_node *n, int i, fac_value *dy, fac_value *w, fac_value *dx[]) {
    if (fac_needs(n, i)) dx[i] = fac_grad_unbroadcast(n, i, w ? fac_mul(dy, w) : dy);
}

void fac_grad_extreme(const fac_node *n, fac_value *dy, bool larger, fac_value *dx[]) {
    fac_value *x = n->in[0], *y = n->in[1],
              *shared = fac_where(fac_equal(x, y), fac_grad_times(dy, 0.5), dy);
    for (int i = 0; i < 2; i++) {
        fac_value *lost = larger == (i == 0) ? fac_less(x, y) : fac_greater(x, y);
        if (fac_needs(n, i))
            dx[i] = fac_grad_unbroadcast(n, i, fac_where(lost, fac_grad_number(dy, 0), shared));
    }
}

void fac_grad_remainder(const fac_node *n, fac_value *dy, bool down, fac_value *dx[]) {
    fac_grad_weighted(n, 0, dy, NULL, dx);
    if (!fac_needs(n, 1)) return;
    fac_value *x = n->in[0], *y = n->in[1], *r = n->out[0];
    fac_value *q = fac_round(fac_div(fac_sub(x, r), y));
    if (down) /* of x and an infinite y of the other sign the rest is y */
        q = fac_where(fac_isinf(r, true, true), fac_grad_number(q, -1), q);
    fac_value *none = down ? fac_equal(y, fac_grad_number(y, 0)) : fac_isnan(r);
    fac_grad_weighted(n, 1, dy, fac_neg(fac_where(none, fac_div(x, y), q)), dx);
}
