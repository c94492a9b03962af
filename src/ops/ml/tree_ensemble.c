/* Ensembles of decision trees: each row of x goes down every tree, and the weights of the leaves
 * that it comes to are added by target.  Made by fac_trees_apply (tree.h), which says what the
 * tables hold; has no prototype. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/onnx_write.h"
#include "ops/cost.h"
#include "ops/ml/ml.h"
#include "ops/ml/tree.h"

typedef fac_tree_attrs attrs;
static const char *const aggregates[] = { "SUM", "AVERAGE", "MIN", "MAX", NULL };
static const fac_attr table[] = { { "targets", FAC_A_INT, offsetof(attrs, targets), 0, 1, 1,
                                    1 << 24, NULL, "columns of the result" },
                                  { "aggregate", FAC_A_ENUM, offsetof(attrs, aggregate), 0, 0, 0, 0,
                                    aggregates, "what becomes of the weights" },
                                  { 0 } };
enum { X, FEATURES, SPLITS, NEXT, ROOTS, TARGETS, WEIGHTS };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },       { "features", FAC_INTS, 0 },
                               { "splits", FAC_FLOATS, 0 },  { "next", FAC_INTS, 0 },
                               { "roots", FAC_INTS, 0 },     { "targets", FAC_INTS, 0 },
                               { "weights", FAC_FLOATS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[X]->type.dims;
    if (x->n != 2) return fac_fail(n, FAC_E_SHAPE, "x must be rows of features");
    for (int k = FEATURES; k <= WEIGHTS; k++)
        if (n->in[k]->type.dims.n != 1)
            return fac_fail(n, FAC_E_SHAPE, "%s must be a list", in[k].name);
    const int64_t nodes = n->in[FEATURES]->type.dims.d[0];
    if (nodes != n->in[SPLITS]->type.dims.d[0] || nodes != n->in[NEXT]->type.dims.d[0])
        return fac_fail(n, FAC_E_SHAPE, "features, splits and next must be of one length");
    if (n->in[TARGETS]->type.dims.d[0] != n->in[WEIGHTS]->type.dims.d[0])
        return fac_fail(n, FAC_E_SHAPE, "targets and weights must be of one length");
    n->out[0]->type =
        (fac_type){ n->in[X]->type.dtype, fac_shape(x->d[0], ((const attrs *)n->attrs)->targets) };
    return true;
}

/* ---- the reference ---- */

static bool says_yes(int64_t code, double x, double split) {
    if (code & FAC_TREE_NAN && isnan(x)) return true;
    return code & FAC_TREE_EQUAL ? x == split : x <= split;
}

/* The leaf that a row comes to; -1: the tables are no tree. */
static int64_t leaf_of(const fac_ref *r, const double *row, int64_t features, int64_t at) {
    const fac_dims *d = &r->in[FEATURES].type.dims;
    for (int64_t steps = 0; steps <= d->d[0]; steps++) {
        if (at < 0 || at >= d->d[0]) return -1;
        const int64_t code = r->in[FEATURES].i[at], feature = code & FAC_TREE_FEATURE;
        if (code < 0) return at;
        if (feature >= features) return -1;
        at = r->in[NEXT].i[at] + !says_yes(code, row[feature], r->in[SPLITS].f[at]);
    }
    return -1;
}

static bool add_leaf(const fac_ref *r, int64_t leaf, double *y, bool *have) {
    const attrs *a = r->attrs;
    const int64_t first = r->in[NEXT].i[leaf], count = -1 - r->in[FEATURES].i[leaf];
    const int64_t all = r->in[WEIGHTS].type.dims.d[0];
    if (first < 0 || count > all || first > all - count) return false;
    for (int64_t k = first; k < first + count; k++) {
        const int64_t target = r->in[TARGETS].i[k];
        if (target < 0 || target >= a->targets) return false;
        const double w = r->in[WEIGHTS].f[k];
        y[target] = have[target] ? fac_tree_joined(a->aggregate, y[target], w) : w;
        have[target] = true;
    }
    return true;
}

