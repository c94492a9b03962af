/* Models out of models: see facula/edit.h. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/edit.h"
#include "graph/build.h"
#include "passes/passes.h"
#include "report/report.h"
#include "run/ref.h"

static fac_status give(fac_graph *made, fac_graph **out, fac_error *err) {
    if (!made) return fac_raise(err, FAC_E_NOMEM, "no memory for a graph");
    fac_status status = fac_graph_check(made, err);
    if (status) fac_graph_free(made);
    else *out = made;
    return status;
}

/* ---- a part of it ---- */

typedef struct part { int n; const char *const *names; fac_value **made; } part;

static fac_value *cut_here(const part *p, fac_graph *to, const fac_value *v) {
    for (int k = 0; k < p->n && v->name; k++)
        if (!strcmp(p->names[k], v->name)) return p->made[k] = fac_input(to, v->name, v->type.dtype, v->type.dims);
    return NULL;
}

static bool part_node(void *self, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    const part *p = self;
    bool cut = false;
    for (int k = 0; k < n->nout; k++)
        for (int i = 0; i < p->n; i++) cut |= n->out[k]->name && !strcmp(p->names[i], n->out[k]->name);
    if (!cut) return false;
    if (n->nout > 1) fac_node_copy(to, n, in, out);
    for (int k = 0; k < n->nout; k++) {
        fac_value *v = cut_here(p, to, n->out[k]);
        if (v) out[k] = v;
    }
    return true;
}

static fac_value *part_leaf(void *self, fac_graph *to, const fac_value *v) {
    return v->leaf == FAC_INPUT ? cut_here(self, to, v) : NULL;
}

static void forget_outputs(fac_graph *g) {
    for (size_t k = 0; k < g->noutputs; k++) g->outputs[k].value->roots--;
    g->noutputs = 0;
}

/* Inputs of before that nobody needs any more; of those that were asked for every one must be read. */
static fac_status keep_inputs(fac_graph *g, const part *p, fac_error *err) {
    size_t n = 0;
    for (int k = 0; k < p->n; k++)
        if (!p->made[k]) return fac_raise(err, FAC_E_ARGUMENT, "there is no value \"%s\" to begin at", p->names[k]);
        else if (!p->made[k]->uses && !p->made[k]->roots)
            return fac_raise(err, FAC_E_ARGUMENT, "no output needs \"%s\": it cannot be an input", p->names[k]);
    for (size_t i = 0; i < g->ninputs; i++)
        if (g->inputs[i]->uses || g->inputs[i]->roots) g->inputs[n++] = g->inputs[i];
    g->ninputs = n;
    return FAC_OK;
}

fac_status fac_graph_extract(const fac_graph *g, int ninputs, const char *const inputs[], int noutputs,
                             const char *const outputs[],
                             fac_graph **out, fac_error *err) {
    part p = { ninputs, inputs, fac_alloc((size_t)ninputs + 1, sizeof *p.made) };
    fac_value **map = NULL;
    fac_graph *to = p.made ? fac_graph_rebuild(g, &(fac_rebuild){ .self = &p, .visit = part_node, .leaf = part_leaf,
                                                                  .keep_dead = true }, &map) : NULL;
    fac_status status = to ? fac_graph_check(to, err) : fac_raise(err, FAC_E_NOMEM, "no memory for a graph");
    if (!status) forget_outputs(to);
    for (int k = 0; k < noutputs && !status; k++) {
        const fac_value *v = fac_graph_find((fac_graph *)(uintptr_t)g, outputs[k]);
        if (!v || !map[v->id]) status = fac_raise(err, FAC_E_ARGUMENT, "there is no value \"%s\" to end at", outputs[k]);
        else fac_output(to, outputs[k], map[v->id]);
    }
    if (!status) fac_graph_sweep(to);
    if (!status) status = keep_inputs(to, &p, err);
    fac_release(p.made);
    if (!status) return give(to, out, err);
    fac_graph_free(to);
    return status;
}

/* ---- fewer nodes, known sizes ---- */

/* One pass after the other; what went in is freed. */
static fac_graph *then(fac_graph *g, fac_graph *made) {
    fac_graph_free(g);
    return made;
}

fac_status fac_graph_simplified(const fac_graph *g, fac_graph **out, fac_error *err) {
    fac_graph *to = fac_pass_fold(g, fac_ref_evaluate);
    if (to && !fac_graph_check(to, NULL)) to = then(to, fac_pass_simplify(to));
    if (to && !fac_graph_check(to, NULL)) to = then(to, fac_pass_cse(to));
    return give(to, out, err);
}

fac_status fac_graph_sized(const fac_graph *g, int64_t batch, fac_graph **out, fac_error *err) {
    return give(fac_pass_sizes(g, batch), out, err);
}

/* ---- floats of another type ---- */

static bool is_float(fac_dtype d) { return fac_dtype_get(d)->kind == 'f'; }

