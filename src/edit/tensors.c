/* What stands in parameters and constants: replaced, taken away, put back, computed from others. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "edit/edit.h"
#include "facula/ops.h"
#include "passes/passes.h"
#include "ref/ref.h"

/* ---- one, or many by name ---- */

typedef struct supply {
    fac_table by_name; /* -> fac_tensor                                    */
    bool strict;       /* types must stay as they are                      */
    int done;
} supply;

/* What was made before the run may come from a file; an input only when it was asked for alone. */
static fac_tensor *supplied(const supply *s, const fac_value *v) {
    return v->name && !(s->strict && v->time == FAC_RUN) ? fac_table_get(&s->by_name, v->name)
                                                         : NULL;
}

static fac_value *wrong_type(fac_graph *to, const fac_value *v, const fac_type *type) {
    char is[128], was[128];
    fac_edit_type(to, type, is, sizeof is);
    return fac_graph_raise(to, FAC_E_SHAPE, "\"%s\" is %s, the new one %s", v->name,
                           fac_edit_type(v->graph, &v->type, was, sizeof was), is);
}

static fac_value *put(supply *s, fac_graph *to, const fac_value *v, fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    if (type.dtype != v->type.dtype || (s->strict && !fac_dims_equal(&type.dims, &v->type.dims)))
        return wrong_type(to, v, &type);
    s->done++;
    if (v->leaf == FAC_STATE) return fac_state(to, v->name, t);
    if (v->leaf != FAC_CONST) return fac_param(to, v->name, t);
    fac_value *c = fac_const(to, t);
    fac_value_name_set(c, v->name);
    return c;
}

static fac_value *supply_leaf(void *self, fac_graph *to, const fac_value *v) {
    fac_tensor *t = supplied(self, v);
    return t ? put(self, to, v, t) : NULL;
}

static bool supply_node(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                        fac_value *out[]) {
    (void)in;
    fac_tensor *t = n->nout == 1 ? supplied(self, n->out[0]) : NULL;
    if (t) out[0] = put(self, to, n->out[0], t);
    return t != NULL;
}

static fac_status rebuild(const fac_graph *g, supply *s, int *n, fac_graph **out, fac_error *err) {
    fac_graph *made = NULL;
    fac_status status = fac_edit_give(
        fac_graph_rebuild(
            g,
            &(fac_rebuild){ .self = s, .visit = supply_node, .blind = true, .leaf = supply_leaf },
            NULL),
        &made, err);
    if (!status && !s->done) {
        fac_graph_free(made);
        status =
            fac_raise(err, FAC_E_ARGUMENT, "none of these tensors has the name of a parameter");
    }
    fac_table_free(&s->by_name);
    if (status) return status;
    if (n) *n = s->done;
    *out = made;
    return FAC_OK;
}

fac_status fac_graph_tensor_set(const fac_graph *g, const char *name, fac_tensor *t,
                                fac_graph **out, fac_error *err) {
    const fac_value *v = fac_edit_value(g, name);
    supply s = { 0 };
    if (!v) return fac_raise(err, FAC_E_ARGUMENT, "there is no value \"%s\"", name);
    if (!v->name)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "%s has no name: a tensor can only stand for a named value", name);
    if (!fac_table_put(&s.by_name, v->name, t)) return fac_raise_memory(err, "a name");
    return rebuild(g, &s, NULL, out, err);
}

fac_status fac_graph_restored(const fac_graph *g, int count, const char *const names[],
                              fac_tensor *const tensors[], int *n, fac_graph **out,
                              fac_error *err) {
    supply s = { .strict = true };
    for (int k = 0; k < count; k++)
        if (!fac_table_put(&s.by_name, names[k], tensors[k])) {
            fac_table_free(&s.by_name);
            return fac_raise_memory(err, "names");
        }
    return rebuild(g, &s, n, out, err);
}

/* ---- taken away ---- */

typedef struct strip {
    int64_t least;
    int done;
    fac_value *zero[FAC_DTYPES];
} strip;

/* Zeros of the same type under the same name, as a node of a few bytes: the file stays a model that
 * others check and run. */
static fac_value *strip_leaf(void *self, fac_graph *to, const fac_value *v) {
    strip *s = self;
    if (v->leaf == FAC_INPUT || !v->tensor || !v->name || v->next || v->type.dtype == FAC_TEXT ||
        v->type.dtype == FAC_BIT)
        return NULL;
    if (fac_dims_count(&v->type.dims) < s->least || !v->type.dims.n) return NULL;
    if (!s->zero[v->type.dtype]) s->zero[v->type.dtype] = fac_number(to, v->type.dtype, 0);
    fac_value *zeros = fac_expand(s->zero[v->type.dtype], v->type.dims);
    fac_value_name_set(zeros, v->name);
    s->done++;
    return zeros;
}

