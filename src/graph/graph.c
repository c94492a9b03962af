/* Life and contents of a graph: errors, scopes, outputs, updates, and what may be asked of it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/optional.h"
#include "base/spare.h"
#include "graph/build.h"

struct fac_scope {
    const char *before;
    fac_scope *outer;
};

/* Made first, so that there is a value to return when memory is gone later. */
static fac_graph *with_poison(fac_graph *g) {
    g->poison = fac_arena_alloc(&g->arena, 1, sizeof *g->poison);
    if (!g->poison) {
        fac_graph_free(g);
        return NULL;
    }
    g->poison->leaf = FAC_POISON;
    g->poison->graph = g;
    g->poison->id = g->ids++;
    return g;
}

fac_graph *fac_graph_new(void) {
    fac_graph *g = fac_alloc(1, sizeof *g);
    return g ? with_poison(g) : NULL;
}

fac_graph *fac_graph_share(fac_graph *body) {
    atomic_fetch_add(&body->sharers, 1);
    return body;
}

static void drop_contents(fac_graph *g) {
    for (size_t i = 0; i < g->nparams; i++) fac_tensor_free(g->params[i]->tensor);
    for (size_t i = 0; i < g->nconsts; i++) fac_tensor_free(g->consts[i]->tensor);
    for (fac_node *n = g->depth ? g->first : NULL; n; n = n->next)
        for (int k = 0; k < 2; k++) fac_graph_free(n->body[k]);
}

/* Lists and the arena stay as they are; tables of names go. */
fac_graph *fac_graph_clear(fac_graph *g) {
    drop_contents(g);
    fac_table_free(&g->module_places);
    fac_table_free(&g->symbol_names);
    fac_table_free(&g->names);
    fac_graph was = *g;
    fac_arena_reset(&was.arena);
    *g = (fac_graph){
        .arena = was.arena,
        .inputs = was.inputs,
        .room_inputs = was.room_inputs,
        .params = was.params,
        .room_params = was.room_params,
        .consts = was.consts,
        .room_consts = was.room_consts,
        .outputs = was.outputs,
        .room_outputs = was.room_outputs,
        .symbols = was.symbols,
        .room_symbols = was.room_symbols,
        .notes = was.notes,
        .room_notes = was.room_notes,
        .modules = was.modules,
        .room_modules = was.room_modules,
    };
    return with_poison(g);
}

static void drop_lists(fac_graph *g) {
    fac_release(g->inputs);
    fac_release(g->params);
    fac_release(g->consts);
    fac_release(g->outputs);
    fac_release(g->symbols);
    fac_release(g->notes);
    fac_release(g->modules);
    fac_table_free(&g->module_places);
    fac_table_free(&g->symbol_names);
    fac_table_free(&g->names);
}

void fac_graph_free(fac_graph *g) {
    if (!g || atomic_fetch_sub(&g->sharers, 1) > 0) return;
    drop_contents(g);
    drop_lists(g);
    fac_arena_free(&g->arena);
    fac_release(g);
}

void fac_graph_retire(fac_graph *g, fac_graph *heir) {
    if (atomic_load(&g->sharers) == 0) {
        drop_contents(g);
        drop_lists(g);
        fac_arena_give(&heir->arena, &g->arena);
        fac_arena_free(&g->arena);
        fac_release(g);
    } else
        fac_graph_free(g);
}

/* ---- errors ---- */

static fac_value *raise_list(fac_graph *g, fac_status status, const char *format, va_list args) {
    if (!g->error.status) fac_raise_list(&g->error, status, format, args);
    return g->poison;
}

fac_value *fac_graph_raise(fac_graph *g, fac_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fac_value *poison = raise_list(g, status, format, args);
    va_end(args);
    return poison;
}

fac_value *fac_fail_graph(fac_graph *g, fac_status status, const char *format, ...) {
    if (!g) return NULL;
    const bool first = !g->error.status;
    va_list args;
    va_start(args, format);
    fac_value *poison = raise_list(g, status, format, args);
    va_end(args);
    if (first && g->scope) fac_raise_in(&g->error, status, "%s", g->scope);
    return poison;
}

fac_status fac_graph_check(const fac_graph *g, fac_error *err) {
    if (!g) return fac_raise(err, FAC_E_NOMEM, "no graph: there was no memory for it");
    if (g->error.status && err) *err = g->error;
    return g->error.status;
}

