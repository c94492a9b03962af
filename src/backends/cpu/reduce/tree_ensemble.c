/* Solver "tree_ensemble": decision trees in f32, FAC_TREE_LANES walks at once: so many rows down
 * one tree, or, of the rows that are left, one row down so many trees.  Several such blocks of rows
 * take a tree in turns, while the caches have it; threads share out blocks, or, of fewer rows than
 * threads, trees.  Weights are added in f64, tree by tree, whichever way. */
#include <math.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "ops/ml/tree.h"
#include "op_list.h"

enum {
    X,
    FEATURES,
    SPLITS,
    NEXT,
    ROOTS,
    TARGETS,
    WEIGHTS,
    INPUTS,
    MOST_TARGETS = 256,
    GROUP = 4,     /* blocks of rows that take a tree in turns */
    SERIAL = 4096, /* rows times trees */
    FEW = 2000     /* nodes on the way of one row: less than that is done before others wake up */
};

typedef struct plan {
    const fac_problem *problem;
    int64_t rows, columns, nodes, trees, weights, targets;
    double depth;  /* of a tree */
    int64_t group; /* blocks of rows of a unit */
    bool by_trees; /* one row after the other, whose trees the threads share */
    fac_tree_aggregate how;
} plan;

/* Where a row ends in a tree: the only vote there, or, with target -1, the leaf. */
typedef struct ending {
    int32_t target, leaf;
    float weight;
} ending;

static void build(const fac_problem *p, plan *t) {
    const fac_tree_attrs *a = p->node->attrs;
    const fac_dims *x = &p->in[X].type.dims;
    *t = (plan){ .rows = x->d[0],
                 .columns = x->d[1],
                 .nodes = p->in[FEATURES].type.dims.d[0],
                 .trees = p->in[ROOTS].type.dims.d[0],
                 .weights = p->in[WEIGHTS].type.dims.d[0],
                 .targets = a->targets,
                 .how = (fac_tree_aggregate)a->aggregate };
}

/* What a unit is. */
static void share(int64_t threads, plan *t) {
    const int64_t blocks = t->rows / FAC_TREE_LANES,
                  most = t->targets ? MOST_TARGETS / t->targets : 1;
    t->depth = t->trees ? log2((double)t->nodes / (double)t->trees + 1) : 0;
    t->group = blocks / (4 * threads);
    if (t->group > GROUP) t->group = GROUP;
    if (t->group > most) t->group = most;
    if (t->group < 1) t->group = 1;
    t->by_trees = t->rows < threads && (double)t->trees * t->depth >= FEW;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan t;
    if (p->node->body[0]) return false;
    for (int k = 0; k < INPUTS; k++) {
        const bool whole = k == FEATURES || k == NEXT || k == ROOTS || k == TARGETS;
        if (p->in[k].type.dtype != (whole ? FAC_I32 : FAC_F32)) return false;
        fac_want_plain(&p->in[k]);
    }
    fac_want_plain(&p->out[0]);
    build(p, &t);
    if (t.targets > MOST_TARGETS || t.nodes >= INT32_MAX || t.columns > INT32_MAX / FAC_TREE_LANES)
        return false;
    share(fac_cpu_of(d)->pool.threads, &t);
    if (t.by_trees) o->work = (size_t)t.trees * sizeof(ending);
    o->seconds = fac_cpu_speeds.step + (double)(t.rows * t.trees) * t.depth *
                                           fac_cpu_speeds.tree_node / fac_cpu_of(d)->pool.threads;
    *FAC_DRAFT(o, plan) = t;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    plan *t = fac_draft_copy(p, sizeof *t, err);
    if (!t) return FAC_E_NOMEM;
    t->problem = p;
    *out = t;
    return FAC_OK;
}

/* ---- weights ---- */

typedef struct job {
    const plan *p;
    fac_tree_kernel *walk;
    const float *x, *splits, *weights;
    const int32_t *features, *next, *roots, *targets;
    float *y;
    ending *ends; /* of row `row`, where trees are shared */
    int64_t row;
    _Atomic bool bad;
} job;

