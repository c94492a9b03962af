/* Which inputs of a graph steer shapes. */
#include "base/memory.h"
#include "graph/graph_internal.h"

static bool small(const fac_type *t) {
    const int64_t n = fac_dims_count(&t->dims);
    return t->dims.n <= 1 && (n < 0 || n <= FAC_KNOWN) && t->dtype != FAC_TEXT;
}

/* Input i of a node with bodies is what input i of each body is made from. */
static bool steers_body(const fac_node *n, bool *of_node) {
    for (int i = 0; i < n->nin; i++) of_node[i] = false;
    for (int k = 0; k < 2 && (n->op->is & FAC_OP_FLOW); k++) {
        if (!n->body[k]) continue;
        bool *own = fac_alloc(n->body[k]->ninputs + 1, sizeof *own);
        const bool ok = own && fac_graph_steering(n->body[k], own);
        for (int i = 0; ok && i < n->nin && (size_t)i < n->body[k]->ninputs; i++)
            of_node[i] |= own[i];
        fac_release(own);
        if (!ok) return false;
    }
    return true;
}

static bool mark_inputs(const fac_node *n, bool *needed) {
    bool few[16], *steers = few, of_result = false;
    if (n->nin > (int)(sizeof few / sizeof *few) &&
        !(steers = fac_alloc((size_t)n->nin, sizeof *steers)))
        return false;
    const bool ok = steers_body(n, steers);
    for (int k = 0; k < n->nout; k++) of_result |= needed[n->out[k]->id];
    for (int i = 0; i < n->nin && ok; i++) {
        const unsigned port = fac_port_flags(n, i);
        const bool read = (port & FAC_HOST) || steers[i] || (of_result && !(port & FAC_SHAPE_ONLY));
        if (n->in[i] && read && small(&n->in[i]->type)) needed[n->in[i]->id] = true;
    }
    if (steers != few) fac_release(steers);
    return ok;
}

bool fac_graph_steering(const fac_graph *g, bool *steers) {
    bool *needed =
        fac_alloc((size_t)g->ids + 1,
                  sizeof *needed); /* by id of a value; a body may be read by many threads */
    bool ok = needed != NULL;
    for (const fac_node *n = g->last; n && ok; n = n->prev) ok = mark_inputs(n, needed);
    for (size_t i = 0; i < g->ninputs && ok; i++) steers[i] = needed[g->inputs[i]->id];
    fac_release(needed);
    return ok;
}