fac_status fac_graph_usable(const fac_graph *g, const char *user, fac_error *err) {
    const fac_status status = fac_graph_check(g, NULL);
    if (!status) return FAC_OK;
    if (!g) return fac_graph_check(g, err);
    /* the hint must not push the error out, nor be cut off: a long error gives way */
    return fac_raise(err, status, "%.400s (the graph is poisoned since then: %s cannot use it)",
                     g->error.text, user);
}

/* ---- scopes ---- */

void fac_graph_push(fac_graph *g, const char *scope) {
    fac_scope *s = fac_arena_alloc(&g->arena, 1, sizeof *s);
    const char *joined = !scope || !*scope ? g->scope
                         : g->scope        ? fac_arena_print(&g->arena, "%s.%s", g->scope, scope)
                                           : fac_arena_text(&g->arena, scope);
    if (!s || (scope && *scope && !joined)) {
        fac_graph_raise(g, FAC_E_NOMEM, "no memory for the scope '%s'", scope ? scope : "");
        return;
    }
    *s = (fac_scope){ g->scope, g->scopes };
    g->scopes = s;
    g->scope = joined;
}

void fac_graph_pop(fac_graph *g) {
    if (!g->scopes) {
        fac_graph_raise(g, FAC_E_ARGUMENT, "fac_graph_pop without fac_graph_push");
        return;
    }
    g->scope = g->scopes->before;
    g->scopes = g->scopes->outer;
}

/* ---- what comes out ---- */

void fac_output(fac_graph *g, const char *name, fac_value *v) {
    if (v && v->graph != g) {
        fac_graph_raise(g, FAC_E_ARGUMENT, "output '%s' belongs to another graph",
                        name ? name : "");
        fac_graph_raise(v->graph, FAC_E_ARGUMENT, "a value was made output '%s' of another graph",
                        name ? name : "");
        return;
    }
    if (g->error.status) return;
    if (!name || !v || v->leaf == FAC_POISON) {
        fac_graph_raise(g, FAC_E_ARGUMENT, "output '%s' has no %s", name ? name : "",
                        name ? "value" : "name");
        return;
    }
    for (size_t i = 0; i < g->noutputs; i++)
        if (!strcmp(g->outputs[i].name, name)) {
            fac_graph_raise(g, FAC_E_ARGUMENT, "there are two outputs named '%s'", name);
            return;
        }
    const char *copy = fac_arena_text(&g->arena, name);
    if (!copy || !fac_reserve(&g->outputs, &g->room_outputs, g->noutputs + 1, sizeof *g->outputs)) {
        fac_graph_raise(g, FAC_E_NOMEM, "no memory for output '%s'", name);
        return;
    }
    g->outputs[g->noutputs++] = (fac_graph_out){ copy, v };
    v->roots++;
}

void fac_time_raise(fac_value *v, fac_time time) {
    if (v->time >= time) return;
    fac_graph *g = v->graph;
    fac_value **stack = NULL;
    size_t n = 0, room = 0;
    v->time = time;
    for (fac_value *top = v; top; top = n ? stack[--n] : NULL)
        for (fac_use *u = top->uses; u; u = u->next)
            for (int k = 0; k < u->node->nout; k++) {
                fac_value *next = u->node->out[k];
                if (next->time >= time)
                    continue; /* a value is raised at most twice in its life: linear in all */
                if (!fac_reserve(&stack, &room, n + 1, sizeof *stack)) {
                    fac_release(stack);
                    fac_graph_raise(g, FAC_E_NOMEM, "no memory to follow the uses of a value");
                    return;
                }
                next->time = time;
                stack[n++] = next;
            }
    fac_release(stack);
}