fac_status fac_graph_stripped(const fac_graph *g, int64_t least, int *n, fac_graph **out,
                              fac_error *err) {
    strip s = { .least = least > 0 ? least : 1 };
    FAC_TRY(fac_edit_give(
        fac_graph_rebuild(g, &(fac_rebuild){ .self = &s, .leaf = strip_leaf }, NULL), out, err));
    if (n) *n = s.done;
    return FAC_OK;
}

/* ---- computed ---- */

enum { FEW = 32, KEEP = 64 << 10 };

static fac_tensor *tensor_of(const fac_value *v) {
    return v && v->leaf && v->leaf != FAC_INPUT && !v->next ? v->tensor : NULL;
}

static bool known_early(const fac_node *n, fac_value *const in[], fac_tensor *args[]) {
    bool parameter = false;
    if (n->nin > FEW || n->nout > FEW || (n->op->is & (FAC_OP_BARRIER | FAC_OP_DYNAMIC)))
        return false;
    for (int i = 0; i < n->nin; i++) {
        args[i] = in[i] ? tensor_of(in[i]) : NULL;
        if (in[i] && !args[i]) return false;
        parameter |= in[i] && in[i]->leaf != FAC_CONST;
    }
    return parameter;
}

/* Not what would make the file larger: a tensor spread over a shape. */
static bool worthwhile(const fac_node *n, fac_value *const in[]) {
    size_t made = 0, from = 0;
    for (int k = 0; k < n->nout; k++) {
        if (fac_type_bytes(&n->out[k]->type) == SIZE_MAX) return false;
        made += fac_type_bytes(&n->out[k]->type);
    }
    for (int i = 0; i < n->nin; i++) from += in[i] ? fac_type_bytes(&in[i]->type) : 0;
    return made <= KEEP || made <= from;
}

static const char *name_of(fac_graph *to, const fac_node *n, int k, fac_value *const in[]) {
    const char *from = NULL;
    if (n->out[k]->name) return fac_graph_fresh(to, n->out[k]->name);
    for (int i = 0; i < n->nin && !from; i++)
        if (in[i] && in[i]->leaf != FAC_CONST) from = in[i]->name;
    const size_t length = from ? strlen(from) : 0;
    const bool folded = length > 7 && !strcmp(from + length - 7, ".folded");
    const char *want = from;
    if (!folded) want = fac_arena_print(&to->arena, "%s.folded", from ? from : n->op->name);
    return want ? fac_graph_fresh(to, want) : NULL;
}

static bool trains(const fac_node *n, fac_value *const in[]) {
    for (int i = 0; i < n->nin; i++)
        if (in[i] && in[i]->leaf == FAC_PARAM) return true;
    return false;
}

static bool bake_node(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                      fac_value *out[]) {
    int *done = self;
    fac_tensor *args[FEW], *results[FEW] = { NULL };
    fac_error err = { 0 };
    if (!known_early(n, in, args)) return false;
    fac_node_copy(to, n, in, out);
    if (out[0]->leaf == FAC_POISON || !worthwhile(out[0]->node, in)) return true;
    const fac_status status = fac_ref_evaluate(out[0]->node, args, results, &err);
    if (status == FAC_E_UNSUPPORTED) return true; /* it has only an expansion */
    if (status) fac_graph_raise(to, status, "%s", err.text);
    for (int k = 0; k < n->nout && !status; k++) {
        const char *name = results[k] ? name_of(to, n, k, in) : NULL;
        if (results[k] && name)
            out[k] = (trains(n, in) ? fac_param : fac_state)(to, name, results[k]);
        else if (results[k])
            fac_graph_raise(to, FAC_E_NOMEM, "no memory for a name");
        fac_tensor_free(results[k]);
    }
    ++*done;
    return true;
}

fac_status fac_graph_baked(const fac_graph *g, int *n, fac_graph **out, fac_error *err) {
    int done = 0;
    FAC_TRY(fac_edit_give(
        fac_graph_rebuild(g, &(fac_rebuild){ .self = &done, .visit = bake_node }, NULL), out, err));
    if (n) *n = done;
    return FAC_OK;
}
