/* Solver "tree_ensemble": decision trees in f32, FAC_TREE_LANES walks at once: so many rows down
 * one tree, or, of the rows that are left, one row down so many trees.  Weights are added in f64,
 * tree by tree, whichever way. */
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
    SERIAL = 4096
};

typedef struct plan {
    const fac_problem *problem;
    int64_t rows, columns, nodes, trees, weights, targets;
    fac_tree_aggregate how;
} plan;

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
    const double depth = t.trees ? log2((double)t.nodes / (double)t.trees + 1) : 0;
    o->seconds = fac_cpu_speeds.step + (double)(t.rows * t.trees) * depth *
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

static bool run_rows(const job *j, int64_t row) {
    double sums[FAC_TREE_LANES][MOST_TARGETS];
    const plan *p = j->p;
    fac_tree_walk w = walk_of(j);
    w.x = j->x + row * p->columns;
    for (int k = 0; k < FAC_TREE_LANES; k++) {
        w.row[k] = k * (int32_t)p->columns;
        begin(p, sums[k]);
    }
    for (int64_t t = 0; t < p->trees; t++) {
        for (int k = 0; k < FAC_TREE_LANES; k++) w.at[k] = j->roots[t];
        if (!j->walk(&w)) return false;
        for (int k = 0; k < FAC_TREE_LANES; k++)
            if (!add_leaf(j, w.at[k], sums[k])) return false;
    }
    for (int k = 0; k < FAC_TREE_LANES; k++) end(p, sums[k], j->y + (row + k) * p->targets);
    return true;
}

static bool run_row(const job *j, int64_t row) {
    double sums[MOST_TARGETS];
    const plan *p = j->p;
    fac_tree_walk w = walk_of(j);
    w.x = j->x + row * p->columns;
    begin(p, sums);
    for (int64_t t = 0; t < p->trees; t += FAC_TREE_LANES) {
        const int64_t n = p->trees - t < FAC_TREE_LANES ? p->trees - t : FAC_TREE_LANES;
        for (int k = 0; k < FAC_TREE_LANES; k++) w.at[k] = j->roots[t + (k < n ? k : 0)];
        if (!j->walk(&w)) return false;
        for (int k = 0; k < n; k++)
            if (!add_leaf(j, w.at[k], sums)) return false;
    }
    end(p, sums, j->y + row * p->targets);
    return true;
}

/* Units are blocks of rows, then single ones. */
static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    job *j = arg;
    const int64_t blocks = j->p->rows / FAC_TREE_LANES;
    (void)thread;
    for (int64_t u = first; u < last && !j->bad; u++) {
        const bool ok = u < blocks ? run_rows(j, u * FAC_TREE_LANES)
                                   : run_row(j, blocks * FAC_TREE_LANES + u - blocks);
        if (!ok) j->bad = true;
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
              .y = fac_span_floats(out[0], &p->out[0].layout) };
    (void)work;
    const int64_t blocks = t->rows / FAC_TREE_LANES, units = blocks + t->rows % FAC_TREE_LANES;
    if (units)
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
