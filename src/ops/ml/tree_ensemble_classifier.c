/* ai.onnx.ml's TreeEnsembleClassifier, as a tree_ensemble, the label of the best class, and what
 * becomes of the scores.
 *
 * Of two classes the leaves often vote for one alone.  What its score says of the other one is not
 * in the specification; this is what ONNX Runtime makes of it, which the converters of
 * scikit-learn, LightGBM and XGBoost were written for:
 *   all weights positive   a probability p: 1 - p and p, and class 1 where p > 1/2; no transform
 * but PROBIT others                 a margin s: -s and s, and class 1 where s > 0; LOGISTIC is that
 * of both */
#include "ops/ml/tree_nodes.h"

/* The only class that gets votes; -1: there are several. */
static int64_t only_class(const fac_trees *t) {
    for (int64_t k = 1; k < t->nweights; k++)
        if (t->weights[k].target != t->weights[0].target) return -1;
    return t->nweights ? t->weights[0].target : -1;
}

static bool all_positive(const fac_trees *t) {
    bool positive = true;
    for (int64_t k = 0; k < t->nweights; k++) positive &= t->weights[k].weight >= 0;
    return positive;
}

/* Whether class 1 wins by the score of one class, [N, 1]. */
static fac_value *wins(fac_value *score, bool probability) {
    return fac_squeeze(fac_greater(score, fac_number_as(score, probability ? 0.5 : 0)),
                       fac_shape(1));
}

static fac_value *scores_of_one(fac_value *s, bool probability, fac_ml_post post) {
    if (post == FAC_ML_PROBIT) return fac_ml_probit(s);
    if (probability) return fac_ml_two_columns(fac_sub(fac_number_as(s, 1), s), s);
    fac_value *both = fac_ml_two_columns(fac_neg(s), s);
    return post == FAC_ML_LOGISTIC ? fac_sigmoid(both) : both;
}

static void put(const fac_onnx_node *n, fac_value *label, fac_value *scores, fac_value *out[]) {
    out[0] = label;
    if (n->nout > 1) out[1] = fac_cast(scores, FAC_F32);
}

static void of_one(const fac_onnx_node *n, const fac_ml_classes *c, fac_value *s, bool probability,
                   fac_value *out[]) {
    const fac_ml_post post = fac_ml_post_of(n, fac_value_graph(s));
    put(n, fac_ml_label_of_two(c, wins(s, probability)), scores_of_one(s, probability, post), out);
}

/* Two classes that both get votes: class 1 wins by its own score. */
static void of_two(const fac_onnx_node *n, const fac_ml_classes *c, fac_value *y,
                   fac_value *out[]) {
    fac_value *second = fac_slice(y, 1, 1, 2, 1);
    fac_value *yes = fac_squeeze(fac_greater(second, fac_number_as(y, 0)), fac_shape(1));
    put(n, fac_ml_label_of_two(c, yes), fac_ml_post_apply(y, fac_ml_post_of(n, fac_value_graph(y))),
        out);
}

static void of_many(const fac_onnx_node *n, const fac_ml_classes *c, fac_value *y,
                    fac_value *out[]) {
    put(n, fac_ml_label(c, y), fac_ml_post_apply(y, fac_ml_post_of(n, fac_value_graph(y))), out);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    fac_trees t;
    const fac_ml_classes c = fac_ml_classes_of(n, g, "classlabels_int64s", "classlabels_strings");
    fac_ml_reals base = fac_ml_reals_of(n, g, "base_values");
    if (!c.labels || !fac_trees_read(n, g, "class", c.n, &t)) return;
    const int64_t only = only_class(&t);
    const bool binary = c.n <= 2 && only >= 0;
    for (int64_t k = 0; k < t.nweights && binary; k++) t.weights[k].target = 0;
    if (binary) t.targets = 1;
    if (binary && base.n == 2) base = (fac_ml_reals){ 1, &base.v[1], base.dtype };
    fac_value *y = fac_trees_add_base(n, fac_trees_apply(fac_ml_rows(in[0]), &t), base);
    if (binary)
        of_one(n, &c, y, c.n == 2 && all_positive(&t), out);
    else if (c.n == 2)
        of_two(n, &c, y, out);
    else
        of_many(n, &c, y, out);
}

const fac_onnx fac_reads_tree_ensemble_classifier[] = {
    { FAC_ML, "TreeEnsembleClassifier", 1, 0, fac_tree_names, load, 1 }, { 0 }
};
