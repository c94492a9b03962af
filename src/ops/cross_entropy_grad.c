/* The gradient of cross_entropy. */
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/class_loss.h"
#include "ops/cost.h"
#include "ops/grad.h"

static const fac_attr table[] = {
    { "ignore", FAC_A_FLAG, offsetof(fac_class_loss, ignore), 0, 0, 0, 0, NULL,
      "samples with label ignore_index do not count, else those with -100" },
    { "ignore_index", FAC_A_INT, offsetof(fac_class_loss, ignore_index), 0, 0, 0, 0, NULL,
      "a label" },
    { "label_smoothing", FAC_A_REAL, offsetof(fac_class_loss, smoothing), 0, 0, 0, 0, NULL,
      "this part of each label is spread over all classes" },
    { 0 }
};
/* dy: of each sample, or one for all; divided by count where that is there */
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "labels", FAC_INTS, 0 },
                               { "dy", FAC_FLOATS, 0 },
                               { "count", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = { { "dx", FAC_FLOATS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type, *t = &n->in[1]->type, *dy = &n->in[2]->type,
                   *count = n->in[3] ? &n->in[3]->type : NULL;
    if (!fac_class_fits(n)) return false;
    if (dy->dtype != x->dtype || (count && count->dtype != x->dtype))
        return fac_fail(n, FAC_E_DTYPE, "scores, gradient and count must be of one type");
    bool same = !dy->dims.n || dy->dims.n == t->dims.n;
    for (int k = 0; same && k < dy->dims.n; k++)
        same = dy->dims.d[k] == t->dims.d[k] || dy->dims.d[k] < 0 || t->dims.d[k] < 0;
    if (!same)
        return fac_fail(n, FAC_E_SHAPE, "the gradient must be one number, or one for each label");
    if (count && count->dims.n) return fac_fail(n, FAC_E_SHAPE, "count must be one number");
    n->out[0]->type = *x;
    return true;
}

/* With w = dy / count of a sample that counts, else 0, the gradient by log p is -w ((1 - s) right +
 * s/C). */
static void expand(const fac_node *n, fac_value *dx[]) {
    const fac_class_loss *a = n->attrs;
    fac_value *x = n->in[0], *labels = n->in[1], *dy = n->in[2];
    const int axis = fac_class_axis(x);
    if (n->in[3]) dy = fac_div(dy, n->in[3]);
    fac_value *w =
        fac_unsqueeze(fac_mul(fac_neg(dy), fac_class_counts(x, labels, a)), fac_shape(axis));
    fac_value *d = fac_mul(fac_class_right(x, labels), fac_grad_times(w, 1 - a->smoothing));
    if (a->smoothing != 0) {
        fac_value *classes = fac_cast(fac_class_count(x), x->type.dtype);
        d = fac_add(d, fac_div(fac_grad_times(w, a->smoothing), classes));
    }
    dx[0] = fac_log_softmax_grad(fac_log_softmax(x, axis), d, axis);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 5, to); }

static const fac_case cases[] = {
    { "cross_entropy_grad(f32[2,3], i64[2], f32[], f32[])", 0.5, 2, 1e-6 },
    { "cross_entropy_grad(f32[5,1000], i64[5], f32[], f32[])", 1, 9, 2e-6 },
    { "cross_entropy_grad(f64[3,5], i64[3], f64[]) label_smoothing=0.1", -2, 2, 1e-6 },
    { "cross_entropy_grad(f32[2,4,2], i64[2,2]{0,3,1,2}, f32[2,2]) ignore=1 ignore_index=3", -2, 2,
      1e-6 },
    { "cross_entropy_grad(f32[90,3], i32[90], f32[90]) ignore=1 ignore_index=-1 "
      "label_smoothing=0.2",
      -4, 4, 4e-6 },
    { "cross_entropy_grad(f32[70,8], i64[70], f32[70]) ignore=1 ignore_index=2", -3, 3, 4e-6 },
    { "cross_entropy_grad(f32[4000], i64[], f32[])", -2, 2, 2e-6 },
    { "cross_entropy_grad(f16[3,9], i64[3], f16[], f16[])", 0.5, 2, 4e-3 },
    { "cross_entropy_grad(f32[0,3], i64[0], f32[], f32[])", 1, 1, 0 },
    { 0 }
};

extern const fac_op fac_op_cross_entropy_grad;
const fac_op fac_op_cross_entropy_grad = {
    .name = "cross_entropy_grad",
    .doc = "the gradient of cross_entropy",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(fac_class_loss),
    .infer = infer,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
