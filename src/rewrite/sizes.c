/* A graph with numbers for its open sizes, when nothing but a batch size is known. */
#include "passes/passes.h"

typedef struct bind {
    const fac_graph *from;
    int64_t batch;
} bind;

static int64_t bound(const bind *b, int64_t d) {
    if (!fac_is_symbol(b->from, d)) return d;
    const fac_value *first = b->from->ninputs ? b->from->inputs[0] : NULL;
    const bool leads = first && first->type.dims.n && first->type.dims.d[0] == d;
    return leads ? b->batch : 1;
}

static fac_value *leaf(void *self, fac_graph *to, const fac_value *v) {
    const bind *b = self;
    if (v->leaf == FAC_CONST && v->known && !v->tensor) {
        fac_dims d = { .n = v->known->n };
        for (int k = 0; k < d.n && k < FAC_DIMS; k++) d.d[k] = bound(b, v->known->v[k]);
        return d.n <= FAC_DIMS ? fac_ints(to, d) : NULL;
    }
    if (v->leaf != FAC_INPUT) return NULL;
    fac_dims d = v->type.dims;
    for (int k = 0; k < d.n; k++) d.d[k] = bound(b, d.d[k]);
    return fac_input(to, v->name, v->type.dtype, d);
}

fac_graph *fac_pass_sizes(const fac_graph *g, int64_t batch) {
    bind b = { g, batch > 0 ? batch : 1 };
    return fac_graph_rebuild(g, &(fac_rebuild){ .self = &b, .leaf = leaf }, NULL);
}
