/* See tree_nodes.h. */
#include "ops/ml/tree_nodes.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "graph/graph_internal.h"

const fac_onnx_attr fac_tree_names[] = { { "nodes_hitrates", NULL },
                                         { "nodes_hitrates_as_tensor", NULL },
                                         { 0 } };

/* What the attributes say, one element for each node; those of votes one for each weight. */
typedef struct lists {
    fac_ml_ints tree, id, feature, yes, no, missing, vote_tree, vote_id, vote_target;
    fac_ml_reals split, vote;
    fac_ml_texts mode;
} lists;

static fac_ml_ints vote_ints(const fac_onnx_node *n, fac_graph *g, const char *votes,
                             const char *what) {
    const char *attr = fac_arena_print(&g->arena, "%s_%s", votes, what);
    return attr ? fac_ml_ints_of(n, g, attr) : (fac_ml_ints){ -1, NULL };
}

static void read_lists(const fac_onnx_node *n, fac_graph *g, const char *votes, lists *l) {
    const char *weights = fac_arena_print(&g->arena, "%s_weights", votes);
    l->tree = fac_ml_ints_of(n, g, "nodes_treeids");
    l->id = fac_ml_ints_of(n, g, "nodes_nodeids");
    l->feature = fac_ml_ints_of(n, g, "nodes_featureids");
    l->yes = fac_ml_ints_of(n, g, "nodes_truenodeids");
    l->no = fac_ml_ints_of(n, g, "nodes_falsenodeids");
    l->missing = fac_ml_ints_of(n, g, "nodes_missing_value_tracks_true");
    l->mode = fac_ml_texts_of(n, g, "nodes_modes");
    l->split = fac_ml_reals_of(n, g, "nodes_values");
    l->vote_tree = vote_ints(n, g, votes, "treeids");
    l->vote_id = vote_ints(n, g, votes, "nodeids");
    l->vote_target = vote_ints(n, g, votes, "ids");
    if (weights) l->vote = fac_ml_reals_of(n, g, weights);
}

static bool lengths_fit(fac_graph *g, const lists *l) {
    const int n = l->tree.n, votes = l->vote.n;
    const bool nodes = n > 0 && l->id.n == n && l->feature.n == n && l->yes.n == n &&
                       l->no.n == n && l->mode.n == n && l->split.n == n &&
                       (l->missing.n <= 0 || l->missing.n == n);
    const bool leaves =
        votes >= 0 && l->vote_tree.n == votes && l->vote_id.n == votes && l->vote_target.n == votes;
    if (!nodes)
        fac_fail_graph(g, FAC_E_FORMAT,
                       "the lists of nodes_... are not all there, or of other lengths");
    else if (!leaves)
        fac_fail_graph(g, FAC_E_FORMAT,
                       "the lists of weights are not all there, or of other lengths");
    return nodes && leaves && !g->error.status;
}

/* ---- names of nodes ---- */

typedef struct name {
    int64_t tree, id, at;
} name;

