/* Rules applied to a graph, in place on a copy.
 *
 * Nodes are looked at in order, and each rule only where its last op stands, so a walk costs the
 * nodes times what the patterns are long.  A replacement is built at the end of the list and put
 * before its first reader (fac_replace), where the walk comes by later.  Walks are repeated until
 * one changes nothing.  Who is still alive is counted as it changes: fac_value.mark is the number
 * of live readers and outputs, fac_node.mark is set for the dead, so that nothing has to be swept
 * before the end. */
#include <string.h>
#include "base/error.h"
#include "base/clamp.h"
#include "base/memory.h"
#include "edit/rules.h"
#include "graph/build.h"

typedef struct rewrite {
    fac_graph *g;
    const fac_rules *rules;
    fac_rule_report *report;
    int left;         /* matches that may still be */
    fac_node **stack; /* of the dying */
    size_t room;
    fac_error *err;
} rewrite;

/* ---- alive or not ---- */

static void add_uses(fac_value *v, uintptr_t n) { v->mark = (void *)(fac_rule_uses(v) + n); }

static void count_inputs(const fac_node *n) {
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]) add_uses(n->in[i], 1);
}

static void count_all(fac_graph *g) {
    for (fac_node *n = g->first; n; n = n->next) {
        n->mark = NULL;
        for (int k = 0; k < n->nout; k++) n->out[k]->mark = NULL;
    }
    for (size_t k = 0; k < g->ninputs; k++) g->inputs[k]->mark = NULL;
    for (size_t k = 0; k < g->nparams; k++) g->params[k]->mark = NULL;
    for (size_t k = 0; k < g->nconsts; k++) g->consts[k]->mark = NULL;
    for (const fac_node *n = g->first; n; n = n->next) count_inputs(n);
    for (size_t k = 0; k < g->noutputs; k++) add_uses(g->outputs[k].value, 1);
    for (size_t k = 0; k < g->nparams; k++)
        if (g->params[k]->next) add_uses(g->params[k]->next, 1);
}

static bool needed(const fac_node *n) {
    for (int k = 0; k < n->nout; k++)
        if (fac_rule_uses(n->out[k])) return true;
    return false;
}

/* A node that nothing reads dies, and with it what only it has read. */
static fac_status bury(rewrite *w, fac_node *n) {
    size_t depth = 0;
    if (fac_rule_dead(n) || needed(n)) return FAC_OK;
    for (n->mark = n; n; n = depth ? w->stack[--depth] : NULL)
        for (int i = 0; i < n->nin; i++) {
            fac_value *v = n->in[i];
            if (!v) continue;
            v->mark = (void *)(fac_rule_uses(v) - 1);
            if (!v->node || fac_rule_dead(v->node) || needed(v->node)) continue;
            if (!fac_reserve(&w->stack, &w->room, depth + 1, sizeof *w->stack))
                return fac_raise(w->err, FAC_E_NOMEM, "no memory to drop nodes");
            v->node->mark = v->node;
            w->stack[depth++] = v->node;
        }
    return FAC_OK;
}

/* ---- one match ---- */

static fac_value *named_value(void *self, const char *name) {
    const fac_match *m = self;
    const int slot = fac_rule_value(m->rule, name);
    return slot < 0 ? NULL : m->value[slot];
}

static bool named_attr(void *self, const char *name, const fac_attr **attr, const void **at) {
    const fac_match *m = self;
    const int slot = fac_rule_attr(m->rule, name);
    if (slot < 0 || !m->attr[slot]) return false;
    *attr = m->attr[slot];
    *at = m->at[slot];
    return true;
}

static const fac_node *named_node(void *self, const char *name) {
    const fac_match *m = self;
    const int slot = fac_rule_value(m->rule, name);
    return slot < 0 || m->rule->maker[slot] < 0 ? NULL : m->node[m->rule->maker[slot]];
}

/* What takes the place of value `slot` of the pattern; NULL: it stays. */
static fac_value *place_of(const fac_match *m, const fac_table *defined, int slot) {
    fac_value *v = m->rule->maker[slot] < 0 ? NULL : fac_table_get(defined, m->rule->value[slot]);
    return m->value[slot] && v != m->value[slot] ? v : NULL;
}

static bool types_fit(const rewrite *w, const fac_match *m, const fac_table *defined,
                      fac_error *why) {
    char is[80], was[80];
    for (int slot = 0; slot < m->rule->nvalues; slot++) {
        const fac_value *v = place_of(m, defined, slot), *old = m->value[slot];
        if (!v || fac_edit_same(w->g, &old->type, &v->type)) continue;
        fac_raise(why, FAC_E_SHAPE, "%s is %s and would be %s", m->rule->value[slot],
                  fac_edit_type(w->g, &old->type, was, sizeof was),
                  fac_edit_type(w->g, &v->type, is, sizeof is));
        return false;
    }
    return true;
}