static bool run_row(const fac_ref *r, const double *row, double *y, bool *have) {
    const attrs *a = r->attrs;
    const int64_t trees = r->in[ROOTS].type.dims.d[0];
    for (int64_t k = 0; k < a->targets; k++) {
        y[k] = 0;
        have[k] = false;
    }
    for (int64_t t = 0; t < trees; t++) {
        const int64_t leaf = leaf_of(r, row, r->in[X].type.dims.d[1], r->in[ROOTS].i[t]);
        if (leaf < 0 || !add_leaf(r, leaf, y, have)) return false;
    }
    for (int64_t k = 0; k < a->targets && a->aggregate == FAC_TREE_AVERAGE && trees; k++)
        y[k] /= (double)trees;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const attrs *a = r->attrs;
    const fac_dims *d = &r->in[X].type.dims;
    bool *have = fac_alloc((size_t)a->targets, sizeof *have), ok = true;
    if (!have) return fac_raise_memory(err, "%lld targets", (long long)a->targets);
    for (int64_t i = 0; i < d->d[0] && ok; i++)
        ok = run_row(r, r->in[X].f + i * d->d[1], r->out[0].f + i * a->targets, have);
    fac_release(have);
    return ok ? FAC_OK
              : fac_raise(err, FAC_E_ARGUMENT,
                          "tree_ensemble: its tables are no trees of these features");
}

/* A path is about as long as the logarithm of the nodes of a tree. */
static void cost(const fac_node *n, fac_cost *c) {
    const double rows = (double)n->in[X]->type.dims.d[0],
                 trees = (double)n->in[ROOTS]->type.dims.d[0];
    const double nodes = (double)n->in[FEATURES]->type.dims.d[0];
    fac_cost_bytes(n, c);
    c->other = rows * trees * (trees > 0 ? log2(nodes / trees + 1) : 0);
}

/* ---- ONNX ---- */

static fac_tensor *wide(const fac_value *v, fac_dtype as) {
    fac_tensor *t = NULL;
    return v->tensor && !fac_tensor_convert(v->tensor, as, &t, NULL) ? t : NULL;
}

/* The tables as they lie, and what is said of each node. */
typedef struct tables {
    fac_tensor *t[5];
    const int64_t *features, *next, *roots, *targets;
    const double *splits;
    int64_t n, nroots, nweights;
} tables;

static bool open_tables(tables *t, const fac_node *n) {
    static const int ports[] = { FEATURES, NEXT, ROOTS, TARGETS, SPLITS };
    bool ok = true;
    for (int k = 0; k < 5; k++)
        ok &= (t->t[k] = wide(n->in[ports[k]], k < 4 ? FAC_I64 : FAC_F64)) != NULL;
    if (!ok) return false;
    t->features = fac_tensor_data(t->t[0]);
    t->next = fac_tensor_data(t->t[1]);
    t->roots = fac_tensor_data(t->t[2]);
    t->targets = fac_tensor_data(t->t[3]);
    t->splits = fac_tensor_data(t->t[4]);
    t->n = n->in[FEATURES]->type.dims.d[0];
    t->nroots = n->in[ROOTS]->type.dims.d[0];
    t->nweights = n->in[TARGETS]->type.dims.d[0];
    return true;
}

/* Nodes in ONNX's lists: each tree's from its root on, numbered as they are met. */
typedef struct lists {
    int64_t n, room, *tree, *id, *feature, *yes, *no, *missing, *from;
    const char **mode;
    int64_t nvotes, room_votes, *vote_tree, *vote_id, *vote_target, *vote;
    bool failed;
} lists;

static bool more_nodes(lists *l, int64_t n) {
    int64_t **const all[] = {
        &l->tree, &l->id, &l->feature, &l->yes, &l->no, &l->missing, &l->from
    };
    size_t room = (size_t)l->room;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        room = (size_t)l->room;
        if (!fac_reserve(all[k], &room, (size_t)n, sizeof **all[k])) return false;
    }
    size_t modes = (size_t)l->room;
    if (!fac_reserve(&l->mode, &modes, (size_t)n, sizeof *l->mode)) return false;
    l->room = (int64_t)room;
    return true;
}

