/* From trees as files have them to the tables of tree_ensemble: every comparison becomes x <= split
 * or x == split, and the two children of a node lie side by side. */
#include <math.h>
#include "base/memory.h"
#include "op_list.h"
#include "ops/ml/ml.h"
#include "ops/ml/tree.h"

typedef struct tables {
    const fac_trees *t;
    bool narrow; /* f32 */
    int32_t *features, *next, *roots, *targets;
    void *splits, *weights;
    int64_t *pair;           /* of each node: the row of its first child, or -1 */
    int64_t *waiting, *rows; /* nodes whose row is still to be filled, and the row */
    int64_t nwaiting, used;
} tables;

static void put_real(const tables *b, void *to, int64_t at, double x) {
    if (b->narrow)
        ((float *)to)[at] = (float)x;
    else
        ((double *)to)[at] = x;
}

/* The largest number below. */
static double below(const tables *b, double x) {
    return b->narrow ? (double)nextafterf((float)x, -INFINITY) : nextafter(x, -INFINITY);
}

/* x < s is x <= the number below s; x >= s and x > s are their opposites, with the children
 * swapped. */
static int32_t put_comparison(const tables *b, const fac_tree_node *n, int64_t row, bool *swapped) {
    const bool strict = n->mode == FAC_TREE_LT || n->mode == FAC_TREE_GTE;
    const bool equal = n->mode == FAC_TREE_EQ || n->mode == FAC_TREE_NEQ;
    *swapped = n->mode == FAC_TREE_GTE || n->mode == FAC_TREE_GT || n->mode == FAC_TREE_NEQ;
    put_real(b, b->splits, row, strict ? below(b, n->split) : n->split);
    /* NaN answers no to each comparison but !=, where files do not say otherwise */
    const bool yes = n->missing || n->mode == FAC_TREE_NEQ;
    return (int32_t)n->feature | (yes != *swapped ? FAC_TREE_NAN : 0) |
           (equal ? FAC_TREE_EQUAL : 0);
}

static void wait_for(tables *b, int64_t node, int64_t row) {
    b->waiting[b->nwaiting] = node;
    b->rows[b->nwaiting++] = row;
}

static void fill(tables *b, int64_t node, int64_t row) {
    const fac_tree_node *n = &b->t->nodes[node];
    bool swapped = false;
    if (n->mode == FAC_TREE_LEAF) {
        b->features[row] = (int32_t)(-1 - n->count);
        b->next[row] = (int32_t)n->first;
        return;
    }
    b->features[row] = put_comparison(b, n, row, &swapped);
    if (b->pair[node] < 0) {
        b->pair[node] = b->used;
        wait_for(b, swapped ? n->no : n->yes, b->used);
        wait_for(b, swapped ? n->yes : n->no, b->used + 1);
        b->used += 2;
    }
    b->next[row] = (int32_t)b->pair[node];
}

static void fill_all(tables *b) {
    for (int64_t k = 0; k < b->t->nroots; k++) {
        b->roots[k] = (int32_t)b->used;
        wait_for(b, b->t->roots[k], b->used++);
        while (b->nwaiting) {
            b->nwaiting--;
            fill(b, b->waiting[b->nwaiting], b->rows[b->nwaiting]);
        }
    }
    for (int64_t k = 0; k < b->t->nweights; k++) {
        b->targets[k] = (int32_t)b->t->weights[k].target;
        put_real(b, b->weights, k, b->t->weights[k].weight);
    }
}

/* What would not fit the tables, or leads out of them. */
static const char *fault_of(const fac_trees *t, int64_t features) {
    enum { MOST = 1 << 28 };
    if (t->n > MOST || t->nweights > MOST) return "it has too many nodes";
    for (int64_t k = 0; k < t->n; k++) {
        const fac_tree_node *n = &t->nodes[k];
        if (n->mode == FAC_TREE_LEAF) continue;
        if (n->feature < 0 || n->feature >= FAC_TREE_FEATURE ||
            (features >= 0 && n->feature >= features))
            return "a node compares a feature that x does not have";
        if (n->yes < 0 || n->yes >= t->n || n->no < 0 || n->no >= t->n)
            return "a node has a child that is not there";
    }
    for (int64_t k = 0; k < t->nweights; k++)
        if (t->weights[k].target < 0 || t->weights[k].target >= t->targets)
            return "a leaf has a target that is not there";
    return NULL;
}

