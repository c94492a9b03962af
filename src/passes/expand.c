/* Expansion of ops that have no meaning of their own into simpler ones. */
#include "passes/passes.h"

static bool primitive(const fac_node *n) {
    return n->op->map || n->op->move || n->op->ref || (n->op->is & FAC_OP_BODIES) || !n->op->expand;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    bool *again = self;
    if (primitive(n)) return false;
    fac_node_expand(to, n, in, out);
    *again = true;
    return true;
}

fac_graph *fac_pass_expand(const fac_graph *g) {
    enum { DEEPEST = 16 };
    bool again = false;
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .self = &again, .visit = visit }, NULL);
    for (int i = 0; to && again && !to->error.status; i++) {
        if (i == DEEPEST) {
            fac_graph_raise(to, FAC_E_INTERNAL, "expansions that do not end");
            break;
        }
        again = false;
        fac_graph *next = fac_graph_rebuild(to, &(fac_rebuild){ .self = &again, .visit = visit }, NULL);
        fac_graph_free(to);
        to = next;
    }
    return to;
}
