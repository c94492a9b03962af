/* The attributes of TreeEnsembleRegressor and TreeEnsembleClassifier, which name nodes by (tree,
 * number), as trees. */
#ifndef FACULA_OPS_ML_TREE_NODES_H
#define FACULA_OPS_ML_TREE_NODES_H
#include "ops/ml/ml.h"
#include "ops/ml/tree.h"

/* votes: "target" or "class", what the attributes of the leaves' weights begin with.  false after
 * an error of the graph; all memory is the graph's. */
bool fac_trees_read(const fac_onnx_node *n, fac_graph *g, const char *votes, int64_t targets,
                    fac_trees *out);
/* y + base_values, where there are any. */
fac_value *fac_trees_add_base(const fac_onnx_node *n, fac_value *y, fac_ml_reals base);
extern const fac_onnx_attr fac_tree_names[];
#endif
