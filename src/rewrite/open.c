/* What has products inside (attention, recurrent cells, functions) written out, also where it is
 * inside of itself. */
#include "graph/attr.h"
#include "op_list.h"
#include "passes/passes.h"

static bool opens(const fac_node *n, bool loops) {
    static const fac_op *const composed[] = { &fac_op_attention, &fac_op_rnn,  &fac_op_gru,
                                              &fac_op_lstm,      &fac_op_call, NULL };
    return fac_op_is_one_of(n->op, composed) ||
           (loops && FAC_IS(n, loop) && fac_node_expands(n) > 0);
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    if (!opens(n, *(const bool *)self)) return false;
    fac_node_expand(to, n, in, out);
    return true;
}

fac_graph *fac_pass_open(const fac_graph *g, bool loops) {
    fac_graph *to = fac_graph_clone(g);
    while (to && !to->error.status) {
        const fac_node *n = to->first;
        while (n && !opens(n, loops)) n = n->next;
        if (!n) break;
        fac_graph *next =
            fac_graph_rebuild(to, &(fac_rebuild){ .self = &loops, .visit = visit }, NULL);
        fac_graph_free(to);
        to = next;
    }
    return to;
}
