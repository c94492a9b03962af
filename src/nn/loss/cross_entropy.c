/* Cross entropy and negative log likelihood of labels: see ops/class_loss.h.  Of labels that are
 * probabilities t themselves
 *   loss = -sum over c of ((1 - s) t[c] + s/C) log p[c] */
#include "nn/loss/loss_internal.h"
#include "ops/class_loss.h"

static fac_class_loss attrs_of(const fac_cross_entropy_opts *o) {
    static const fac_cross_entropy_opts none;
    if (!o) o = &none;
    const int reduction = o->reduction == FAC_REDUCE_MEAN   ? FAC_CLASS_MEAN
                          : o->reduction == FAC_REDUCE_NONE ? FAC_CLASS_EACH
                                                            : FAC_CLASS_SUM;
    return (fac_class_loss){ reduction, o->ignore, o->ignore ? o->ignore_index : 0,
                             o->label_smoothing };
}

/* NULL: they are labels of these scores. */
static fac_value *refuse(fac_value *scores, fac_value *labels) {
    fac_graph *g = scores->graph;
    const fac_dims *x = &scores->type.dims, *t = &labels->type.dims;
    if (g->error.status) return g->poison;
    if (x->n > 0 && t->n == x->n - 1 && labels->type.dtype == FAC_I64) return NULL;
    return fac_fail_graph(g, FAC_E_SHAPE,
                          "labels must be i64 N,... for scores N,C,...: they have %d dims and type "
                          "%s, the scores %d dims",
                          t->n, fac_dtype_get(labels->type.dtype)->name, x->n);
}

fac_value *fac_nll_loss(fac_value *log_probs, fac_value *labels,
                        const fac_cross_entropy_opts *opts) {
    static const fac_dims all = { 0 };
    const fac_class_loss a = attrs_of(opts);
    fac_value *wrong = refuse(log_probs, labels), *counts;
    if (wrong) return wrong;
    fac_value *each = fac_class_each(log_probs, labels, &a, &counts);
    if (opts && opts->reduction != FAC_REDUCE_MEAN) return fac_loss_reduce(each, opts->reduction);
    return fac_div(fac_sum(each, all, false), fac_sum(counts, all, false));
}

/* torch's mean divides by the number of samples, of which none is ignored. */
static fac_value *soft(fac_value *log_probs, fac_value *target, const fac_cross_entropy_opts *o) {
    const fac_dims *x = &log_probs->type.dims, *t = &target->type.dims;
    bool same = x->n == t->n && x->n > 0 && target->type.dtype == log_probs->type.dtype;
    for (int k = 0; same && k < x->n; k++) same = x->d[k] == t->d[k] || x->d[k] < 0 || t->d[k] < 0;
    if (!same)
        return fac_fail_graph(log_probs->graph, FAC_E_SHAPE,
                              "labels must be i64 N,... or probabilities of the type and shape of "
                              "the scores N,C,...");
    return fac_loss_reduce(fac_class_crossed(log_probs, target, o ? o->label_smoothing : 0),
                           o ? o->reduction : FAC_REDUCE_MEAN);
}

extern const fac_op fac_op_cross_entropy;
fac_value *fac_cross_entropy(fac_value *logits, fac_value *labels,
                             const fac_cross_entropy_opts *opts) {
    if (fac_dtype_get(labels->type.dtype)->kind == 'f') {
        fac_value *log_probs = fac_log_softmax(logits, logits->type.dims.n > 1);
        return log_probs->graph->error.status ? log_probs : soft(log_probs, labels, opts);
    }
    const fac_class_loss a = attrs_of(opts);
    fac_value *wrong = refuse(logits, labels);
    if (wrong) return wrong;
    fac_value *loss = fac_emit(&fac_op_cross_entropy, &a, 2, (fac_value *[]){ logits, labels });
    return opts && opts->reduction == FAC_REDUCE_BATCH_MEAN ? fac_loss_by_batch(loss, labels)
                                                            : loss;
}