static void begin(const plan *p, double *sums) {
    const bool adds = p->how == FAC_TREE_SUM || p->how == FAC_TREE_AVERAGE;
    for (int64_t k = 0; k < p->targets; k++) sums[k] = adds ? 0 : NAN;
}

static bool add_leaf(const job *j, int32_t leaf, double *sums) {
    const plan *p = j->p;
    const int64_t first = j->next[leaf], count = -1 - (int64_t)j->features[leaf];
    if (first < 0 || count > p->weights || first > p->weights - count) return false;
    for (int64_t k = first; k < first + count; k++) {
        const int32_t target = j->targets[k];
        if (target < 0 || target >= p->targets) return false;
        sums[target] = fac_tree_joined(p->how, sums[target], (double)j->weights[k]);
    }
    return true;
}

static void end(const plan *p, const double *sums, float *y) {
    const double scale = p->how == FAC_TREE_AVERAGE && p->trees ? 1 / (double)p->trees : 1;
    for (int64_t k = 0; k < p->targets; k++) y[k] = isnan(sums[k]) ? 0 : (float)(sums[k] * scale);
}

/* ---- walks ---- */

static fac_tree_walk walk_of(const job *j) {
    return (fac_tree_walk){ .features = j->features,
                            .next = j->next,
                            .splits = j->splits,
                            .nodes = (int32_t)j->p->nodes,
                            .columns = (int32_t)j->p->columns };
}

/* Some blocks of rows. */
static bool run_rows(const job *j, int64_t row, int64_t blocks) {
    double sums[FAC_TREE_LANES * MOST_TARGETS];
    const plan *p = j->p;
    fac_tree_walk w = walk_of(j);
    for (int k = 0; k < FAC_TREE_LANES; k++) w.row[k] = k * (int32_t)p->columns;
    for (int64_t k = 0; k < blocks * FAC_TREE_LANES; k++) begin(p, sums + k * p->targets);
    for (int64_t t = 0; t < p->trees; t++)
        for (int64_t b = 0; b < blocks; b++) {
            double *of = sums + b * FAC_TREE_LANES * p->targets;
            w.x = j->x + (row + b * FAC_TREE_LANES) * p->columns;
            for (int k = 0; k < FAC_TREE_LANES; k++) w.at[k] = j->roots[t];
            if (!j->walk(&w)) return false;
            for (int k = 0; k < FAC_TREE_LANES; k++)
                if (!add_leaf(j, w.at[k], of + k * p->targets)) return false;
        }
    for (int64_t k = 0; k < blocks * FAC_TREE_LANES; k++)
        end(p, sums + k * p->targets, j->y + (row + k) * p->targets);
    return true;
}

/* Where one row ends in n trees from number t on, at most FAC_TREE_LANES of them. */
static bool walk_trees(const job *j, fac_tree_walk *w, int64_t t, int64_t n) {
    for (int k = 0; k < FAC_TREE_LANES; k++) w->at[k] = j->roots[t + (k < n ? k : 0)];
    return j->walk(w);
}

static int64_t lanes_of(const plan *p, int64_t t) {
    return p->trees - t < FAC_TREE_LANES ? p->trees - t : FAC_TREE_LANES;
}

static bool run_row(const job *j, int64_t row) {
    double sums[MOST_TARGETS];
    const plan *p = j->p;
    fac_tree_walk w = walk_of(j);
    w.x = j->x + row * p->columns;
    begin(p, sums);
    for (int64_t t = 0; t < p->trees; t += FAC_TREE_LANES) {
        if (!walk_trees(j, &w, t, lanes_of(p, t))) return false;
        for (int k = 0; k < lanes_of(p, t); k++)
            if (!add_leaf(j, w.at[k], sums)) return false;
    }
    end(p, sums, j->y + row * p->targets);
    return true;
}

