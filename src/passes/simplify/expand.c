/* Expansion of ops into simpler ones: of those that have no meaning of their own, but for what a
 * kernel takes as it is; and of those that have both where no kernel does, since their formula is a
 * loop on the host. */
#include "passes/passes.h"

/* An expansion of more nodes than this makes a plan that is slower to make than a run of the body,
 * again and again, is to do. */
enum { MOST = 1 << 14 };

static bool primitive(const fac_node *n) {
    if (n->op->is & FAC_OP_FLOW) {
        const int64_t made = fac_node_expands(n);
        return !made || (made > MOST && made > 8 * (int64_t)n->body[0]->nodes);
    }
    const bool cannot = n->op->ref && n->op->expands && !n->op->expands(n);
    return n->op->map || n->op->move || !n->op->expand || cannot;
}

typedef struct state {
    bool again;
    fac_accept *accept;
    void *self;
} state;

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    state *s = self;
    if (primitive(n) || (s->accept ? s->accept(s->self, n) : fac_op_means(n->op))) return false;
    if (s->accept && fac_attention_widened(s->accept, s->self, n, in, out)) return true;
    /* so that errors and measurements tell whose parts they are; bodies of loops are told apart
     * already */
    fac_graph_push(to, n->op->is & FAC_OP_FLOW ? NULL : n->name);
    fac_node_expand(to, n, in, out);
    fac_graph_pop(to);
    s->again = true;
    return true;
}

fac_graph *fac_pass_expand(const fac_graph *g, fac_accept *accept, void *self) {
    enum { DEEPEST = 16 };
    state s = { false, accept, self };
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .self = &s, .visit = visit }, NULL);
    for (int i = 0; to && s.again && !to->error.status; i++) {
        if (i == DEEPEST) {
            fac_graph_raise(to, FAC_E_INTERNAL, "expansions that do not end");
            break;
        }
        s.again = false;
        fac_graph *next = fac_graph_rebuild(to, &(fac_rebuild){ .self = &s, .visit = visit }, NULL);
        fac_graph_free(to);
        to = next;
    }
    return to;
}
