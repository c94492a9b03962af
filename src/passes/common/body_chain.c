/* Bodies that are a chain: see body_chain.h. */
#include "passes/common/body_chain.h"
#include "facula/ops.h"

enum { OPERANDS = 8 };

static bool is_const(const fac_value *v) { return v->leaf == FAC_CONST && v->tensor; }

bool fac_body_is_chain(const fac_graph *body) {
    const fac_value *v = body ? body->inputs[0] : NULL;
    for (const fac_node *n = body ? body->first : NULL; n; n = n->next) {
        if (n->nout != 1 || n->body[0] || n->nin > OPERANDS) return false;
        for (int i = 0; i < n->nin; i++)
            if (n->in[i] && n->in[i] != v && !is_const(n->in[i])) return false;
        v = n->out[0];
    }
    return !body || (body->ninputs == 1 && body->noutputs == 1 && body->outputs[0].value == v);
}

fac_graph *fac_body_resized(fac_graph *to, const fac_graph *body, fac_type type) {
    fac_graph *g = fac_graph_new();
    fac_value *v = g ? fac_input(g, "x0", type.dtype, type.dims) : NULL;
    for (const fac_node *n = body->first; g && n; n = n->next) {
        fac_value *in[OPERANDS] = { NULL }, *out[1];
        for (int i = 0; i < n->nin; i++)
            if (n->in[i]) in[i] = is_const(n->in[i]) ? fac_const(g, n->in[i]->tensor) : v;
        fac_node_copy(g, n, in, out);
        v = out[0];
    }
    if (g) fac_output(g, "y", v);
    if (g && !g->error.status) return g;
    if (!g || g->error.status == FAC_E_NOMEM)
        fac_graph_raise(to, FAC_E_NOMEM, "no memory for a body of another size");
    fac_graph_free(g);
    return NULL;
}
