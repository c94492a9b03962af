/* Where parameters come from: a source (a file of weights, an importer) or, without one, a seed. */
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "nn/nn_internal.h"

void fac_nn_source(fac_graph *g, fac_source *source, void *self) {
    g->source = source;
    g->source_self = self;
}

void fac_nn_seed(fac_graph *g, uint64_t seed) { g->seed = seed; }

/* Each parameter has a random stream of its own, numbered by its name: adding a layer changes no other layer's numbers. */
static fac_status draw(uint64_t seed, const char *name, fac_type type, fac_nn_init init, fac_tensor **out, fac_error *err) {
    const fac_type drawn = { FAC_F32, type.dims };
    size_t bytes = fac_type_bytes(&drawn);
    float *values = bytes == SIZE_MAX ? NULL : fac_alloc(1, bytes ? bytes : 1);
    if (!values) return fac_raise(err, FAC_E_NOMEM, "parameter %s: no memory for %zu bytes", name, bytes);
    uint64_t stream = fac_hash_text(fac_hash_start(0), name).a;
    if (init.lo < init.hi) fac_random_fill(seed, stream, init.lo, init.hi, bytes / sizeof(float), values);
    else for (size_t i = 0; i < bytes / sizeof(float); i++) values[i] = init.lo;

    fac_tensor *t = NULL, *converted = NULL;
    fac_status status = fac_tensor_new(NULL, FAC_F32, type.dims, &t, err);
    if (!status) status = fac_tensor_write(t, values, bytes, err);
    if (!status && type.dtype != FAC_F32) {
        status = fac_tensor_convert(t, type.dtype, &converted, err);
        fac_tensor_free(t);
        t = converted;
    }
    fac_release(values);
    if (status) fac_tensor_free(t);
    else *out = t;
    return status;
}

static fac_value *leaf(fac_graph *g, fac_leaf kind, const char *name, fac_type type, fac_nn_init init) {
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    if (g->source) {
        t = g->source(g->source_self, name, type, &err);
        if (!t)
            return fac_graph_raise(g, err.status ? err.status : FAC_E_ARGUMENT, "%s",
                                   err.status ? err.text : "the source of parameters gave none");
    } else if (draw(g->seed, name, type, init, &t, &err)) {
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
        fac_graph_raise(g, FAC_E_SHAPE, "parameter %s: expected %s, its source gave %s", name, want.s ? want.s : "",
                        have.s ? have.s : "");
        fac_text_free(&want);
        fac_text_free(&have);
    }
    fac_tensor_free(t);
    return v;
}

fac_value *fac_nn_leaf(fac_graph *g, fac_leaf kind, const char *name, fac_dtype dtype, fac_dims dims, fac_nn_init init) {
    if (g->error.status) return g->poison;
    fac_text full = { 0 };
    if (g->scope) fac_text_print(&full, "%s.", g->scope);
    fac_text_add(&full, name);
    fac_value *v = full.failed ? fac_graph_raise(g, FAC_E_NOMEM, "no memory for the name of parameter %s", name)
                               : leaf(g, kind, full.s, (fac_type){ dtype, dims }, init);
    fac_text_free(&full);
    return v;
}
