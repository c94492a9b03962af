/* ONNX's NegativeLogLikelihoodLoss: of each sample minus the score of its label, weighted by that
 * label, and their mean or sum. The mean divides by the weights of the labels that count. */
#include "ops/nll_loss.h"
#include <string.h>
#include "facula/ops.h"

static const char *const reductions[] = { "mean", "sum", "none", NULL };
const fac_attr fac_nll_table[] = { { "reduction", FAC_A_ENUM, offsetof(fac_nll_attrs, reduction), 0,
                                     0, 0, 0, reductions, "of the losses of all samples" },
                                   { "ignore", FAC_A_FLAG, offsetof(fac_nll_attrs, ignore), 0, 0, 0,
                                     0, NULL, "samples with label ignore_index do not count" },
                                   { "ignore_index", FAC_A_INT,
                                     offsetof(fac_nll_attrs, ignore_index), 0, 0, 0, 0, NULL,
                                     "a label" },
                                   { 0 } };
const fac_port fac_nll_ports[] = {
    { "x", FAC_FLOATS, 0 }, { "labels", FAC_INTS, 0 }, { "weight", FAC_FLOATS, FAC_OPTIONAL }, { 0 }
};

static bool fits(int64_t a, int64_t b) { return a == b || a < 0 || b < 0; }

bool fac_nll_type(fac_node *n, fac_type *y) {
    const fac_dims *x = &n->in[0]->type.dims, *t = &n->in[1]->type.dims,
                   *w = n->in[2] ? &n->in[2]->type.dims : NULL;
    bool same = x->n >= 2 && t->n == x->n - 1;
    for (int k = 0; same && k < t->n; k++) same = fits(t->d[k], x->d[k + (k > 0)]);
    if (!same) return fac_fail(n, FAC_E_SHAPE, "labels must be N,.. for scores N,C,..");
    if (w && (w->n != 1 || !fits(w->d[0], x->d[1])))
        return fac_fail(n, FAC_E_SHAPE, "there must be one weight for each class");
    if (w && n->in[2]->type.dtype != n->in[0]->type.dtype)
        return fac_fail(n, FAC_E_DTYPE, "weights and scores must be of one type");
    *y = (fac_type){ n->in[0]->type.dtype, { 0 } };
    if (((const fac_nll_attrs *)n->attrs)->reduction == FAC_NLL_NONE) y->dims = *t;
    return true;
}

static bool infer(fac_node *n) { return fac_nll_type(n, &n->out[0]->type); }

static void expand(const fac_node *n, fac_value *y[]) {
    static const fac_dims all = { 0 };
    const fac_nll_attrs *a = n->attrs;
    fac_value *x = n->in[0], *labels = n->in[1], *weight = NULL;
    fac_graph *g = n->graph;
    if (a->ignore) { /* any class will do where none counts */
        fac_value *counts =
            fac_not(fac_equal(labels, fac_number(g, labels->type.dtype, (double)a->ignore_index)));
        labels = fac_where(counts, labels, fac_number(g, labels->type.dtype, 0));
        weight = fac_cast(counts, x->type.dtype);
    }
    if (n->in[2]) {
        fac_value *of_label = fac_gather(n->in[2], labels, 0);
        weight = weight ? fac_mul(weight, of_label) : of_label;
    }
    fac_value *each = fac_neg(
        fac_squeeze(fac_gather_elements(x, fac_unsqueeze(labels, fac_shape(1)), 1), fac_shape(1)));
    if (weight) each = fac_mul(each, weight);
    y[0] = a->reduction == FAC_NLL_NONE  ? each
           : a->reduction == FAC_NLL_SUM ? fac_sum(each, all, false)
           : weight ? fac_div(fac_sum(each, all, false), fac_sum(weight, all, false))
                    : fac_mean(each, all, false);
}

/* ---- ONNX ---- */

bool fac_nll_load(const fac_onnx_node *n, fac_graph *g, fac_nll_attrs *to) {
    const char *reduction = fac_onnx_text(n, "reduction", "mean");
    *to = (fac_nll_attrs){ .ignore = fac_onnx_has(n, "ignore_index"),
                           .ignore_index = fac_onnx_int(n, "ignore_index", 0) };
    while (reductions[to->reduction] && strcmp(reductions[to->reduction], reduction))
        to->reduction++;
    if (!reductions[to->reduction])
        fac_fail_graph(g, FAC_E_FORMAT, "attribute reduction = \"%s\" of %s", reduction, n->type);
    return reductions[to->reduction] != NULL;
}

void fac_nll_put(const fac_onnx_writer *w, const fac_nll_attrs *a) {
    fac_onnx_put_text(w, "reduction", reductions[a->reduction]);
    if (a->ignore) fac_onnx_put_int(w, "ignore_index", a->ignore_index);
}

extern const fac_op fac_op_nll_loss;
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *y[]) {
    fac_nll_attrs a;
    if (fac_nll_load(n, g, &a)) y[0] = fac_emit(&fac_op_nll_loss, &a, n->nin, in);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *in[] = { fac_onnx_name(w, n->in[0]), fac_onnx_indices(w, n->in[1]),
                         fac_onnx_name(w, n->in[2]) };
    fac_onnx_put(w, "NegativeLogLikelihoodLoss", 3, in, fac_onnx_name(w, n->out[0]));
    fac_nll_put(w, n->attrs);
    return true;
}

static const fac_onnx_attr names[] = { { "reduction", NULL }, { "ignore_index", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "NegativeLogLikelihoodLoss", 12, 0, names, load, 0 },
                                 { 0 } };
static const fac_case cases[] = {
    { "nll_loss(f32[2,3], i64{2,0})", -2, 2, 1e-6 },
    { "nll_loss(f64[2,3], i64{2,1}, f64[3]) reduction=sum", -2, 2, 1e-6 },
    { "nll_loss(f32[2,4,2], i64[2,2]{0,3,1,2}, f32[4]) ignore=1 ignore_index=3", 0.5, 2, 1e-6 },
    { "nll_loss(f32[3,2], i32{1,-1,0}) reduction=none ignore=1 ignore_index=-1", -2, 2, 1e-6 },
    { 0 }
};

const fac_op fac_op_nll_loss = {
    .name = "nll_loss",
    .doc = "minus the score of the label: mean, sum or of each sample",
    .in = fac_nll_ports,
    .out = fac_ports_y,
    .attrs = fac_nll_table,
    .attrs_size = sizeof(fac_nll_attrs),
    .infer = infer,
    .expand = expand,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