/* Each node is the child of one at most, and roots of none: then following children ends. */
static const char *shape_fault(const fac_trees *t) {
    for (int64_t k = 0; k < t->nroots; k++) {
        if (t->roots[k] < 0 || t->roots[k] >= t->n) return "a root is not there";
        if (t->nodes[t->roots[k]].parents) return "a root is the child of a node";
    }
    for (int64_t k = 0; k < t->n; k++)
        if (t->nodes[k].mode != FAC_TREE_LEAF && t->nodes[k].parents > 1)
            return "a node is the child of two";
    return NULL;
}

static bool reserve(tables *b, int64_t rows) {
    const size_t n = (size_t)rows + 1, w = (size_t)b->t->nweights + 1, real = b->narrow ? 4 : 8;
    b->features = fac_alloc(n, sizeof *b->features);
    b->next = fac_alloc(n, sizeof *b->next);
    b->splits = fac_alloc(n, real);
    b->roots = fac_alloc((size_t)b->t->nroots + 1, sizeof *b->roots);
    b->targets = fac_alloc(w, sizeof *b->targets);
    b->weights = fac_alloc(w, real);
    b->pair = fac_alloc((size_t)b->t->n + 1, sizeof *b->pair);
    b->waiting = fac_alloc(n, sizeof *b->waiting);
    b->rows = fac_alloc(n, sizeof *b->rows);
    for (int64_t k = 0; b->pair && k < b->t->n; k++) b->pair[k] = -1;
    return b->features && b->next && b->splits && b->roots && b->targets && b->weights && b->pair &&
           b->waiting && b->rows;
}

static void release(tables *b) {
    void *const all[] = { b->features, b->next, b->splits,  b->roots, b->targets,
                          b->weights,  b->pair, b->waiting, b->rows };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) fac_release(all[k]);
}

static fac_value *emit(fac_value *x, const tables *b) {
    fac_graph *g = fac_value_graph(x);
    const fac_trees *t = b->t;
    const fac_dtype real = b->narrow ? FAC_F32 : FAC_F64;
    const fac_tree_attrs attrs = { t->targets, (int)t->aggregate };
    fac_value *const in[] = { x,
                              fac_ml_const(g, FAC_I32, b->used, b->features),
                              fac_ml_const(g, real, b->used, b->splits),
                              fac_ml_const(g, FAC_I32, b->used, b->next),
                              fac_ml_const(g, FAC_I32, t->nroots, b->roots),
                              fac_ml_const(g, FAC_I32, t->nweights, b->targets),
                              fac_ml_const(g, real, t->nweights, b->weights) };
    return fac_emit(&fac_op_tree_ensemble, &attrs, 7, in);
}

fac_value *fac_trees_apply(fac_value *x, const fac_trees *t) {
    fac_graph *g = fac_value_graph(x);
    tables b = { .t = t, .narrow = x->type.dtype == FAC_F32 };
    const char *fault = fault_of(t, x->type.dims.n == 2 ? x->type.dims.d[1] : -1);
    int64_t rows = t->nroots;
    if (!fault) fault = shape_fault(t);
    if (fault) return fac_fail_graph(g, FAC_E_FORMAT, "no trees: %s", fault);
    for (int64_t k = 0; k < t->n; k++) rows += t->nodes[k].mode == FAC_TREE_LEAF ? 0 : 2;
    const bool room = reserve(&b, rows);
    if (room) fill_all(&b);
    fac_value *y = room ? emit(x, &b) : fac_fail_graph(g, FAC_E_NOMEM, "no memory for trees");
    release(&b);
    return y;
}
