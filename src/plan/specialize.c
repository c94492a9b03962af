/* A graph with the sizes of one set of inputs: symbols are bound, inputs that steer shapes become
 * constants, and the rebuild infers every type anew, so later passes see numbers only. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "plan/plan.h"
#include "tensor/tensor_internal.h"

typedef struct bind {
    const fac_graph *from;
    const bool *steers;
    fac_tensor *const *in;
    int64_t *symbols; /* by index: the size, -1 when it is not bound */
    fac_error *err;
    fac_status status;
} bind;

static fac_status bind_input(bind *b, size_t i) {
    const fac_value *v = b->from->inputs[i];
    fac_type have = fac_tensor_type(b->in[i]);
    const fac_dims *want = &v->type.dims;
    if (have.dtype != v->type.dtype)
        return fac_raise(b->err, FAC_E_DTYPE, "input %s is %s, a tensor of %s was given", v->name,
                         fac_dtype_get(v->type.dtype)->name, fac_dtype_get(have.dtype)->name);
    if (v->guess != FAC_CERTAIN) return FAC_OK; /* made by another part of the run: any dims */
    if (have.dims.n != want->n)
        return fac_raise(b->err, FAC_E_SHAPE, "input %s has %d dims, a tensor with %d was given",
                         v->name, want->n, have.dims.n);
    for (int k = 0; k < want->n; k++) {
        int64_t d = want->d[k];
        if (fac_is_symbol(b->from, d)) {
            int64_t *bound = &b->symbols[fac_symbol_index(d)];
            if (*bound >= 0 && *bound != have.dims.d[k])
                return fac_raise(b->err, FAC_E_SHAPE,
                                 "input %s: dim %d (%s) is %lld, elsewhere %s is %lld", v->name, k,
                                 fac_symbol_name(b->from, d), (long long)have.dims.d[k],
                                 fac_symbol_name(b->from, d), (long long)*bound);
            *bound = have.dims.d[k];
        } else if (d != have.dims.d[k]) {
            return fac_raise(b->err, FAC_E_SHAPE,
                             "input %s: dim %d is %lld, a tensor with %lld was given", v->name, k,
                             (long long)d, (long long)have.dims.d[k]);
        }
    }
    return FAC_OK;
}

static int64_t size_of(const bind *b, int64_t d) {
    if (!fac_is_symbol(b->from, d)) return d;
    int64_t bound = b->symbols[fac_symbol_index(d)];
    return bound >= 0 ? bound : d;
}

static fac_value *leaf(void *self, fac_graph *to, const fac_value *v) {
    bind *b = self;
    if (v->leaf == FAC_CONST && v->known && !v->tensor) {
        fac_dims d = { .n = v->known->n };
        for (int k = 0; k < d.n && k < FAC_DIMS; k++) d.d[k] = size_of(b, v->known->v[k]);
        return d.n <= FAC_DIMS ? fac_ints(to, d) : NULL;
    }
    if (v->leaf != FAC_INPUT) return NULL;
    for (size_t i = 0; i < b->from->ninputs; i++) {
        if (b->from->inputs[i] != v) continue;
        if (!b->steers[i])
            return fac_input(to, v->name, v->type.dtype, fac_tensor_type(b->in[i]).dims);
        fac_tensor *copy = NULL;
        if ((b->status = fac_tensor_copy_contiguous(b->in[i], &copy, b->err))) return NULL;
        fac_value *c = fac_const(to, copy);
        fac_tensor_free(copy);
        return c;
    }
    return NULL;
}

/* Known contents that hold symbols speak of sizes that are bound now: nodes infer them anew from
 * concrete inputs. */
fac_graph *fac_specialize(const fac_graph *g, const bool *steers, fac_tensor *const in[],
                          fac_error *err) {
    bind b = { g, steers, in, fac_alloc(g->nsymbols + 1, sizeof *b.symbols), err, FAC_OK };
    if (!b.symbols) {
        fac_raise_memory(err, "%zu symbols", g->nsymbols);
        return NULL;
    }
    for (size_t k = 0; k < g->nsymbols; k++) b.symbols[k] = -1;
    fac_graph *to = NULL;
    for (size_t i = 0; i < g->ninputs && !b.status; i++) b.status = bind_input(&b, i);
    if (!b.status) {
        to = fac_graph_rebuild(g, &(fac_rebuild){ .self = &b, .leaf = leaf }, NULL);
        if (!to)
            fac_raise_memory(err, "a graph of %d nodes", g->nodes);
        else if (b.status || fac_graph_check(to, err)) {
            fac_graph_free(to);
            to = NULL;
        }
    }
    fac_release(b.symbols);
    return to;
}
