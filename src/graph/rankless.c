/* Output types that are not known: of inputs without a rank, and of what may turn out otherwise. */
#include "base/error.h"
#include "graph/build.h"
#include "graph/rankless.h"
#include "op_list.h"

void fac_rankless(fac_value *v, fac_dtype dtype) {
    v->type = (fac_type){ dtype, fac_shape(fac_symbol(v->graph, NULL)) };
    v->known = NULL;
    v->guess = FAC_RANKLESS;
}

/* What a node with bodies makes is what these make; a loop's first result is its condition. */
static bool rankless_flow(fac_node *n) {
    const fac_graph *body = n->body[0];
    const size_t first = FAC_IS(n, loop);
    if (!body || body->noutputs <= first)
        return fac_fail(n, FAC_E_ARGUMENT, "it has no body with an output");
    if (!fac_node_outputs(n, (int)(body->noutputs - first))) return false;
    for (int k = 0; k < n->nout; k++)
        fac_rankless(n->out[k], body->outputs[first + (size_t)k].value->type.dtype);
    return true;
}

/* Inputs without a rank as if they had this one. */
static bool infer_at(fac_node *n, int rank, fac_type *was) {
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i] || n->in[i]->guess != FAC_RANKLESS) continue;
        was[i] = n->in[i]->type;
        n->in[i]->type.dims.n = rank;
        for (int k = 0; k < rank; k++) n->in[i]->type.dims.d[k] = fac_symbol(n->graph, NULL);
    }
    const bool ok = n->op->infer(n) && !n->graph->error.status;
    for (int i = n->nin - 1; i >= 0; i--)
        if (n->in[i] && n->in[i]->guess == FAC_RANKLESS) n->in[i]->type = was[i];
    return ok;
}

/* Element types, and how many results there are, are the same whatever the rank: those of the
 * first one that goes. */
bool fac_infer_rankless(fac_node *n) {
    static const int ranks[] = { 4, 3, 2, 5, 1, 0, 6, 7, 8 };
    if (n->op->is & FAC_OP_FLOW) return rankless_flow(n);
    fac_type *was = fac_arena_alloc(&n->graph->arena, (size_t)n->nin + 1, sizeof *was);
    if (!was) return fac_fail(n, FAC_E_NOMEM, "no memory for types");
    bool ok = false;
    fac_error first = { 0 };
    for (size_t k = 0; k < sizeof ranks / sizeof *ranks && !ok; k++) {
        ok = infer_at(n, ranks[k], was);
        if (!ok && n->graph->error.status == FAC_E_NOMEM) return false;
        if (!ok && !first.status) first = n->graph->error;
        if (!ok) n->graph->error = (fac_error){ 0 };
    }
    if (!ok) n->graph->error = first;
    for (int k = 0; k < n->nout && ok; k++) fac_rankless(n->out[k], n->out[k]->type.dtype);
    return ok;
}

/* Who reads what may turn out otherwise may turn out otherwise. */
void fac_guess_pass_on(fac_node *n, fac_guess most) {
    for (int b = 0; b < 2 && (n->op->is & FAC_OP_FLOW) && !FAC_IS(n, if); b++)
        for (size_t k = 0; n->body[b] && k < n->body[b]->noutputs; k++)
            if (n->body[b]->outputs[k].value->guess > most)
                most = n->body[b]->outputs[k].value->guess;
    for (int k = 0; k < n->nout; k++) {
        if (most == FAC_RANKLESS && n->out[k]->guess != most)
            fac_rankless(n->out[k], n->out[k]->type.dtype);
        else if (n->out[k]->guess < most)
            n->out[k]->guess = most;
    }
}

fac_guess fac_guess_of_inputs(const fac_node *n) {
    fac_guess most = FAC_CERTAIN;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && n->in[i]->guess > most) most = n->in[i]->guess;
    return most;
}