void fac_update(fac_value *param, fac_value *next) {
    if (!param || !next) {
        if (param || next)
            fac_graph_raise((param ? param : next)->graph, FAC_E_ARGUMENT,
                            "fac_update: there is no %s", param ? "next value" : "parameter");
        return;
    }
    fac_graph *g = param->graph;
    if (next->graph != g) {
        fac_graph_raise(g, FAC_E_ARGUMENT, "fac_update: the next value belongs to another graph");
        fac_graph_raise(next->graph, FAC_E_ARGUMENT,
                        "fac_update: the parameter belongs to another graph");
        return;
    }
    if (g->error.status) return;
    if (param->leaf != FAC_PARAM && param->leaf != FAC_STATE) {
        fac_graph_raise(g, FAC_E_ARGUMENT, "fac_update: '%s' is not a parameter",
                        param->name ? param->name : "?");
    } else if (next->leaf == FAC_POISON) {
        fac_graph_raise(g, FAC_E_ARGUMENT, "fac_update: the next value of '%s' was dropped",
                        param->name);
    } else if (param->next) {
        fac_graph_raise(g, FAC_E_ARGUMENT, "fac_update: there are two updates of '%s'",
                        param->name);
    } else if (!fac_type_fits(&param->type, &next->type)) {
        fac_text t = { 0 };
        fac_type_print(g, &param->type, &t);
        fac_text_add(&t, ", its next value is ");
        fac_type_print(g, &next->type, &t);
        fac_graph_raise(g, FAC_E_SHAPE, "fac_update: '%s' is %s", param->name,
                        t.failed ? "of another type" : t.s);
        fac_text_free(&t);
    } else {
        param->next = next;
        next->roots++;
        fac_time_raise(param, FAC_RUN); /* its readers see what the run before left, so nothing can
                                           be prepared from it */
    }
}

/* ---- what may be asked ---- */

fac_type fac_value_type(const fac_value *v) { return v ? v->type : (fac_type){ 0 }; }
const char *fac_value_name(const fac_value *v) { return v ? v->name : NULL; }
fac_graph *fac_value_graph(const fac_value *v) { return v ? v->graph : NULL; }
fac_tensor *fac_value_tensor(const fac_value *v) { return v ? v->tensor : NULL; }
bool fac_value_trains(const fac_value *v) { return v && v->leaf == FAC_PARAM; }

fac_value *fac_value_other(const fac_value *v, int index) {
    if (!v) return NULL;
    if (v->leaf == FAC_POISON) return v->graph->poison;
    if (!v->node || index < 0 || index >= v->node->nout)
        return fac_graph_raise(v->graph, FAC_E_ARGUMENT, "there is no output %d of %s", index,
                               v->node ? v->node->op->name : "a leaf");
    return v->node->out[index];
}

fac_value *fac_graph_find(fac_graph *g, const char *name) {
    if (!name) return NULL;
    fac_value *v = fac_table_get(&g->names, name);
    if (v && v->leaf) return v;
    for (size_t i = 0; i < g->noutputs; i++)
        if (!strcmp(g->outputs[i].name, name)) return g->outputs[i].value;
    return v;
}

const char *fac_graph_fresh(fac_graph *g, const char *want) {
    const char *name = want;
    for (int k = 2; name && fac_graph_find(g, name); k++)
        name = fac_arena_print(&g->arena, "%s_%d", want, k);
    return name;
}

int fac_graph_inputs(const fac_graph *g) { return (int)g->ninputs; }
int fac_graph_outputs(const fac_graph *g) { return (int)g->noutputs; }
int fac_graph_params(const fac_graph *g) { return (int)g->nparams; }
fac_value *fac_graph_input(const fac_graph *g, int i) {
    return i >= 0 && (size_t)i < g->ninputs ? g->inputs[i] : NULL;
}
fac_value *fac_graph_param(const fac_graph *g, int i) {
    return i >= 0 && (size_t)i < g->nparams ? g->params[i] : NULL;
}
fac_value *fac_graph_output(const fac_graph *g, int i) {
    return i >= 0 && (size_t)i < g->noutputs ? g->outputs[i].value : NULL;
}
const char *fac_graph_output_name(const fac_graph *g, int i) {
    return i >= 0 && (size_t)i < g->noutputs ? g->outputs[i].name : NULL;
}

/* ---- names ---- */

void fac_value_name_set(fac_value *v, const char *name) {
    fac_graph *g = v->graph;
    if (!name || v->leaf == FAC_POISON || v->name || fac_table_get(&g->names, name)) return;
    const char *copy = fac_arena_text(&g->arena, name);
    if (!copy || !fac_table_put(&g->names, copy, v))
        fac_graph_raise(g, FAC_E_NOMEM, "no memory for the name '%s'", name);
    else
        v->name = copy;
}

const char *fac_node_label(const fac_node *n, char *to, size_t size) {
    if (n->name)
        snprintf(to, size, "%s", n->name);
    else
        snprintf(to, size, "%s%s%s_%u", fac_text_or(n->scope, ""), fac_text_if(n->scope, "."),
                 n->op->name, (unsigned)n->id);
    return to;
}
