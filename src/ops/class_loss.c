#include "ops/class_loss.h"
#include "facula/ops.h"
#include "graph/graph_internal.h"
#include "ops/grad.h"
#include "ops/shape.h"

fac_value *fac_class_count(fac_value *x) { return fac_dim_of(x, fac_class_axis(x)); }

fac_value *fac_class_right(fac_value *x, fac_value *labels) {
    const fac_dims front = fac_shape(0);
    fac_value *parts[2];
    for (int i = 0; i < 2; i++)
        parts[i] = fac_unsqueeze(fac_number(x->graph, x->type.dtype, i), front);
    return fac_one_hot(labels, fac_class_count(x), fac_concat(parts, 2, 0), fac_class_axis(x));
}

fac_value *fac_class_counts(const fac_value *x, fac_value *labels, const fac_class_loss *a) {
    fac_value *ignored =
        fac_equal(labels, fac_number(x->graph, labels->type.dtype, (double)fac_class_ignored(a)));
    return fac_cast(fac_not(ignored), x->type.dtype);
}

fac_value *fac_class_crossed(fac_value *log_probs, fac_value *target, double smoothing) {
    const fac_dims axis = fac_shape(fac_class_axis(log_probs));
    fac_value *each = fac_neg(fac_sum(fac_mul(log_probs, target), axis, false));
    if (smoothing == 0) return each;
    return fac_add(fac_grad_times(each, 1 - smoothing),
                   fac_grad_times(fac_neg(fac_mean(log_probs, axis, false)), smoothing));
}

fac_value *fac_class_each(fac_value *log_probs, fac_value *labels, const fac_class_loss *a,
                          fac_value **counts) {
    *counts = fac_class_counts(log_probs, labels, a);
    return fac_mul(fac_class_crossed(log_probs, fac_class_right(log_probs, labels), a->smoothing),
                   *counts);
}

bool fac_class_fits(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims, *t = &n->in[1]->type.dims;
    bool same = x->n > 0 && t->n == x->n - 1;
    for (int k = 0; same && k < t->n; k++) {
        const int64_t d = x->d[k + (k > 0)];
        same = t->d[k] == d || t->d[k] < 0 || d < 0;
    }
    if (!same) return fac_fail(n, FAC_E_SHAPE, "labels must be N,.. for scores N,C,..");
    return x->d[fac_class_axis(n->in[0])] != 0 || fac_fail(n, FAC_E_SHAPE, "there are no classes");
}
