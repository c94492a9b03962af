/* ai.onnx.ml's TreeEnsembleRegressor, as a tree_ensemble and what becomes of its sums. */
#include <string.h>
#include "ops/ml/tree_nodes.h"

static fac_tree_aggregate aggregate_of(const fac_onnx_node *n, fac_graph *g) {
    static const char *const names[] = { "SUM", "AVERAGE", "MIN", "MAX" };
    const char *text = fac_onnx_text(n, "aggregate_function", "SUM");
    for (int k = 0; k < 4; k++)
        if (!strcmp(text, names[k])) return (fac_tree_aggregate)k;
    fac_fail_graph(g, FAC_E_FORMAT, "aggregate_function is \"%s\"", text);
    return FAC_TREE_SUM;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    fac_trees t;
    const fac_ml_post post = fac_ml_post_of(n, g);
    const fac_tree_aggregate how = aggregate_of(n, g);
    const fac_ml_reals base = fac_ml_reals_of(n, g, "base_values");
    if (!fac_trees_read(n, g, "target", fac_onnx_int(n, "n_targets", 1), &t)) return;
    t.aggregate = how;
    fac_value *y = fac_trees_add_base(n, fac_trees_apply(fac_ml_rows(in[0]), &t), base);
    out[0] = fac_cast(fac_ml_post_apply(y, post), FAC_F32);
}

const fac_onnx fac_reads_tree_ensemble_regressor[] = {
    { FAC_ML, "TreeEnsembleRegressor", 1, 0, fac_tree_names, load, 1 }, { 0 }
};