static int by_name(const void *x, const void *y) {
    const name *a = x, *b = y;
    if (a->tree != b->tree) return a->tree < b->tree ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static name *sorted_names(fac_graph *g, const fac_ml_ints *tree, const fac_ml_ints *id) {
    name *names = fac_arena_alloc(&g->arena, (size_t)tree->n + 1, sizeof *names);
    if (!names) {
        fac_fail_graph(g, FAC_E_NOMEM, "no memory for %d nodes", tree->n);
        return NULL;
    }
    for (int k = 0; k < tree->n; k++) names[k] = (name){ tree->v[k], id->v[k], k };
    qsort(names, (size_t)tree->n, sizeof *names, by_name);
    return names;
}

static int64_t find(const name *names, int n, int64_t tree, int64_t id) {
    const name key = { tree, id, 0 }, *found = bsearch(&key, names, (size_t)n, sizeof key, by_name);
    return found ? found->at : -1;
}

static bool are_unique(fac_graph *g, const name *names, int n) {
    for (int k = 1; k < n; k++)
        if (!by_name(&names[k - 1], &names[k])) {
            fac_fail_graph(g, FAC_E_FORMAT, "tree %lld has two nodes %lld",
                           (long long)names[k].tree, (long long)names[k].id);
            return false;
        }
    return true;
}

/* ---- nodes ---- */

static int mode_of(const char *text) {
    static const char *const modes[] = { "BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF" };
    for (int k = 0; k <= FAC_TREE_LEAF; k++)
        if (k != FAC_TREE_MEMBER && !strcmp(text, modes[k])) return k;
    return -1;
}

static bool fill_node(fac_graph *g, const lists *l, const name *names, int k, fac_trees *t) {
    fac_tree_node *n = &t->nodes[k];
    *n = (fac_tree_node){ .mode = mode_of(l->mode.v[k]),
                          .feature = l->feature.v[k],
                          .split = l->split.v[k],
                          .yes = -1,
                          .no = -1,
                          .missing = l->missing.n > 0 && l->missing.v[k],
                          .parents = n->parents };
    if (n->mode < 0) fac_fail_graph(g, FAC_E_FORMAT, "a node's mode is \"%s\"", l->mode.v[k]);
    if (n->mode < 0 || n->mode == FAC_TREE_LEAF) return n->mode >= 0;
    n->yes = find(names, l->tree.n, l->tree.v[k], l->yes.v[k]);
    n->no = find(names, l->tree.n, l->tree.v[k], l->no.v[k]);
    if (n->yes >= 0) t->nodes[n->yes].parents++;
    if (n->no >= 0) t->nodes[n->no].parents++;
    return true;
}

/* Weights of one leaf lie side by side. */
static bool fill_votes(fac_graph *g, const lists *l, const name *names, fac_trees *t) {
    name *votes = sorted_names(g, &l->vote_tree, &l->vote_id);
    if (!votes) return false;
    for (int k = 0; k < l->vote.n; k++) {
        const int64_t from = votes[k].at, leaf = find(names, l->tree.n, votes[k].tree, votes[k].id);
        t->weights[k] = (fac_tree_weight){ l->vote_target.v[from], l->vote.v[from] };
        if (leaf < 0) {
            fac_fail_graph(g, FAC_E_FORMAT,
                           "a weight is that of node %lld of tree %lld, which is not there",
                           (long long)votes[k].id, (long long)votes[k].tree);
            return false;
        }
        if (!t->nodes[leaf].count++) t->nodes[leaf].first = k;
    }
    return true;
}

/* Roots are the nodes that are nobody's child. */
static void find_roots(const name *names, fac_trees *t) {
    for (int64_t k = 0; k < t->n; k++)
        if (!t->nodes[names[k].at].parents) t->roots[t->nroots++] = names[k].at;
}

bool fac_trees_read(const fac_onnx_node *n, fac_graph *g, const char *votes, int64_t targets,
                    fac_trees *t) {
    lists l = { 0 };
    read_lists(n, g, votes, &l);
    if (!lengths_fit(g, &l)) return false;
    *t = (fac_trees){ .n = l.tree.n, .nweights = l.vote.n, .targets = targets };
    t->nodes = fac_arena_alloc(&g->arena, (size_t)t->n, sizeof *t->nodes);
    t->roots = fac_arena_alloc(&g->arena, (size_t)t->n, sizeof *t->roots);
    t->weights = fac_arena_alloc(&g->arena, (size_t)t->nweights + 1, sizeof *t->weights);
    if (!t->nodes || !t->roots || !t->weights)
        return fac_fail_graph(g, FAC_E_NOMEM, "no memory for trees"), false;
    const name *names = sorted_names(g, &l.tree, &l.id);
    bool ok = names && are_unique(g, names, l.tree.n);
    for (int k = 0; k < l.tree.n && ok; k++) ok = fill_node(g, &l, names, k, t);
    ok = ok && fill_votes(g, &l, names, t);
    if (ok) find_roots(names, t);
    return ok;
}

fac_value *fac_trees_add_base(const fac_onnx_node *n, fac_value *y, fac_ml_reals base) {
    fac_graph *g = fac_value_graph(y);
    if (base.n <= 0) return y;
    if (y->type.dims.n == 2 && y->type.dims.d[1] != base.n && base.n != 1)
        return fac_fail_graph(g, FAC_E_FORMAT, "%s has %d base_values for %lld scores", n->type,
                              base.n, (long long)y->type.dims.d[1]);
    return fac_add(y, fac_ml_numbers(g, y->type.dtype, fac_shape(base.n), base.v));
}
