/* See grad.h. */
#include "ops/grad.h"
#include "ops/reduce.h"

fac_value *fac_grad_as(fac_value *v, fac_dtype dtype) {
    return fac_value_type(v).dtype == dtype ? v : fac_cast(v, dtype);
}

fac_value *fac_grad_spread(fac_value *v, fac_value *like) {
    return fac_expand_to(v, fac_shape_of(like));
}

fac_value *fac_grad_of_channels(fac_value *v, const fac_value *x) {
    /* a 1 for each dim after the channels */
    fac_dims trailing = { .n = fac_value_type(x).dims.n - 2 };
    for (int k = 0; k < trailing.n; k++) trailing.d[k] = k + 1;
    v = fac_grad_as(v, fac_value_type(x).dtype);
    return trailing.n > 0 ? fac_unsqueeze(v, trailing) : v;
}

fac_value *fac_grad_share(fac_value *v, fac_value *x, fac_value *y) {
    const fac_dtype dtype = fac_value_type(v).dtype, wide = fac_grad_wide(dtype);
    fac_value *count = fac_div(fac_cast(fac_size_of(x), wide), fac_cast(fac_size_of(y), wide));
    return fac_grad_as(fac_div(fac_grad_as(v, wide), count), dtype);
}

fac_value *fac_grad_swap(fac_value *v) {
    fac_dims order = { .n = fac_value_type(v).dims.n };
    for (int k = 0; k < order.n; k++) order.d[k] = k < order.n - 2 ? k : 2 * order.n - 3 - k;
    return fac_transpose(v, order);
}

fac_value *fac_grad_times(fac_value *v, double number) {
    return number == 1
               ? v
               : fac_mul(v, fac_number(fac_value_graph(v), fac_value_type(v).dtype, number));
}

fac_value *fac_grad_plus(fac_value *a, fac_value *b) {
    if (a && b) return fac_add(a, b);
    return a ? a : b;
}

fac_value *fac_grad_unreduce(const fac_node *n, fac_value *v) {
    const fac_reduce_attrs *a = n->attrs;
    fac_dims axes = { 0 };
    unsigned mask;
    if (a->keep) return v;
    if (!fac_reduce_axes(n, &mask))
        return fac_fail_graph(n->graph, FAC_E_UNSUPPORTED,
                              "%s: its gradient needs axes that are known, or keep", n->op->name);
    for (int k = 0; k < n->in[0]->type.dims.n; k++)
        if (mask >> k & 1) axes.d[axes.n++] = k;
    return axes.n ? fac_unsqueeze(v, axes) : v;
}

fac_standard fac_grad_standard(fac_value *x, fac_dims axes, double epsilon) {
    fac_standard s = { .axes = axes };
    s.mean = axes.n ? fac_mean(x, axes, true) : x;
    fac_value *centred = fac_sub(x, s.mean), *squares = fac_mul(centred, centred);
    fac_value *var = axes.n ? fac_mean(squares, axes, true) : squares;
    s.inverse = fac_reciprocal(
        fac_sqrt(fac_add(var, fac_number(fac_value_graph(x), fac_value_type(x).dtype, epsilon))));
    s.hat = fac_mul(centred, s.inverse);
    return s;
}

fac_value *fac_grad_unstandard(const fac_standard *s, fac_value *dhat) {
    fac_value *along = fac_mul(dhat, s->hat), *mean = dhat;
    if (s->axes.n) {
        along = fac_mean(along, s->axes, true);
        mean = fac_mean(dhat, s->axes, true);
    }
    return fac_mul(s->inverse, fac_sub(fac_sub(dhat, mean), fac_mul(s->hat, along)));
}