/* Units are groups of blocks of rows, then single ones. */
static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    job *j = arg;
    const plan *p = j->p;
    const int64_t blocks = p->rows / FAC_TREE_LANES, groups = (blocks + p->group - 1) / p->group;
    (void)thread;
    for (int64_t u = first; u < last && !j->bad; u++) {
        const int64_t left = blocks - u * p->group;
        const bool ok = u < groups ? run_rows(j, u * p->group * FAC_TREE_LANES,
                                              left < p->group ? left : p->group)
                                   : run_row(j, blocks * FAC_TREE_LANES + u - groups);
        if (!ok) j->bad = true;
    }
}

/* ---- trees are shared ---- */

/* Brings the numbers together that would be far apart for the one who adds them. */
static ending ending_of(const job *j, int32_t leaf) {
    const int64_t first = j->next[leaf];
    const bool single = j->features[leaf] == -2 && first >= 0 && first < j->p->weights;
    const int32_t target = single ? j->targets[first] : -1;
    if (target < 0 || target >= j->p->targets) return (ending){ -1, leaf, 0 };
    return (ending){ target, leaf, j->weights[first] };
}

static bool add_ending(const job *j, const ending *e, double *sums) {
    if (e->target < 0) return add_leaf(j, e->leaf, sums);
    sums[e->target] = fac_tree_joined(j->p->how, sums[e->target], (double)e->weight);
    return true;
}

static void find_leaves(void *arg, int64_t first, int64_t last, int thread) {
    job *j = arg;
    fac_tree_walk w = walk_of(j);
    (void)thread;
    w.x = j->x + j->row * j->p->columns;
    for (int64_t u = first; u < last && !j->bad; u++) {
        const int64_t t = u * FAC_TREE_LANES, n = lanes_of(j->p, t);
        if (!walk_trees(j, &w, t, n)) j->bad = true;
        for (int k = 0; k < n && !j->bad; k++) j->ends[t + k] = ending_of(j, w.at[k]);
    }
}

static void share_trees(const fac_cpu *c, job *j) {
    double sums[MOST_TARGETS];
    const plan *p = j->p;
    const int64_t units = (p->trees + FAC_TREE_LANES - 1) / FAC_TREE_LANES;
    for (j->row = 0; j->row < p->rows; j->row++) {
        fac_parallel_ranges(&c->pool, units, c->pool.threads, find_leaves, j);
        if (j->bad) return;
        begin(p, sums);
        for (int64_t t = 0; t < p->trees && !j->bad; t++)
            if (!add_ending(j, &j->ends[t], sums)) j->bad = true;
        end(p, sums, j->y + j->row * p->targets);
    }
}

static const void *at(const fac_problem *p, const fac_span *in, int k) {
    return (const char *)in[k].memory + in[k].at + (size_t)p->in[k].layout.offset * 4;
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *t = arg;
    const fac_problem *p = t->problem;
    const fac_cpu *c = fac_cpu_of(d);
    job j = { .p = t,
              .walk = c->simd->trees,
              .x = at(p, in, X),
              .features = at(p, in, FEATURES),
              .splits = at(p, in, SPLITS),
              .next = at(p, in, NEXT),
              .roots = at(p, in, ROOTS),
              .targets = at(p, in, TARGETS),
              .weights = at(p, in, WEIGHTS),
              .y = fac_span_floats(out[0], &p->out[0].layout),
              .ends = (ending *)(void *)fac_span_packed(work) };
    const int64_t blocks = t->rows / FAC_TREE_LANES;
    const int64_t units = (blocks + t->group - 1) / t->group + t->rows % FAC_TREE_LANES;
    if (t->by_trees)
        share_trees(c, &j);
    else if (units)
        fac_parallel_ranges(&c->pool, units, t->rows * t->trees < SERIAL ? 1 : 8 * c->pool.threads,
                            run_units, &j);
    if (!j.bad) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT,
                     "tree_ensemble: its tables are no trees of these features");
}

const fac_solver fac_cpu_tree_ensemble = { .name = "tree_ensemble",
                                           .op = &fac_op_tree_ensemble,
                                           .rank = 780,
                                           .offer = offer,
                                           .make = make,
                                           .done = fac_solver_done,
                                           .run = run };
