/* Where parameters come from: a source (a file of weights, an importer) or, without one, a seed. */
#include "nn/nn_internal.h"
#include "base/optional.h"

void fac_nn_source(fac_graph *g, fac_source *source, void *self) {
    g->source = source;
    g->source_self = self;
}

void fac_nn_seed(fac_graph *g, uint64_t seed) { g->seed = seed; }

static fac_value *leaf(fac_graph *g, fac_leaf kind, const char *name, fac_type type,
                       fac_init init) {
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    if (g->source) {
        t = g->source(g->source_self, name, type, &err);
        if (!t)
            return fac_graph_raise(g, err.status ? err.status : FAC_E_ARGUMENT, "%s",
                                   err.status ? err.text : "the source of parameters gave none");
    } else if (fac_init_tensor(&init, g->seed, name, type, &t, &err)) {
        return fac_graph_raise(g, err.status, "%s", err.text);
    }

    const fac_type given = fac_tensor_type(t);
    fac_value *v = g->poison;
    if (given.dtype == type.dtype && fac_dims_equal(&given.dims, &type.dims)) {
        v = kind == FAC_STATE ? fac_state(g, name, t) : fac_param(g, name, t);
    } else {
        fac_text want = { 0 }, have = { 0 };
        fac_type_print(g, &type, &want);
        fac_type_print(g, &given, &have);
        fac_graph_raise(g, FAC_E_SHAPE, "parameter %s: expected %s, its source gave %s", name,
                        fac_text_or(want.s, ""), fac_text_or(have.s, ""));
        fac_text_free(&want);
        fac_text_free(&have);
    }
    fac_tensor_free(t);
    return v;
}

fac_value *fac_nn_leaf(fac_graph *g, fac_leaf kind, const char *name, fac_dtype dtype,
                       fac_dims dims, fac_init init) {
    if (g->error.status) return g->poison;
    fac_text full = { 0 };
    if (g->scope) fac_text_print(&full, "%s.", g->scope);
    fac_text_add(&full, name);
    fac_value *v = full.failed ? fac_graph_raise(g, FAC_E_NOMEM,
                                                 "no memory for the name of parameter %s", name)
                               : leaf(g, kind, full.s, (fac_type){ dtype, dims }, init);
    fac_text_free(&full);
    return v;
}

fac_value *fac_nn_param(const fac_value *x, const char *name, fac_dims dims, const fac_init *chosen,
                        fac_init usual) {
    const bool own = chosen && chosen->kind != FAC_INIT_DEFAULT;
    return fac_nn_leaf(x->graph, FAC_PARAM, name, x->type.dtype, dims, own ? *chosen : usual);
}
