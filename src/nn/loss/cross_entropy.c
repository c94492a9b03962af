/* Cross entropy and negative log likelihood of labels.  With s = label_smoothing and p the probabilities of C classes,
 *   loss = -(1 - s) log p[label] - s/C sum over c of log p[c]        (Szegedy et al. 2016, as torch does it)
 * and of labels that are probabilities t themselves
 *   loss = -sum over c of ((1 - s) t[c] + s/C) log p[c] */
#include "nn/loss/loss_internal.h"

/* 0 and 1 in an array, what fac_one_hot takes. */
static fac_value *off_and_on(fac_value *like) {
    const fac_dims front = fac_shape(0);
    fac_value *parts[] = { fac_unsqueeze(fac_loss_number(like, 0), front), fac_unsqueeze(fac_loss_number(like, 1), front) };
    return fac_concat(parts, 2, 0);
}

/* -(1 - s) sum over c of target[c] log p[c]  -  s/C sum over c of log p[c] */
static fac_value *crossed(fac_value *log_probs, fac_value *target, int axis, double smoothing) {
    fac_value *each = fac_neg(fac_sum(fac_mul(log_probs, target), fac_shape(axis), false));
    if (smoothing == 0) return each;
    fac_value *spread = fac_neg(fac_mean(log_probs, fac_shape(axis), false));
    fac_value *rest = fac_loss_number(each, 1 - smoothing);
    return fac_add(fac_mul(each, rest), fac_mul(spread, fac_loss_number(each, smoothing)));
}

static fac_value *nll(fac_value *log_probs, fac_value *labels, const fac_cross_entropy_opts *opts) {
    static const fac_cross_entropy_opts none;
    const fac_cross_entropy_opts *o = opts ? opts : &none;
    fac_graph *g = log_probs->graph;
    if (g->error.status) return g->poison;
    const fac_dims *x = &log_probs->type.dims, *t = &labels->type.dims;
    if (x->n < 1 || t->n != x->n - 1 || labels->type.dtype != FAC_I64)
        return fac_fail_graph(g, FAC_E_SHAPE,
                              "labels must be i64 N,... for scores N,C,...: they have %d dims and type %s, the scores %d dims",
                              t->n, fac_dtype_get(labels->type.dtype)->name, x->n);
    const int axis = x->n > 1;                      /* one sample alone: its classes are all there is */
    fac_value *classes = fac_squeeze(fac_slice(fac_shape_of(log_probs), 0, axis, axis + 1, 1), fac_shape(0));
    fac_value *ignored = fac_equal(labels, fac_number(g, FAC_I64, o->ignore ? (double)o->ignore_index : -100));
    fac_value *counts = fac_cast(fac_not(ignored), log_probs->type.dtype);
    fac_value *right = fac_one_hot(labels, classes, off_and_on(log_probs), axis);
    fac_value *each = fac_mul(crossed(log_probs, right, axis, o->label_smoothing), counts);
    if (o->reduction != FAC_REDUCE_MEAN) return fac_loss_reduce(each, o->reduction);
    static const fac_dims all = { 0 };
    return fac_div(fac_sum(each, all, false), fac_sum(counts, all, false));
}

fac_value *fac_nll_loss(fac_value *log_probs, fac_value *labels, const fac_cross_entropy_opts *opts) {
    return nll(log_probs, labels, opts);
}

/* torch's mean divides by the number of samples, of which none is ignored. */
static fac_value *soft(fac_value *log_probs, fac_value *target, const fac_cross_entropy_opts *o) {
    const fac_dims *x = &log_probs->type.dims, *t = &target->type.dims;
    bool same = x->n == t->n && x->n > 0 && target->type.dtype == log_probs->type.dtype;
    for (int k = 0; same && k < x->n; k++) same = x->d[k] == t->d[k] || x->d[k] < 0 || t->d[k] < 0;
    if (!same)
        return fac_fail_graph(log_probs->graph, FAC_E_SHAPE,
                              "labels must be i64 N,... or probabilities of the type and shape of the scores N,C,...");
    return fac_loss_reduce(crossed(log_probs, target, x->n > 1, o ? o->label_smoothing : 0), o ? o->reduction : FAC_REDUCE_MEAN);
}

fac_value *fac_cross_entropy(fac_value *logits, fac_value *labels, const fac_cross_entropy_opts *opts) {
    fac_value *log_probs = fac_log_softmax(logits, logits->type.dims.n > 1);
    if (log_probs->graph->error.status) return log_probs;
    return fac_dtype_get(labels->type.dtype)->kind == 'f' ? soft(log_probs, labels, opts) : nll(log_probs, labels, opts);
}