static bool more_votes(lists *l, int64_t n) {
    int64_t **const all[] = { &l->vote_tree, &l->vote_id, &l->vote_target, &l->vote };
    size_t room = (size_t)l->room_votes;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        room = (size_t)l->room_votes;
        if (!fac_reserve(all[k], &room, (size_t)n, sizeof **all[k])) return false;
    }
    l->room_votes = (int64_t)room;
    return true;
}

static bool add_votes(lists *l, const tables *t, int64_t at, int64_t row) {
    const int64_t first = t->next[row], count = -1 - t->features[row];
    if (first < 0 || count > t->nweights || first > t->nweights - count) return false;
    if (!more_votes(l, l->nvotes + count + 1)) return false;
    for (int64_t k = first; k < first + count; k++) {
        l->vote_tree[l->nvotes] = l->tree[at];
        l->vote_id[l->nvotes] = l->id[at];
        l->vote_target[l->nvotes] = t->targets[k];
        l->vote[l->nvotes++] = k;
    }
    return true;
}

/* Appends a row of the tables as a node of a tree; -1 without room.  Nodes that are shared are
 * written once for each parent, so a circle of nodes would never end. */
static int64_t add_row(lists *l, const tables *t, int64_t tree, int64_t start, int64_t row) {
    const int64_t most = 16 * t->n + 4096;
    if (row < 0 || row >= t->n || l->n >= most || !more_nodes(l, l->n + 1)) return -1;
    const int64_t code = t->features[row], at = l->n++;
    const bool leaf = code < 0;
    l->tree[at] = tree;
    l->id[at] = at - start;
    l->feature[at] = leaf ? 0 : code & FAC_TREE_FEATURE;
    l->missing[at] = !leaf && code & FAC_TREE_NAN;
    l->mode[at] = code & FAC_TREE_EQUAL ? "BRANCH_EQ" : "BRANCH_LEQ";
    if (leaf) l->mode[at] = "LEAF";
    l->yes[at] = l->no[at] = 0;
    l->from[at] = row;
    return !leaf || add_votes(l, t, at, row) ? at : -1;
}

static bool add_tree(lists *l, const tables *t, int64_t tree) {
    const int64_t start = l->n;
    if (add_row(l, t, tree, start, t->roots[tree]) < 0) return false;
    for (int64_t at = start; at < l->n; at++) {
        const int64_t row = l->from[at];
        if (t->features[row] < 0) continue;
        const int64_t yes = add_row(l, t, tree, start, t->next[row]);
        const int64_t no = yes < 0 ? -1 : add_row(l, t, tree, start, t->next[row] + 1);
        if (no < 0) return false;
        l->yes[at] = yes - start;
        l->no[at] = no - start;
    }
    return true;
}

static void free_lists(lists *l) {
    int64_t *const all[] = { l->tree, l->id,        l->feature, l->yes,         l->no,  l->missing,
                             l->from, l->vote_tree, l->vote_id, l->vote_target, l->vote };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) fac_release(all[k]);
    fac_release(l->mode);
}

/* Numbers at these places of a list of floats, in its own type: f32 as floats, f64 as a tensor. */
static void put_numbers(const fac_onnx_writer *w, const char *attr, const char *tensor,
                        const fac_value *v, const int64_t *at, int64_t n) {
    fac_tensor *all = wide(v, FAC_F64), *t = NULL;
    double *picked = fac_alloc((size_t)n + 1, sizeof *picked);
    const double *from = all ? fac_tensor_data(all) : NULL;
    for (int64_t k = 0; k < n && from && picked; k++) picked[k] = from[at[k]];
    if (v->type.dtype == FAC_F64) {
        if (from && picked && !fac_tensor_new(NULL, FAC_F64, fac_shape(n), &t, NULL))
            if (fac_tensor_write(t, picked, (size_t)n * sizeof *picked, NULL)) fac_tensor_free(t);
        fac_onnx_put_tensor(w, tensor, t);
    } else if (picked)
        fac_onnx_put_reals(w, attr, (int)n, picked);
    fac_release(picked);
    fac_tensor_free(all);
}

