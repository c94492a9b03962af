/* Cross entropy of scores and labels in one node, with what a training asks beside it.  Has no
 * prototype: fac_cross_entropy() of facula/nn/loss.h makes it. */
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/class_loss.h"
#include "ops/cost.h"

static const char *const reductions[] = { "mean", "sum", "none", NULL };
static const fac_attr table[] = {
    { "reduction", FAC_A_ENUM, offsetof(fac_class_loss, reduction), 0, 0, 0, 0, reductions,
      "of the losses of all samples" },
    { "ignore", FAC_A_FLAG, offsetof(fac_class_loss, ignore), 0, 0, 0, 0, NULL,
      "samples with label ignore_index do not count, else those with -100" },
    { "ignore_index", FAC_A_INT, offsetof(fac_class_loss, ignore_index), 0, 0, 0, 0, NULL,
      "a label" },
    { "label_smoothing", FAC_A_REAL, offsetof(fac_class_loss, smoothing), 0, 0, 0, 0, NULL,
      "this part of each label is spread over all classes" },
    { 0 }
};
static const fac_port in[] = { { "x", FAC_FLOATS, 0 }, { "labels", FAC_INTS, 0 }, { 0 } };
/* count: the samples whose labels count, by which the mean divides; hits: those whose first best
 * score is their label's */
static const fac_port out[] = { { "loss", FAC_FLOATS, 0 },
                                { "count", FAC_FLOATS, FAC_OPTIONAL },
                                { "hits", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

static bool infer(fac_node *n) {
    const fac_dtype dtype = n->in[0]->type.dtype;
    if (!fac_class_fits(n)) return false;
    n->out[0]->type = n->out[1]->type = (fac_type){ dtype, { 0 } };
    n->out[2]->type = (fac_type){ FAC_F32, { 0 } };
    if (((const fac_class_loss *)n->attrs)->reduction == FAC_CLASS_EACH)
        n->out[0]->type.dims = n->in[1]->type.dims;
    return true;
}

static void expand(const fac_node *n, fac_value *y[]) {
    static const fac_dims all = { 0 };
    const fac_class_loss *a = n->attrs;
    fac_value *x = n->in[0], *labels = n->in[1], *counts;
    const int axis = fac_class_axis(x);
    fac_value *each = fac_class_each(fac_log_softmax(x, axis), labels, a, &counts);
    y[1] = fac_sum(counts, all, false);
    y[0] = a->reduction == FAC_CLASS_EACH ? each : fac_sum(each, all, false);
    if (a->reduction == FAC_CLASS_MEAN) y[0] = fac_div(y[0], y[1]);
    y[2] = fac_sum(
        fac_cast(fac_equal(fac_arg_max(x, axis, false), fac_cast(labels, FAC_I64)), FAC_F32), all,
        false);
}

extern const fac_op fac_op_cross_entropy_grad;
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const fac_class_loss *a = n->attrs;
    const fac_class_loss same = { .ignore = a->ignore,
                                  .ignore_index = a->ignore_index,
                                  .smoothing = a->smoothing };
    fac_value *const from[] = { n->in[0], n->in[1], dy[0],
                                a->reduction == FAC_CLASS_MEAN ? n->out[1] : NULL };
    if (dy[0]) dx[0] = fac_emit(&fac_op_cross_entropy_grad, &same, 4, from);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 5, to); }

static const fac_case cases[] = {
    { "cross_entropy(f32[2,3], i64[2])", -2, 2, 1e-6 },
    { "cross_entropy(f32[5,1000], i64[5])", -9, 9, 2e-6 },
    { "cross_entropy(f64[3,5], i64[3]) reduction=sum label_smoothing=0.1", -2, 2, 1e-6 },
    { "cross_entropy(f32[2,4,2], i64[2,2]{0,3,1,2}) ignore=1 ignore_index=3", -2, 2, 1e-6 },
    { "cross_entropy(f32[90,3], i32[90]) reduction=none ignore=1 ignore_index=-1 "
      "label_smoothing=0.2",
      -4, 4, 2e-6 },
    { "cross_entropy(f32[70,8], i64[70]) ignore=1 ignore_index=2", -3, 3, 2e-6 },
    { "cross_entropy(f32[4000], i64[])", -2, 2, 2e-6 },
    { "cross_entropy(f16[3,9], i64[3])", -2, 2, 4e-3 },
    { "cross_entropy(f32[0,3], i64[0]) reduction=sum", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_cross_entropy;
const fac_op fac_op_cross_entropy = {
    .name = "cross_entropy",
    .doc = "minus the log of softmax at the label: mean, sum or of each sample",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(fac_class_loss),
    .infer = infer,
    .expand = expand,
    .grad = grad,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
