/* Models joined: one after the other, or in place of a part. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "edit/edit.h"
#include "graph/build.h"

/* ---- grafting ---- */

typedef struct graft {
    fac_graph *to;
    const fac_graph *b;
    fac_value **map;
    int64_t *symbols;
} graft;

/* A symbol of b in the new graph: named ones by name, others fresh. */
static int64_t symbol(graft *g, int64_t d) {
    if (!fac_is_symbol(g->b, d)) return d;
    const size_t k = fac_symbol_index(d);
    if (!g->symbols[k])
        g->symbols[k] = fac_symbol(g->to, *g->b->symbols[k] == '?' ? NULL : g->b->symbols[k]);
    return g->symbols[k];
}

static fac_value *graft_leaf(graft *g, const fac_value *v) {
    fac_graph *to = g->to;
    const char *name = v->name ? fac_graph_fresh(to, v->name) : NULL;
    if (v->name && !name) return fac_graph_raise(to, FAC_E_NOMEM, "no memory for a name");
    if (v->leaf == FAC_CONST && !v->tensor) {
        fac_contents c = *v->known;
        for (int k = 0; k < c.n; k++)
            if (c.symbolic >> k & 1) c.v[k] = symbol(g, c.v[k]);
        return fac_symbols_const(to, &c);
    }
    if (v->leaf == FAC_CONST) {
        fac_value *c = fac_const(to, v->tensor);
        fac_value_name_set(c, name);
        return c;
    }
    if (v->leaf != FAC_INPUT)
        return v->leaf == FAC_PARAM ? fac_param(to, name, v->tensor)
                                    : fac_state(to, name, v->tensor);
    fac_dims d = v->type.dims;
    for (int k = 0; k < d.n; k++) d.d[k] = symbol(g, d.d[k]);
    return fac_input(to, name, v->type.dtype, d);
}

static void graft_node(graft *g, const fac_node *n) {
    fac_value **in = fac_alloc((size_t)(n->nin + n->nout) + 1, sizeof *in), **out = in + n->nin;
    if (!in) {
        fac_graph_raise(g->to, FAC_E_NOMEM, "no memory to copy a node");
        return;
    }
    for (int i = 0; i < n->nin; i++) in[i] = n->in[i] ? g->map[n->in[i]->id] : NULL;
    fac_node_copy(g->to, n, in, out);
    for (int k = 0; k < n->nout; k++) {
        g->map[n->out[k]->id] = out[k];
        fac_value_name_set(out[k], n->out[k]->name);
    }
    fac_release(in);
}

static void graft_all(graft *g, fac_value *const in[], fac_value *out[]) {
    const fac_graph *b = g->b;
    for (size_t i = 0; i < b->ninputs; i++)
        g->map[b->inputs[i]->id] = in[i] ? in[i] : graft_leaf(g, b->inputs[i]);
    for (size_t i = 0; i < b->nparams; i++) g->map[b->params[i]->id] = graft_leaf(g, b->params[i]);
    for (size_t i = 0; i < b->nconsts; i++) g->map[b->consts[i]->id] = graft_leaf(g, b->consts[i]);
    for (const fac_node *n = b->first; n && !g->to->error.status; n = n->next) graft_node(g, n);
    for (size_t k = 0; k < b->noutputs; k++)
        out[k] = g->to->error.status ? g->to->poison : g->map[b->outputs[k].value->id];
}

void fac_edit_graft(fac_graph *to, const fac_graph *b, fac_value *const in[], fac_value *out[]) {
    graft g = { to, b, fac_alloc((size_t)b->ids + 1, sizeof *g.map),
                fac_alloc(b->nsymbols + 1, sizeof *g.symbols) };
    for (size_t k = 0; k < b->noutputs; k++) out[k] = to->poison;
    if (b->error.status)
        fac_graph_raise(to, b->error.status, "%s", b->error.text);
    else if (g.map && g.symbols)
        graft_all(&g, in, out);
    else
        fac_graph_raise(to, FAC_E_NOMEM, "no memory to join graphs");
    fac_release(g.map);
    fac_release(g.symbols);
}