static void put_lists(const fac_onnx_writer *w, const fac_node *n, const lists *l) {
    const attrs *a = n->attrs;
    const char *x = fac_onnx_name(w, n->in[X]);
    const bool is_double = n->in[X]->type.dtype == FAC_F64; /* ONNX's result is f32 whatever x is */
    const char *y = fac_onnx_put(w, "ai.onnx.ml:TreeEnsembleRegressor", 1, &x,
                                 is_double ? NULL : fac_onnx_name(w, n->out[0]));
    const int nodes = (int)l->n, votes = (int)l->nvotes;
    fac_onnx_put_int(w, "n_targets", a->targets);
    fac_onnx_put_text(w, "aggregate_function", aggregates[a->aggregate]);
    fac_onnx_put_ints(w, "nodes_treeids", nodes, l->tree);
    fac_onnx_put_ints(w, "nodes_nodeids", nodes, l->id);
    fac_onnx_put_ints(w, "nodes_featureids", nodes, l->feature);
    fac_onnx_put_ints(w, "nodes_truenodeids", nodes, l->yes);
    fac_onnx_put_ints(w, "nodes_falsenodeids", nodes, l->no);
    fac_onnx_put_ints(w, "nodes_missing_value_tracks_true", nodes, l->missing);
    fac_onnx_put_texts(w, "nodes_modes", nodes, l->mode);
    put_numbers(w, "nodes_values", "nodes_values_as_tensor", n->in[SPLITS], l->from, l->n);
    fac_onnx_put_ints(w, "target_treeids", votes, l->vote_tree);
    fac_onnx_put_ints(w, "target_nodeids", votes, l->vote_id);
    fac_onnx_put_ints(w, "target_ids", votes, l->vote_target);
    put_numbers(w, "target_weights", "target_weights_as_tensor", n->in[WEIGHTS], l->vote,
                l->nvotes);
    if (!is_double) return;
    fac_onnx_put(w, "Cast", 1, &y, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_dtype(w, "to", FAC_F64);
}

static bool is_saved(const fac_node *n) {
    const fac_dtype x = n->in[X]->type.dtype;
    for (int k = FEATURES; k <= WEIGHTS; k++)
        if (!n->in[k]->tensor) return false;
    return (x == FAC_F32 || x == FAC_F64) && n->in[SPLITS]->type.dtype == x &&
           n->in[WEIGHTS]->type.dtype == x;
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    tables t = { 0 };
    lists l = { 0 };
    bool ok = is_saved(n) && open_tables(&t, n);
    for (int64_t k = 0; k < t.nroots && ok; k++) ok = add_tree(&l, &t, k);
    if (ok) put_lists(w, n, &l);
    free_lists(&l);
    for (int k = 0; k < 5; k++) fac_tensor_free(t.t[k]);
    return ok;
}

#define STUMPS                                                                                     \
    "i32{0,-2,-2,536870913,-2,-3}, f32{0.5,0,0,1,0,0}, i32{1,0,1,4,2,3}, i32{0,3}, "               \
    "i32{0,1,2,0,1}, f32{1,2,-3,4,5}"
static const fac_case cases[] = {
    { "tree_ensemble(f32[5,2], " STUMPS ") targets=3", -1, 2, 1e-6 },
    { "tree_ensemble(f32[3,2], " STUMPS ") targets=3 aggregate=MIN", -1, 2, 1e-6 },
    { "tree_ensemble(f32[3,2], " STUMPS ") targets=3 aggregate=MAX", -1, 2, 1e-6 },
    { "tree_ensemble(f32[1,2], " STUMPS ") targets=3 aggregate=AVERAGE", -1, 2, 1e-6 },
    { "tree_ensemble(f32[0,2], " STUMPS ") targets=3", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_tree_ensemble;
const fac_op fac_op_tree_ensemble = {
    .name = "tree_ensemble",
    .doc = "decision trees, whose leaves' weights are added",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .cost = cost,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
