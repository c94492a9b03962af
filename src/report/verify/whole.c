/* Outputs that integers and flags alone lead to.  Nothing is rounded on their way, so whatever
 * differs is a difference: no tolerance is theirs. */
#include "base/memory.h"
#include "report/verify/verify.h"

/* By id: a float is among what the value is made of.  Bodies are not looked into. */
static void mark(const fac_graph *g, uint8_t *rounded) {
    for (const fac_node *n = g->first; n; n = n->next) {
        bool any = n->body[0] != NULL;
        for (int i = 0; i < n->nin; i++)
            any |= n->in[i] && (rounded[n->in[i]->id] || fac_is_float(n->in[i]));
        for (int k = 0; k < n->nout; k++) rounded[n->out[k]->id] = any || fac_is_float(n->out[k]);
    }
}

static bool add(const fac_graph *g, bool whole[]) {
    uint8_t *rounded = fac_alloc((size_t)g->ids + 1, 1);
    if (!rounded) return false;
    mark(g, rounded);
    for (size_t k = 0; k < g->noutputs; k++) {
        const fac_value *v = g->outputs[k].value;
        whole[k] = whole[k] && !rounded[v->id] && !fac_is_float(v);
    }
    fac_release(rounded);
    return true;
}

bool *fac_whole_outputs(const fac_graph *a, const fac_graph *b) {
    bool *whole = fac_alloc(a->noutputs + 1, sizeof *whole);
    for (size_t k = 0; whole && k < a->noutputs; k++) whole[k] = true;
    if (whole && add(a, whole) && add(b, whole)) return whole;
    fac_release(whole);
    return NULL;
}
