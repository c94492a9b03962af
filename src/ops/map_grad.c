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

void fac_grad_remainder(const fac_node *n, fac_value *dy, fac_value *dx[]) {
    fac_grad_weighted(n, 0, dy, NULL, dx);
    if (!fac_needs(n, 1)) return;
    fac_value *q = fac_round(fac_div(fac_sub(n->in[0], n->out[0]), n->in[1]));
    fac_grad_weighted(n, 1, dy, fac_neg(q), dx);
}
