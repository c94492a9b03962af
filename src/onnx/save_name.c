/* Names of an exported model.  Inputs, parameters and outputs keep theirs; values that were named
 * (imported ones) do if nothing else has taken it; the others are called as the node that makes
 * them. */
#include <string.h>
#include "base/error.h"
#include "onnx/export.h"

/* The name of one value of the outside; free says whether nobody else had it. */
static bool claim(fac_export *ex, const fac_value *v, const char *name, bool *free) {
    const fac_value *other = fac_table_get(&ex->values, name);
    *free = !other || other == v;
    if (!*free) return true;
    if (!ex->name_of[v->id] && v->leaf != FAC_CONST)
        ex->name_of[v->id] = name; /* a constant's output is a copy of it */
    return fac_table_put(&ex->values, name, (void *)(uintptr_t)v);
}

static fac_status claim_leaves(fac_export *ex, fac_value *const *list, size_t n, fac_error *err) {
    bool free;
    for (size_t k = 0; k < n; k++)
        if (!claim(ex, list[k], list[k]->name, &free)) return fac_raise_memory(err, "names");
    return FAC_OK;
}

fac_status fac_export_names(fac_export *ex, fac_error *err) {
    const fac_graph *g = ex->g;
    ex->name_of = fac_arena_alloc(&ex->arena, g->ids, sizeof *ex->name_of);
    if (!ex->name_of) return fac_raise_memory(err, "names");
    FAC_TRY(claim_leaves(ex, g->inputs, g->ninputs, err));
    FAC_TRY(claim_leaves(ex, g->params, g->nparams, err));
    for (size_t k = 0; k < g->noutputs; k++) {
        bool free;
        const char *name = g->outputs[k].name;
        if (!claim(ex, g->outputs[k].value, name, &free)) return fac_raise_memory(err, "names");
        if (!free)
            return fac_raise(err, FAC_E_ARGUMENT,
                             "output \"%s\" has the name of another value, which ONNX forbids",
                             name);
    }
    return FAC_OK;
}

/* The number that the name got last; the first is 2. */
static int *counter_of(fac_export *ex, const char *want) {
    int *last = fac_table_get(&ex->counters, want);
    if (last) return last;
    if (!(last = fac_arena_alloc(&ex->arena, 1, sizeof *last)) ||
        !fac_table_put(&ex->counters, want, last))
        return NULL;
    *last = 1;
    return last;
}

const char *fac_export_fresh(fac_export *ex, fac_table *taken, const char *want) {
    static const char used = 0;
    const char *name = want;
    if (fac_table_get(
            taken, want)) { /* goes on counting where it stopped: many nodes want the same name */
        int *last = counter_of(ex, want);
        while (last && name && fac_table_get(taken, name))
            name = fac_arena_print(&ex->arena, "%s_%d", want, ++*last);
        if (!last) name = NULL;
    }
    if (name && fac_table_put(taken, name, (void *)(uintptr_t)&used)) return name;
    ex->failed = true;
    return "";
}

const char *fac_export_label(fac_export *ex, const fac_node *n) {
    const char *own = n->name ? n->name : n->op->name;
    const char *label = n->scope ? fac_arena_print(&ex->arena, "%s.%s", n->scope, own) : own;
    ex->failed |= !label;
    return label ? label : "";
}
