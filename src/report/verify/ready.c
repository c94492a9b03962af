/* A model made ready for a comparison: as inference runs it, its sizes bound, functions and
 * attention in what they are made of, attributes as files hold them. */
#include <float.h>
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "passes/passes.h"
#include "plan/plan.h"
#include "report/verify/verify.h"

/* ---- attributes ---- Files keep real ones as f32, so one of f64 and its copy of a file mean the
 * same.  What f32 cannot hold stays. */

static double single(double x) {
    return fabs(x) >= (double)FLT_MIN && fabs(x) <= (double)FLT_MAX ? (double)(float)x : x;
}

static void round_attr(const fac_attr *a, char *attrs) {
    void *at = attrs + a->at;
    double *one = at;
    fac_reals *list = at;
    const int n = a->count ? a->count : 1;
    for (int k = 0; a->kind == FAC_A_REAL && k < n; k++) one[k] = single(one[k]);
    if (a->kind != FAC_A_REALS) return;
    for (int k = 0; k < list->n; k++) list->v[k] = single(list->v[k]);
}

static bool has_reals(const fac_node *n) {
    const fac_attr *a = n->op->attrs;
    while (a && a->name && a->kind != FAC_A_REAL && a->kind != FAC_A_REALS) a++;
    return a && a->name;
}

static bool round_attrs(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                        fac_value *out[]) {
    fac_node other = *n;
    (void)self;
    if (!has_reals(n)) return false;
    char *attrs = fac_arena_alloc(&to->arena, 1, n->op->attrs_size);
    if (!attrs) return fac_graph_raise(to, FAC_E_NOMEM, "no memory for a node"), true;
    memcpy(attrs, n->attrs, n->op->attrs_size);
    for (const fac_attr *a = n->op->attrs; a->name; a++) round_attr(a, attrs);
    other.attrs = attrs;
    fac_node_copy(to, &other, in, out);
    return true;
}

static fac_graph *rounded(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .visit = round_attrs, .blind = true }, NULL);
}

/* ---- all of it ---- */

/* Takes g and frees it; *out is good. */
static fac_status step(fac_graph *g, fac_graph *made, fac_graph **out, fac_error *err) {
    fac_graph_free(g);
    *out = made;
    if (!made) return fac_raise_memory(err, "a model");
    return fac_graph_check(made, err);
}

/* Open sizes are those of the inputs that are given, else the batch. */
static fac_graph *bound(const fac_trial *t, fac_graph *g) {
    if (!t->o->n || (size_t)t->o->n != g->ninputs) return fac_pass_sizes(g, t->o->batch);
    bool *steers = fac_alloc(g->ninputs + 1, sizeof *steers);
    fac_graph *to = steers ? fac_specialize(g, steers, t->o->inputs, t->err) : NULL;
    fac_release(steers);
    return to;
}

fac_status fac_trial_ready(const fac_trial *t, const fac_graph *g, fac_graph **out) {
    fac_graph *to = NULL;
    fac_status status = step(NULL, fac_graph_inference(g), &to, t->err);
    if (!status) status = step(to, bound(t, to), &to, t->err);
    if (!status) status = step(to, fac_pass_open(to, true), &to, t->err);
    if (!status) status = step(to, rounded(to), &to, t->err);
    if (status)
        fac_graph_free(to);
    else
        *out = to;
    return status;
}
