/* Where data enters a graph: inputs, parameters, states and constants. */
#include <string.h>
#include "base/memory.h"
#include "base/optional.h"
#include "graph/build.h"

/* Where a leaf is listed. */
static fac_value ***list_of(fac_graph *g, fac_leaf leaf, size_t **count, size_t **room) {
    switch (leaf) {
    case FAC_INPUT:
        *count = &g->ninputs;
        *room = &g->room_inputs;
        return &g->inputs;
    case FAC_CONST:
        *count = &g->nconsts;
        *room = &g->room_consts;
        return &g->consts;
    default:
        *count = &g->nparams;
        *room = &g->room_params;
        return &g->params;
    }
}

fac_value *fac_leaf_new(fac_graph *g, fac_leaf leaf, const char *name, fac_type type,
                        fac_tensor *t) {
    static const char *const kind[] = {
        "value", "input", "parameter", "state", "constant", "poison"
    };
    static const fac_time time[] = { FAC_RUN,     FAC_RUN,     FAC_PREPARE,
                                     FAC_PREPARE, FAC_COMPILE, FAC_RUN };
    if (g->error.status) return NULL;
    if (name && fac_table_get(&g->names, name)) {
        fac_graph_raise(g, FAC_E_ARGUMENT, "%s '%s': this name is taken", kind[leaf], name);
        return NULL;
    }
    const char *known = fac_dtype_get(type.dtype)->name;
    if (type.dtype == FAC_NONE || !strcmp(known, "none")) {
        fac_graph_raise(g, FAC_E_DTYPE, "%s '%s' has no element type", kind[leaf],
                        name ? name : "");
        return NULL;
    }
    if (!fac_dims_valid(g, &type.dims)) {
        fac_text text = { 0 };
        if (type.dims.n >= 0 && type.dims.n <= FAC_DIMS) fac_type_print(g, &type, &text);
        fac_graph_raise(
            g, FAC_E_SHAPE,
            "%s '%s': %s is no shape: at most %d dims, each a size or a fac_symbol of this graph, "
            "and fewer than 2^56 elements",
            kind[leaf], fac_text_or(name, ""), text.n ? text.s : "that", FAC_DIMS);
        fac_text_free(&text);
        return NULL;
    }
    size_t *count, *room;
    fac_value ***list = list_of(g, leaf, &count, &room);
    fac_value *v = fac_arena_alloc(&g->arena, 1, sizeof *v);
    const char *copy = fac_arena_text(&g->arena, name);
    if (!v || (name && !copy) || !fac_reserve(list, room, *count + 1, sizeof **list) ||
        (name && !fac_table_put(&g->names, copy, v))) {
        fac_graph_raise(g, FAC_E_NOMEM, "no memory for %s '%s'", kind[leaf], name ? name : "");
        return NULL;
    }
    *v = (fac_value){
        .type = type, .leaf = leaf, .time = time[leaf], .name = copy, .graph = g, .id = g->ids++
    };
    if (t) v->tensor = fac_tensor_retain(t);
    (*list)[(*count)++] = v;
    return v;
}

fac_value *fac_input(fac_graph *g, const char *name, fac_dtype dtype, fac_dims dims) {
    if (!name) return fac_graph_raise(g, FAC_E_ARGUMENT, "an input needs a name");
    fac_value *v = fac_leaf_new(g, FAC_INPUT, name, (fac_type){ dtype, dims }, NULL);
    return v ? v : g->poison;
}

static fac_value *parameter(fac_graph *g, fac_leaf leaf, const char *name, fac_tensor *t) {
    if (!name) return fac_graph_raise(g, FAC_E_ARGUMENT, "a parameter needs a name");
    if (!t) return fac_graph_raise(g, FAC_E_ARGUMENT, "parameter '%s' has no tensor", name);
    fac_value *v = fac_leaf_new(g, leaf, name, fac_tensor_type(t), t);
    return v ? v : g->poison;
}

fac_value *fac_param(fac_graph *g, const char *name, fac_tensor *t) {
    return parameter(g, FAC_PARAM, name, t);
}
fac_value *fac_state(fac_graph *g, const char *name, fac_tensor *t) {
    return parameter(g, FAC_STATE, name, t);
}

