/* Decision trees as flat tables, which the op tree_ensemble reads.
 *
 * A row r of the tables is a node.  features[r] >= 0: it compares a feature of x, and its two
 * children are the rows next[r] (where the answer is yes) and next[r] + 1.  features[r] < 0: a leaf
 * of -1 - features[r] weights, the first of which is number next[r]. */
#ifndef FACULA_OPS_ML_TREE_H
#define FACULA_OPS_ML_TREE_H
#include <math.h>
#include "facula/op.h"

enum {
    FAC_TREE_NAN = 1 << 30,               /* in features[r]: NaN goes to yes             */
    FAC_TREE_EQUAL = 1 << 29,             /* x == split instead of x <= split            */
    FAC_TREE_FEATURE = FAC_TREE_EQUAL - 1 /* the feature's number                        */
};
typedef enum fac_tree_aggregate {
    FAC_TREE_SUM,
    FAC_TREE_AVERAGE,
    FAC_TREE_MIN,
    FAC_TREE_MAX
} fac_tree_aggregate;

/* With the weight of one more leaf; of MIN and MAX a NaN stands for no weight yet. */
static inline double fac_tree_joined(int how, double y, double w) {
    if (how == FAC_TREE_MIN) return fmin(y, w);
    return how == FAC_TREE_MAX ? fmax(y, w) : y + w;
}

typedef struct fac_tree_attrs {
    int64_t targets;
    int aggregate;
} fac_tree_attrs;

/* The comparisons of ONNX, in the order of TreeEnsemble's nodes_modes. */
typedef enum fac_tree_mode {
    FAC_TREE_LEQ,
    FAC_TREE_LT,
    FAC_TREE_GTE,
    FAC_TREE_GT,
    FAC_TREE_EQ,
    FAC_TREE_NEQ,
    FAC_TREE_MEMBER,
    FAC_TREE_LEAF
} fac_tree_mode;

/* A node as files have it: children by number in the list of all nodes. */
typedef struct fac_tree_node {
    int mode;
    int64_t feature, yes, no;
    double split;
    bool missing;         /* NaN goes to yes                             */
    int64_t first, count; /* of a leaf: its weights                      */
    int parents;
} fac_tree_node;
typedef struct fac_tree_weight {
    int64_t target;
    double weight;
} fac_tree_weight;
typedef struct fac_trees {
    fac_tree_node *nodes;
    fac_tree_weight *weights;
    int64_t *roots; /* numbers of nodes */
    int64_t n, nweights, nroots, targets;
    fac_tree_aggregate aggregate;
} fac_trees;

/* y [N, targets] of x [N, F], f32 or f64: a node tree_ensemble with tables made of the trees.  An
 * error of the graph when they are no trees. */
fac_value *fac_trees_apply(fac_value *x, const fac_trees *t);
#endif
