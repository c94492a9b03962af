/* See bodies.h. */
#include "ops/bodies.h"
#include "graph/graph_internal.h"
#include "ops/cost.h"

bool fac_bodies_infer(fac_node *n) {
    const fac_graph *b = n->body[0];
    if (!b || !b->noutputs)
        return fac_fail(n, FAC_E_ARGUMENT, "it is what its body says, and has none with an output");
    if (b->ninputs != (size_t)n->nin)
        return fac_fail(n, FAC_E_ARGUMENT, "its body takes %zu inputs, it has %d", b->ninputs,
                        n->nin);
    for (int i = 0; i < n->nin; i++) {
        const fac_type *want = &b->inputs[i]->type;
        if (!n->in[i] || n->in[i]->type.dtype != want->dtype ||
            !fac_dims_equal(&n->in[i]->type.dims, &want->dims))
            return fac_fail(n, FAC_E_SHAPE, "input %d differs from that of its body", i);
    }
    if (!fac_node_outputs(n, (int)b->noutputs)) return false;
    for (int k = 0; k < n->nout; k++) n->out[k]->type = b->outputs[k].value->type;
    return true;
}

void fac_bodies_expand(const fac_node *n, fac_value *y[]) {
    fac_body_inline(n->graph, n->body[0], n->in, y);
}

void fac_bodies_cost(const fac_node *n, fac_cost *c) {
    *c = (fac_cost){ 0 };
    fac_cost_bytes(n, c);
    for (const fac_node *m = n->body[0]->first; m; m = m->next) {
        fac_cost own = { 0 };
        if (m->op->cost && fac_node_guess(m) != FAC_RANKLESS) m->op->cost(m, &own);
        c->macs += own.macs;
        c->other += own.other;
    }
}
