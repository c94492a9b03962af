/* ai.onnx.ml's TreeEnsemble of version 5: branches and leaves in lists of their own, sets as
 * comparisons. */
#include <math.h>
#include "base/error.h"
#include "graph/graph_internal.h"
#include "ops/ml/ml.h"
#include "ops/ml/tree.h"

typedef struct lists {
    fac_ml_ints roots, feature, yes, no, yes_leaf, no_leaf, missing, leaf_target;
    fac_ml_reals mode, split, weight, members;
} lists;

static void read_lists(const fac_onnx_node *n, fac_graph *g, lists *l) {
    l->roots = fac_ml_ints_of(n, g, "tree_roots");
    l->feature = fac_ml_ints_of(n, g, "nodes_featureids");
    l->yes = fac_ml_ints_of(n, g, "nodes_truenodeids");
    l->no = fac_ml_ints_of(n, g, "nodes_falsenodeids");
    l->yes_leaf = fac_ml_ints_of(n, g, "nodes_trueleafs");
    l->no_leaf = fac_ml_ints_of(n, g, "nodes_falseleafs");
    l->missing = fac_ml_ints_of(n, g, "nodes_missing_value_tracks_true");
    l->leaf_target = fac_ml_ints_of(n, g, "leaf_targetids");
    l->mode = fac_ml_reals_of(n, g, "nodes_modes");
    l->split = fac_ml_reals_of(n, g, "nodes_splits");
    l->weight = fac_ml_reals_of(n, g, "leaf_weights");
    l->members = fac_ml_reals_of(n, g, "membership_values");
}

static bool lengths_fit(fac_graph *g, const lists *l) {
    const int n = l->feature.n;
    const bool fit = n > 0 && l->yes.n == n && l->no.n == n && l->yes_leaf.n == n &&
                     l->no_leaf.n == n && l->mode.n == n && l->split.n == n &&
                     (l->missing.n <= 0 || l->missing.n == n) && l->roots.n > 0 &&
                     l->weight.n >= 0 && l->weight.n == l->leaf_target.n;
    if (!fit)
        fac_fail_graph(g, FAC_E_FORMAT,
                       "the lists of nodes and leaves are not all there, or of other lengths");
    return fit && !g->error.status;
}

/* Leaves come after the branches, and after these the comparisons that sets become. */
static int64_t child(const lists *l, int64_t at, bool leaf) {
    if (!leaf) return at < l->feature.n ? at : -1;
    return at >= 0 && at < l->weight.n ? l->feature.n + at : -1;
}

static bool fill_branch(fac_graph *g, const lists *l, int k, fac_trees *t) {
    fac_tree_node *n = &t->nodes[k];
    const double mode = l->mode.v[k];
    const int parents = n->parents;
    if (!(mode >= 0 && mode <= FAC_TREE_MEMBER))
        return fac_fail_graph(g, FAC_E_FORMAT, "a node's mode is %g", mode), false;
    *n = (fac_tree_node){ .mode = (int)mode,
                          .feature = l->feature.v[k],
                          .split = l->split.v[k],
                          .parents = parents,
                          .yes = child(l, l->yes.v[k], l->yes_leaf.v[k] != 0),
                          .no = child(l, l->no.v[k], l->no_leaf.v[k] != 0),
                          .missing = l->missing.n > 0 && l->missing.v[k] };
    if (n->yes >= 0) t->nodes[n->yes].parents++;
    if (n->no >= 0 && n->no != n->yes) t->nodes[n->no].parents++;
    return true;
}

static void fill_leaf(const lists *l, int k, fac_trees *t) {
    t->nodes[l->feature.n + k] = (fac_tree_node){ .mode = FAC_TREE_LEAF, .first = k, .count = 1 };
    t->weights[k] = (fac_tree_weight){ l->leaf_target.v[k], l->weight.v[k] };
}