static fac_value *float_leaf(void *self, fac_graph *to, const fac_value *v) {
    const fac_dtype want = *(const fac_dtype *)self;
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    if (!is_float(v->type.dtype) || v->type.dtype == want) return NULL;
    if (v->leaf == FAC_INPUT) return fac_input(to, v->name, want, v->type.dims);
    if (!v->tensor || fac_tensor_convert(v->tensor, want, &t, &err))
        return v->tensor ? fac_graph_raise(to, err.status, "%s", err.text) : NULL;
    fac_value *made = v->leaf == FAC_PARAM ? fac_param(to, v->name, t)
                    : v->leaf == FAC_STATE ? fac_state(to, v->name, t) : fac_const(to, t);
    fac_tensor_free(t);
    return made;
}

/* Attributes that say a float type (cast, random, one of constants) say the new one. */
static bool float_node(void *self, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    const fac_dtype want = *(const fac_dtype *)self;
    const fac_attr *a = n->op->attrs;
    while (a && a->name && a->kind != FAC_A_DTYPE) a++;
    if (!a || !a->name || !is_float(*(const fac_dtype *)(const void *)((const char *)n->attrs + a->at))) return false;
    char *attrs = fac_arena_alloc(&to->arena, 1, n->op->attrs_size);
    if (!attrs) return fac_graph_raise(to, FAC_E_NOMEM, "%s: no memory for attributes", n->op->name), false;
    memcpy(attrs, n->attrs, n->op->attrs_size);
    *(fac_dtype *)(void *)(attrs + a->at) = want;
    fac_node other = *n;
    other.attrs = attrs;
    fac_node_copy(to, &other, in, out);
    return true;
}

fac_status fac_graph_floats(const fac_graph *g, fac_dtype to, fac_graph **out, fac_error *err) {
    if (!is_float(to)) return fac_raise(err, FAC_E_DTYPE, "%s is not a type of floats", fac_dtype_get(to)->name);
    return give(fac_graph_rebuild(g, &(fac_rebuild){ .self = &to, .visit = float_node, .leaf = float_leaf }, NULL), out, err);
}

/* ---- names ---- */

fac_status fac_graph_rename(const fac_graph *g, const char *old, const char *name, fac_graph **out, fac_error *err) {
    fac_graph *to = fac_graph_clone(g);
    if (!to) return fac_raise(err, FAC_E_NOMEM, "no memory for a graph");
    fac_value *v = fac_graph_find(to, old);
    bool output = false;
    for (size_t k = 0; k < to->noutputs; k++) output |= !strcmp(to->outputs[k].name, old);
    fac_status status = FAC_OK;
    if (!v && !output) status = fac_raise(err, FAC_E_ARGUMENT, "there is no value \"%s\"", old);
    else if (!*name || fac_graph_find(to, name)) status = fac_raise(err, FAC_E_ARGUMENT, "\"%s\" is taken", name);
    for (size_t k = 0; k < to->noutputs && !status; k++)
        if (!strcmp(to->outputs[k].name, old) && !(to->outputs[k].name = fac_arena_text(&to->arena, name)))
            status = fac_raise(err, FAC_E_NOMEM, "no memory for a name");
    if (!status && v && v->name && !strcmp(v->name, old)) {
        v->name = fac_arena_text(&to->arena, name);
        if (!v->name || !fac_table_put(&to->names, v->name, v)) status = fac_raise(err, FAC_E_NOMEM, "no memory for a name");
    }
    if (!status) return give(to, out, err);
    fac_graph_free(to);
    return status;
}

/* ---- order ---- */

/* Emits a node behind all that it needs: nodes that are no layers stand where the first layer needs them. */
typedef struct queue { fac_graph *to; fac_value **map; bool *done; } queue;

static void emit(queue *q, const fac_node *n) {
    if (q->done[n->id]) return;
    q->done[n->id] = true;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && n->in[i]->node) emit(q, n->in[i]->node);
    fac_node *last = q->to->last, *own = q->map[n->out[0]->id] ? q->map[n->out[0]->id]->node : NULL;
    if (own && last != own) fac_node_move(own, last);
}

fac_status fac_graph_reordered(const fac_graph *g, int64_t batch, fac_graph **out, fac_error *err) {
    fac_analysis *a = NULL;
    double peak;
    FAC_TRY(fac_analyze(g, batch, &a, err));
    int *order = fac_alloc((size_t)a->totals.layers + 1, sizeof *order);
    queue q = { .done = fac_alloc((size_t)a->graph->ids + 1, sizeof *q.done) };
    fac_status status = order && q.done ? fac_analysis_order(a, order, &peak, NULL, err)
                                        : fac_raise(err, FAC_E_NOMEM, "no memory for an order");
    if (!status) q.to = fac_graph_rebuild(a->graph, &(fac_rebuild){ .keep_dead = true }, &q.map);
    if (!status && !q.to) status = fac_raise(err, FAC_E_NOMEM, "no memory for a graph");
    for (int i = 0; i < a->totals.layers && !status; i++) emit(&q, a->nodes[order[i]]);
    for (const fac_node *n = a->graph->first; n && !status; n = n->next) emit(&q, n);
    fac_release(order);
    fac_release(q.done);
    fac_analysis_free(a);
    return status ? status : give(q.to, out, err);
}