static bool fits(fac_graph *to, const fac_value *v, const fac_value *port, const char *from,
                 const char *at, fac_error *err) {
    char is[128], wants[128];
    if (v->type.dtype == port->type.dtype && v->type.dims.n == port->type.dims.n) {
        bool ok = true;
        for (int k = 0; k < v->type.dims.n; k++)
            ok &= v->type.dims.d[k] < 0 || port->type.dims.d[k] < 0 ||
                  v->type.dims.d[k] == port->type.dims.d[k];
        if (ok) return true;
    }
    fac_raise(err, FAC_E_SHAPE, "\"%s\" is %s, \"%s\" needs %s", from,
              fac_edit_type(to, &v->type, is, sizeof is), at,
              fac_edit_type(port->graph, &port->type, wants, sizeof wants));
    return false;
}

/* ---- one after the other ---- */

static long find_output(const fac_graph *g, const char *name) {
    for (size_t k = 0; k < g->noutputs; k++)
        if (!strcmp(g->outputs[k].name, name)) return (long)k;
    return -1;
}

static long find_input(const fac_graph *g, const char *name) {
    for (size_t k = 0; k < g->ninputs; k++)
        if (!strcmp(g->inputs[k]->name, name)) return (long)k;
    return -1;
}

static fac_status connect(const fac_graph *a, const fac_graph *b, int n, const char *const from[],
                          const char *const to[], long *feeds, fac_error *err) {
    int found = 0;
    for (size_t i = 0; i < b->ninputs; i++)
        found += (feeds[i] = n ? -1 : find_output(a, b->inputs[i]->name)) >= 0;
    for (int k = 0; k < n; k++) {
        const long i = find_input(b, to[k]), o = find_output(a, from[k]);
        if (o < 0)
            return fac_raise(err, FAC_E_ARGUMENT, "the first model has no output \"%s\"", from[k]);
        if (i < 0)
            return fac_raise(err, FAC_E_ARGUMENT, "the second model has no input \"%s\"", to[k]);
        if (feeds[i] >= 0)
            return fac_raise(err, FAC_E_ARGUMENT, "input \"%s\" is connected twice", to[k]);
        feeds[i] = o;
        found++;
    }
    if (!found && a->noutputs == 1 && b->ninputs == 1) {
        feeds[0] = 0;
        found = 1;
    }
    return found ? FAC_OK
                 : fac_raise(err, FAC_E_ARGUMENT,
                             "no output of the first model is called as an input of the second "
                             "one: "
                             "say which belong together");
}

/* Outputs that feed the second model are no outputs any more. */
static void drop_fed(fac_graph *to, const long *feeds, size_t n, const fac_graph *b) {
    size_t kept = 0;
    for (size_t k = 0; k < n; k++) {
        bool fed = false;
        for (size_t i = 0; i < b->ninputs; i++) fed |= feeds[i] == (long)k;
        if (fed)
            to->outputs[k].value->roots--;
        else
            to->outputs[kept++] = to->outputs[k];
    }
    to->noutputs = kept;
}

static fac_status append(fac_graph *to, const fac_graph *b, const long *feeds, fac_value **in,
                         fac_value **made, fac_error *err) {
    const size_t n = to->noutputs;
    for (size_t i = 0; i < b->ninputs; i++) {
        in[i] = feeds[i] < 0 ? NULL : to->outputs[feeds[i]].value;
        if (in[i] &&
            !fits(to, in[i], b->inputs[i], to->outputs[feeds[i]].name, b->inputs[i]->name, err))
            return FAC_E_SHAPE;
    }
    fac_edit_graft(to, b, in, made);
    FAC_TRY(fac_graph_check(to, err));
    drop_fed(to, feeds, n, b);
    for (size_t k = 0; k < b->noutputs; k++) {
        const char *name = b->outputs[k].name;
        const fac_value *taken = fac_graph_find(to, name);
        if (taken && taken != made[k]) name = fac_graph_fresh(to, name);
        fac_output(to, name ? name : "", made[k]);
    }
    return fac_graph_check(to, err);
}

fac_status fac_graph_appended(const fac_graph *a, const fac_graph *b, int n,
                              const char *const from[], const char *const to[], fac_graph **out,
                              fac_error *err) {
    long *feeds = fac_alloc(b->ninputs + 1, sizeof *feeds);
    fac_value **in = fac_alloc(b->ninputs + b->noutputs + 1, sizeof *in);
    fac_graph *made = feeds && in ? fac_graph_clone(a) : NULL;
    fac_error own = { 0 };
    fac_status status = made ? fac_graph_check(made, &own)
                             : fac_raise(&own, FAC_E_NOMEM, "no memory to join models");
    if (!status) status = connect(a, b, n, from, to, feeds, &own);
    if (!status) status = append(made, b, feeds, in, in + b->ninputs, &own);
    if (!status) fac_graph_sweep(made);
    fac_release(feeds);
    fac_release(in);
    if (!status) return fac_edit_give(made, out, err);
    fac_graph_free(made);
    if (err) *err = own;
    return status;
}

