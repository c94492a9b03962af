/* ai.onnx.ml's LinearClassifier: scores x w^T + b, and the label of the highest; one score alone is
 * that of class 1. */
#include "ops/ml/linear.h"

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_ml_classes c = fac_ml_classes_of(n, g, "classlabels_ints", "classlabels_strings");
    const fac_ml_post post = fac_ml_post_of(n, g);
    fac_value *y = c.labels ? fac_ml_linear(n, fac_ml_rows(in[0]), 0) : NULL;
    if (!y) return;
    const int64_t scores = y->type.dims.n == 2 ? y->type.dims.d[1] : -1;
    if (scores > 1 && scores != c.n) {
        fac_fail_graph(g, FAC_E_FORMAT, "LinearClassifier has %lld scores for %d classes",
                       (long long)scores, c.n);
        return;
    }
    if (scores > 1)
        out[0] = fac_ml_label(&c, y);
    else
        out[0] =
            fac_ml_label_of_two(&c, fac_squeeze(fac_greater(y, fac_number_as(y, 0)), fac_shape(1)));
    if (n->nout > 1)
        out[1] = fac_cast(
            scores == 1 && c.n == 2 ? fac_ml_both(y, post) : fac_ml_post_apply(y, post), FAC_F32);
}

static const fac_onnx_attr names[] = { { "multi_class", NULL }, { 0 } };
const fac_onnx fac_reads_linear_classifier[] = {
    { FAC_ML, "LinearClassifier", 1, 0, names, load, 1 }, { 0 }
};
