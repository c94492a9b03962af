/* The first value that differs.
 *
 * Values that both models name are probed (see probe.c) in one run of each model, whatever they
 * need in memory; the first pair whose numbers differ becomes an output of both and is compared
 * element by element.  Where no names are shared, the pairs of equal values say up to where the
 * models agree. */
#include <stdio.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/verify/verify.h"

static const double NEAR = 1e-3;
enum { TRIES = 8 }; /* pairs whose numbers differ, but whose elements do not */

static bool named_alike(const fac_trial *t, fac_value *b, fac_pair *to) {
    fac_value *a =
        b->name && b->time == FAC_RUN ? fac_table_get(&t->a.graph->names, b->name) : NULL;
    if (!a || !a->node || a->time != FAC_RUN || a->type.dtype != b->type.dtype || !fac_is_float(a))
        return false;
    if (!fac_dims_equal(&a->type.dims, &b->type.dims) || fac_dims_count(&a->type.dims) < 1)
        return false;
    *to = (fac_pair){ a, b };
    return true;
}

/* In the order of b. */
static fac_status named_pairs(const fac_trial *t, fac_pair **out, size_t *n) {
    size_t room = 0;
    for (const fac_node *m = t->b.graph->first; m; m = m->next)
        for (int k = 0; k < m->nout; k++) {
            fac_pair p;
            if (!named_alike(t, m->out[k], &p)) continue;
            if (!fac_reserve(out, &room, *n + 1, sizeof **out))
                return fac_raise_memory(t->err, "a search");
            (*out)[(*n)++] = p;
        }
    return FAC_OK;
}

static fac_status probe_side(const fac_trial *t, const fac_graph *g, const fac_pair *p, size_t n,
                             bool second, double **out) {
    int64_t count = 0;
    fac_tensor *probed[1] = { NULL };
    fac_value **v = fac_alloc(n + 1, sizeof *v);
    for (size_t k = 0; v && k < n; k++) v[k] = second ? p[k].b : p[k].a;
    fac_graph *g2 = v ? fac_probe(g, v, n, &count) : NULL;
    fac_release(v);
    *out = fac_alloc((size_t)count + 1, sizeof **out);
    fac_status status =
        g2 && *out ? fac_graph_check(g2, t->err) : fac_raise_memory(t->err, "a search");
    if (!status) status = fac_trial_once(t, g2, probed);
    if (!status) fac_tensor_doubles(probed[0], 0, count, *out);
    fac_drop_tensors(probed, 1);
    fac_graph_free(g2);
    return status;
}

static fac_status one_value(const fac_trial *t, const fac_graph *g, const fac_value *v,
                            fac_tensor **out) {
    fac_value **map = NULL;
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .keep_dead = true }, &map);
    if (!to) return fac_raise_memory(t->err, "a search");
    fac_forget_outputs(to);
    fac_output(to, "value", map[v->id]);
    fac_graph_sweep(to);
    fac_status status = fac_graph_check(to, t->err);
    if (!status) status = fac_trial_once(t, to, out);
    fac_graph_free(to);
    return status;
}

static fac_status differ(const fac_trial *t, const fac_pair *p, bool *yes) {
    fac_tensor *out[2] = { NULL };
    fac_difference d = { 0 };
    const double room = NEAR;
    fac_status status = one_value(t, t->a.graph, p->a, &out[0]);
    if (!status) status = one_value(t, t->b.graph, p->b, &out[1]);
    if (!status) status = fac_compare(out[0], out[1], NULL, NULL, room, room, &d, t->err);
    fac_drop_tensors(out, 2);
    *yes = !status && d.count > 0;
    if (*yes) snprintf(t->v->first, sizeof t->v->first, "%s", p->b->name);
    if (*yes) {
        t->v->first_differing = (double)d.count;
        t->v->first_elements = d.elements;
    }
    return status;
}

/* What the numbers of a value say: equal, or not.  Zeros everywhere are equal too. */
static bool alike(const double *a, const double *b, int rank, double room) {
    return (a[0] == 0 && b[0] == 0) || fac_probe_equal(a, b, rank, room);
}

static fac_status first_named(fac_trial *t, const fac_pair *p, size_t n, bool *found) {
    double *x[2] = { NULL };
    const double room = NEAR;
    fac_status status = probe_side(t, t->a.graph, p, n, false, &x[0]);
    if (!status) status = probe_side(t, t->b.graph, p, n, true, &x[1]);
    int64_t at = 0;
    for (size_t k = 0, tries = 0; k < n && !status && !*found && tries < TRIES; k++) {
        if (!alike(x[0] + at, x[1] + at, p[k].a->type.dims.n, room))
            tries++, status = differ(t, &p[k], found);
        at += fac_probe_size(p[k].a);
    }
    fac_release(x[0]);
    fac_release(x[1]);
    return status;
}

static fac_status last_equal(fac_trial *t) {
    fac_pair *p = NULL;
    size_t n = 0;
    fac_status status = fac_find_pairs(t, t->a.graph, t->b.graph, NEAR, &p, &n);
    if (!status && n) {
        const fac_value *v = p[n - 1].a;
        char label[200];
        snprintf(t->v->last, sizeof t->v->last, "%s",
                 v->name ? v->name : fac_node_label(v->node, label, sizeof label));
    }
    fac_release(p);
    return status;
}

fac_status fac_find_first(fac_trial *t) {
    fac_pair *p = NULL;
    size_t n = 0;
    bool found = false;
    if (t->o->brief) return FAC_OK;
    fac_status status = named_pairs(t, &p, &n);
    if (!status && n) status = first_named(t, p, n, &found);
    if (!status && !found) status = last_equal(t);
    fac_release(p);
    return status;
}