/* ---- in place of a part ---- */

/* Is any of in[] made from any of out[]?  Then putting something between them would be a cycle. */
static fac_status check_order(const fac_graph *g, int nin, fac_value *const in[], int nout,
                              fac_value *const out[], fac_error *err) {
    unsigned char *reached = fac_alloc((size_t)g->ids + 1, 1);
    fac_status status =
        reached ? FAC_OK : fac_raise(err, FAC_E_NOMEM, "no memory to look for cycles");
    for (int k = 0; k < nout && !status; k++) reached[out[k]->id] = 1;
    for (const fac_node *n = g->first; n && !status; n = n->next) {
        bool reads = false;
        for (int i = 0; i < n->nin; i++) reads |= n->in[i] && reached[n->in[i]->id];
        for (int k = 0; k < n->nout && reads; k++) reached[n->out[k]->id] = 1;
    }
    for (int i = 0; i < nin && !status; i++)
        if (reached[in[i]->id])
            status = fac_raise(err, FAC_E_ARGUMENT,
                               "\"%s\", where the part begins, is made from its end",
                               in[i]->name ? in[i]->name : "?");
    fac_release(reached);
    return status;
}

void fac_edit_rename(fac_value *old, fac_value *with) {
    const char *name = old->name;
    fac_graph *g = old->graph;
    if (!name || old->leaf || with->name || g->error.status) return;
    old->name = NULL;
    with->name = name;
    if (!fac_table_put(&g->names, name, with))
        fac_graph_raise(g, FAC_E_NOMEM, "no memory for a name");
}

static fac_status part(fac_graph *to, const fac_graph *with, fac_value **in, fac_value **out,
                       fac_value **made, const char *const inputs[], const char *const outputs[],
                       fac_error *err) {
    const int nin = (int)with->ninputs, nout = (int)with->noutputs;
    for (int i = 0; i < nin; i++) {
        in[i] = fac_edit_value(to, inputs[i]);
        if (!in[i])
            return fac_raise(err, FAC_E_ARGUMENT, "there is no value \"%s\" to begin at",
                             inputs[i]);
        if (!fits(to, in[i], with->inputs[i], inputs[i], with->inputs[i]->name, err))
            return FAC_E_SHAPE;
    }
    for (int k = 0; k < nout; k++) {
        out[k] = fac_edit_value(to, outputs[k]);
        if (!out[k])
            return fac_raise(err, FAC_E_ARGUMENT, "there is no value \"%s\" to end at", outputs[k]);
    }
    FAC_TRY(check_order(to, nin, in, nout, out, err));
    fac_edit_graft(to, with, in, made);
    for (int k = 0; k < nout && !to->error.status; k++) {
        if (!fits(to, made[k], out[k], with->outputs[k].name, outputs[k], err)) return FAC_E_SHAPE;
        fac_replace(out[k], made[k]);
        fac_edit_rename(out[k], made[k]);
    }
    if (!to->error.status) fac_graph_sweep(to);
    return fac_graph_check(to, err);
}

fac_status fac_graph_part_replaced(const fac_graph *g, int nin, const char *const inputs[],
                                   int nout, const char *const outputs[], const fac_graph *with,
                                   fac_graph **out, fac_error *err) {
    fac_error own = { 0 };
    if ((size_t)nin != with->ninputs || (size_t)nout != with->noutputs)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "the new part has %zu inputs and %zu outputs, the old one %d and %d",
                         with->ninputs, with->noutputs, nin, nout);
    fac_value **room = fac_alloc((size_t)nin + 2 * (size_t)nout + 1, sizeof *room);
    fac_graph *made = room ? fac_graph_clone(g) : NULL;
    fac_status status = made ? fac_graph_check(made, &own) : fac_raise_memory(&own, "a graph");
    if (!status)
        status = part(made, with, room, room + nin, room + nin + nout, inputs, outputs, &own);
    fac_release(room);
    if (!status) return fac_edit_give(made, out, err);
    fac_graph_free(made);
    if (err) *err = own;
    return status;
}
