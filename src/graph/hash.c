/* Structural hashes: fields through tables, values by their place, never by name or address. */
#include <string.h>
#include "base/memory.h"
#include "graph/graph_internal.h"

fac_hash fac_node_hash(fac_hash h, const fac_node *n) {
    h = fac_hash_text(h, n->op->name);
    h = fac_attrs_hash(h, n->op, n->attrs);
    h = fac_hash_int(h, (uint64_t)n->nin << 32 | (uint64_t)n->nout);
    h = fac_hash_int(h, (uint64_t)n->nports << 32 | n->stage);
    for (int k = 0; k < 2; k++) {
        h = fac_hash_int(h, n->body[k] != NULL);
        if (n->body[k]) h = fac_hash_join(h, fac_graph_hash(n->body[k]));
    }
    return h;
}

static fac_hash hash_type(fac_hash h, const fac_type *type) {
    h = fac_hash_int(h, (uint64_t)type->dtype << 32 | (uint64_t)type->dims.n);
    for (int k = 0; k < type->dims.n; k++) h = fac_hash_int(h, (uint64_t)type->dims.d[k]);
    return h;
}

static fac_hash hash_known(fac_hash h, const fac_contents *c) {
    h = fac_hash_int(h, c ? (uint64_t)c->n + 1 : 0);
    for (int k = 0; c && k < c->n; k++) h = fac_hash_int(h, (uint64_t)c->v[k]);
    return fac_hash_int(h, c ? c->symbolic : 0);
}

static fac_hash hash_texts(fac_hash h, char *const *text, int64_t n) {
    h = fac_hash_int(h, 3);
    for (int64_t k = 0; k < n; k++) h = fac_hash_bytes(h, text[k], strlen(text[k]) + 1);
    return h;
}

/* Small constants are structure (axes, the 0.5 of a formula), large ones are data. */
fac_hash fac_const_hash(fac_hash h, const fac_value *v) {
    enum { SMALL = 64 };
    unsigned char bytes[SMALL];
    size_t n = fac_type_bytes(&v->type);
    h = hash_type(h, &v->type);
    if (!v->tensor) return hash_known(h, v->known); /* numbers and symbols */
    if (v->type.dtype != FAC_TEXT && n <= SMALL && !fac_tensor_read(v->tensor, bytes, n, NULL))
        return fac_hash_bytes(fac_hash_int(h, 1), bytes, n);
    const int64_t *strides = fac_tensor_strides(v->tensor);
    const void *data = fac_tensor_data(v->tensor);
    if (v->type.dtype == FAC_TEXT && data && n <= SMALL && fac_tensor_contiguous(v->tensor))
        return hash_texts(h, data, fac_dims_count(&v->type.dims));
    h = fac_hash_int(fac_hash_int(h, 2), (uint64_t)(uintptr_t)(data ? data : v->tensor));
    for (int k = 0; k < v->type.dims.n; k++) h = fac_hash_int(h, (uint64_t)strides[k]);
    return fac_hash_int(h, fac_tensor_version(v->tensor));
}

fac_hash fac_graph_hash(const fac_graph *g) {
    /* Values by their place among all, so that gaps between ids do not matter.  Without memory the
     * ids serve: such a hash equals no other one wrongly, it only misses. */
    uint32_t *place = fac_alloc(g->ids, sizeof *place), next = 1;
    fac_hash h = fac_hash_start(place ? 1 : 2);
    h = fac_hash_int(h, (uint64_t)g->ninputs << 32 | g->nparams);
    for (size_t i = 0; i < g->ninputs; i++) {
        if (place) place[g->inputs[i]->id] = next++;
        h = hash_known(hash_type(h, &g->inputs[i]->type), g->inputs[i]->known);
    }
    for (size_t i = 0; i < g->nparams; i++) {
        if (place) place[g->params[i]->id] = next++;
        h = fac_hash_int(hash_type(h, &g->params[i]->type), g->params[i]->leaf);
    }
    for (const fac_node *n = g->first; n; n = n->next) {
        h = fac_node_hash(h, n);
        for (int i = 0; i < n->nin; i++) {
            const fac_value *v = n->in[i];
            if (!v)
                h = fac_hash_int(h, 0);
            else if (v->leaf == FAC_CONST)
                h = fac_const_hash(h, v);
            else
                h = fac_hash_int(h, place ? place[v->id] : v->id);
        }
        for (int k = 0; k < n->nout; k++)
            if (place) place[n->out[k]->id] = next++;
    }
    h = fac_hash_int(h, g->noutputs);
    for (size_t i = 0; i < g->noutputs; i++) {
        const fac_value *v = g->outputs[i].value;
        h = v->leaf == FAC_CONST ? fac_const_hash(h, v)
                                 : fac_hash_int(h, place ? place[v->id] : v->id);
    }
    for (size_t i = 0; i < g->nparams; i++) {
        const fac_value *v = g->params[i]->next;
        h = !v                     ? fac_hash_int(h, 0)
            : v->leaf == FAC_CONST ? fac_const_hash(h, v)
                                   : fac_hash_int(h, place ? place[v->id] : v->id);
    }
    fac_release(place);
    return h;
}