/* Readers of old read v; those that v is made of still read old. */
static void replace(fac_value *old, fac_value *v) {
    const uintptr_t before = fac_rule_uses(old);
    uintptr_t stay = 0;
    fac_replace(old, v);
    for (const fac_use *u = old->uses; u; u = u->next) stay += !fac_rule_dead(u->node);
    old->mark = (void *)stay;
    add_uses(v, before - stay);
}

static fac_status put(rewrite *w, const fac_match *m, const fac_table *defined, uint32_t first) {
    for (int slot = 0; slot < m->rule->nvalues; slot++) {
        fac_value *v = place_of(m, defined, slot), *old = m->value[slot];
        if (!v) continue;
        fac_node *maker = old->node;
        if (v->node && v->node->id >= first && !v->node->name) v->node->name = maker->name;
        replace(old, v);
        fac_edit_rename(old, v);
        FAC_TRY(fac_graph_check(w->g, w->err));
        FAC_TRY(bury(w, maker));
    }
    return FAC_OK;
}

/* Nodes that were built and have no place are dead at once. */
static fac_status forget(rewrite *w, fac_node *last) {
    for (fac_node *n = w->g->last; n != last; n = n->prev) FAC_TRY(bury(w, n));
    return FAC_OK;
}

static fac_status apply(rewrite *w, const fac_match *m, fac_node *root, fac_rule_report *report) {
    const fac_names names = { (void *)(uintptr_t)m, named_value, named_attr, named_node };
    fac_graph *g = w->g;
    fac_node *last = g->last;
    const uint32_t first = g->ids;
    fac_table defined = { 0 };
    fac_error why = { 0 };
    g->scope = root->scope;
    g->stage = root->stage;
    fac_status status =
        fac_statements_build(&m->rule->with, m->rule->file, g, &names, &defined, &why);
    g->scope = NULL;
    g->stage = 0;
    if (status == FAC_E_NOMEM) {
        fac_table_free(&defined);
        return fac_raise(w->err, status, "%s", why.text);
    }
    for (const fac_node *n = last->next; n; n = n->next) count_inputs(n);
    if (status) g->error = (fac_error){ 0 }; /* of a node that never came into the graph */
    if (status || !types_fit(w, m, &defined, &why)) {
        if (!report->skipped++)
            snprintf(report->why, sizeof report->why, "%.*s", (int)sizeof report->why - 1,
                     why.text);
        status = forget(w, last);
    } else {
        status = put(w, m, &defined, first);
        report->matches++;
        w->left--;
    }
    fac_table_free(&defined);
    return status;
}

/* ---- all ---- */

static fac_status at_node(rewrite *w, fac_node *n, bool *changed) {
    for (size_t k = 0; k < w->rules->n && !fac_rule_dead(n); k++) {
        fac_match m;
        const int before = w->report[k].matches;
        if (!fac_rule_matches(w->rules->at[k], n, &m)) continue;
        if (w->left <= 0)
            return fac_raise(
                w->err, FAC_E_ARGUMENT,
                "rule %s still matches after all these replacements: does it match what it "
                "makes?",
                w->rules->at[k]->name);
        FAC_TRY(apply(w, &m, n, &w->report[k]));
        *changed |= w->report[k].matches > before;
    }
    return FAC_OK;
}

static fac_status walk(rewrite *w) {
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t k = 0; k < w->rules->n; k++)
            w->report[k].skipped = 0; /* of the last walk: those that stay */
        for (fac_node *n = w->g->first; n; n = n->next)
            if (!fac_rule_dead(n) && needed(n)) FAC_TRY(at_node(w, n, &changed));
    }
    return FAC_OK;
}

fac_status fac_graph_rewritten(const fac_graph *g, const fac_rules *r, int limit,
                               fac_rule_report *report, fac_graph **out, fac_error *err) {
    fac_error own = { 0 };
    rewrite w = { .g = fac_graph_clone(g), .rules = r, .err = &own };
    w.left = limit > 0 ? limit : (int)fac_clamp(4 * (int64_t)g->nodes + 1000, 0, INT32_MAX);
    w.report = fac_alloc(r->n + 1, sizeof *w.report);
    fac_status status =
        w.g && w.report ? fac_graph_check(w.g, &own) : fac_raise_memory(&own, "a graph");
    if (!status) count_all(w.g);
    if (!status) status = walk(&w);
    if (!status) fac_graph_sweep(w.g);
    if (!status && report) memcpy(report, w.report, r->n * sizeof *report);
    fac_release(w.report);
    fac_release(w.stack);
    if (!status) return fac_edit_give(w.g, out, err);
    fac_graph_free(w.g);
    if (err) *err = own;
    return status;
}