/* What fac_known tells of a constant: read once, here. */
static bool learn(fac_value *v) {
    const fac_type *type = &v->type;
    const char kind = fac_dtype_get(type->dtype)->kind;
    int64_t n = fac_dims_count(&type->dims);
    if ((kind != 'i' && kind != 'u' && kind != 'b') || type->dtype == FAC_BIT || type->dims.n > 1 ||
        n < 0 || n > FAC_KNOWN)
        return true;
    fac_contents c = { .n = (int)n };
    fac_tensor *wide = NULL;
    fac_error err = { 0 };
    bool ok = !fac_tensor_convert(v->tensor, FAC_I64, &wide, &err) &&
              !fac_tensor_read(wide, c.v, (size_t)n * sizeof *c.v, &err);
    fac_tensor_free(wide);
    if (!ok) {
        fac_graph_raise(v->graph, err.status, "a constant: %s", err.text);
        return false;
    }
    for (int k = 0; k < c.n; k++)
        if (type->dtype == FAC_U64 && c.v[k] < 0) return true; /* above 2^63: no number of ours */
    fac_knows(v, &c);
    return !v->graph->error.status;
}

fac_value *fac_const(fac_graph *g, fac_tensor *t) {
    if (!t) return fac_graph_raise(g, FAC_E_ARGUMENT, "a constant has no tensor");
    fac_value *v = fac_leaf_new(g, FAC_CONST, NULL, fac_tensor_type(t), t);
    return v && learn(v) ? v : g->poison;
}

fac_value *fac_number(fac_graph *g, fac_dtype dtype, double x) {
    fac_tensor *t = NULL, *wide = NULL;
    fac_error err = { 0 };
    const fac_dims scalar = { 0 };
    if (!g) return NULL;
    if (g->error.status) return g->poison;
    fac_status s = FAC_OK;
    if (dtype == FAC_F32) {
        s = fac_tensor_new(NULL, dtype, scalar, &t, &err);
        if (!s) s = fac_tensor_write(t, &(float){ (float)x }, sizeof(float), &err);
    } else {
        s = fac_tensor_new(NULL, FAC_F64, scalar, &wide, &err);
        if (!s) s = fac_tensor_write(wide, &x, sizeof x, &err);
        if (!s) s = fac_tensor_convert(wide, dtype, &t, &err);
    }
    fac_value *v = s ? fac_graph_raise(g, s, "the number %g: %s", x, err.text) : fac_const(g, t);
    fac_tensor_free(wide);
    fac_tensor_free(t);
    return v;
}

fac_value *fac_symbols_const(fac_graph *g, const fac_contents *c) {
    fac_value *v = fac_leaf_new(g, FAC_CONST, NULL, (fac_type){ FAC_I64, fac_shape(c->n) }, NULL);
    if (!v) return g->poison;
    fac_knows(v, c);
    return g->error.status ? g->poison : v;
}

fac_value *fac_ints(fac_graph *g, fac_dims numbers) {
    if (!g) return NULL; /* that of an absent value: whoever uses it names the port */
    if (g->error.status) return g->poison;
    if (numbers.n < 0 || numbers.n > FAC_DIMS)
        return fac_graph_raise(g, FAC_E_ARGUMENT, "fac_ints: %d numbers; 0 to %d are possible",
                               numbers.n, FAC_DIMS);
    fac_contents c = { .n = numbers.n };
    for (int k = 0; k < c.n; k++) {
        c.v[k] = numbers.d[k];
        if (fac_is_symbol(g, c.v[k])) c.symbolic |= 1u << k;
    }
    if (c.symbolic) return fac_symbols_const(g, &c);
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    fac_status s = fac_tensor_new(NULL, FAC_I64, fac_shape(c.n), &t, &err);
    if (!s) s = fac_tensor_write(t, c.v, (size_t)c.n * sizeof *c.v, &err);
    fac_value *v = s ? fac_graph_raise(g, s, "%s", err.text) : fac_const(g, t);
    fac_tensor_free(t);
    return v;
}