/* x in {a, b, c} is x == a, else x == b, else x == c.  *at: where the set begins among the members,
 * whose end is a NaN. */
static bool split_set(fac_graph *g, const lists *l, int k, int *at, fac_trees *t) {
    fac_tree_node *n = &t->nodes[k];
    const fac_tree_node as = *n;
    if (*at >= l->members.n || isnan(l->members.v[*at]))
        return fac_fail_graph(g, FAC_E_FORMAT, "membership_values lacks the set of node %d", k),
               false;
    n->mode = FAC_TREE_EQ;
    n->split = l->members.v[(*at)++];
    for (; *at < l->members.n && !isnan(l->members.v[*at]); ++*at) {
        fac_tree_node *next = &t->nodes[t->n];
        *next = as;
        next->mode = FAC_TREE_EQ;
        next->split = l->members.v[*at];
        next->parents = 1;
        n->no = t->n++;
        n = next;
    }
    ++*at;
    return true;
}

static bool read_trees(const fac_onnx_node *n, fac_graph *g, fac_trees *t) {
    lists l = { 0 };
    read_lists(n, g, &l);
    if (!lengths_fit(g, &l)) return false;
    const int members = l.members.n > 0 ? l.members.n : 0;
    *t = (fac_trees){ .n = (int64_t)l.feature.n + l.weight.n,
                      .nweights = l.weight.n,
                      .nroots = l.roots.n,
                      .targets = fac_onnx_int(n, "n_targets", 1) };
    t->nodes = fac_arena_alloc(&g->arena, (size_t)(t->n + members), sizeof *t->nodes);
    t->weights = fac_arena_alloc(&g->arena, (size_t)t->nweights + 1, sizeof *t->weights);
    t->roots = fac_arena_alloc(&g->arena, (size_t)t->nroots, sizeof *t->roots);
    if (!t->nodes || !t->weights || !t->roots)
        return fac_fail_graph(g, FAC_E_NOMEM, "no memory for trees"), false;
    bool ok = true;
    int at = 0;
    for (int k = 0; k < l.weight.n; k++) fill_leaf(&l, k, t);
    for (int k = 0; k < l.feature.n && ok; k++) ok = fill_branch(g, &l, k, t);
    for (int k = 0; k < l.feature.n && ok; k++)
        if (t->nodes[k].mode == FAC_TREE_MEMBER) ok = split_set(g, &l, k, &at, t);
    for (int k = 0; k < l.roots.n; k++) t->roots[k] = l.roots.v[k];
    return ok;
}

/* ONNX's order of both is another one here. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    static const fac_tree_aggregate aggregates[] = { FAC_TREE_AVERAGE, FAC_TREE_SUM, FAC_TREE_MIN,
                                                     FAC_TREE_MAX };
    const int64_t how = fac_onnx_int(n, "aggregate_function", 1),
                  post = fac_onnx_int(n, "post_transform", 0);
    fac_trees t;
    if (!read_trees(n, g, &t)) return;
    if (how < 0 || how > 3 || post < 0 || post > FAC_ML_PROBIT) {
        fac_fail_graph(g, FAC_E_FORMAT, "aggregate_function is %lld, post_transform %lld",
                       (long long)how, (long long)post);
        return;
    }
    t.aggregate = aggregates[how];
    const fac_dtype dtype = in[0]->type.dtype;
    fac_value *x = dtype == FAC_F64 ? fac_ml_rows(in[0]) : fac_cast(fac_ml_rows(in[0]), FAC_F32);
    out[0] = fac_cast(fac_ml_post_apply(fac_trees_apply(x, &t), (fac_ml_post)post), dtype);
}

static const fac_onnx_attr names[] = { { "nodes_hitrates", NULL }, { 0 } };
const fac_onnx fac_reads_tree_ensemble_5[] = { { FAC_ML, "TreeEnsemble", 5, 0, names, load, 1 },
                                               { 0 } };
