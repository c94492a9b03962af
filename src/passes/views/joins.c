/* A concat that begins with what another concat has joined already reads that one:
 *   c = concat(a, b),  d = concat(a, b, e)   ->   d = concat(c, e)
 * as in a DenseNet that joins all earlier results anew for each layer: the growing concats become
 * one image in which every result has its place.  Preserves every bit. */
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/passes.h"

/* A concat of all of the first values of the list, at least two of them and less than all; NULL. */
static const fac_node *beginning(const fac_node *n, fac_value *const list[], int count) {
    const fac_node *best = NULL;
    for (const fac_use *u = list[0]->uses; u; u = u->next) {
        const fac_node *m = u->node;
        if (u->input || !FAC_IS(m, concat) || m->nin < 2 || m->nin >= count ||
            (best && m->nin <= best->nin))
            continue;
        const int axis = fac_axis(fac_attr_int(n, "axis", 0), n->out[0]->type.dims.n);
        bool same = axis == fac_axis(fac_attr_int(m, "axis", 0), m->out[0]->type.dims.n) &&
                    m->stage == n->stage;
        for (int i = 0; i < m->nin && same; i++) same = m->in[i] == list[i];
        if (same) best = m;
    }
    return best;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    enum { MOST = 256 };
    fac_value *list[MOST];
    int count = n->nin;
    (void)self;
    if (!FAC_IS(n, concat) || count < 3 || count > MOST || n->out[0]->time != FAC_RUN) return false;
    for (int i = 0; i < count; i++) list[i] = in[i];
    for (const fac_node *c;
         (c = beginning(n, list, count)) != NULL;) { /* c itself may begin another one */
        list[0] = c->out[0];
        for (int i = c->nin; i < count; i++) list[i - c->nin + 1] = list[i];
        count -= c->nin - 1;
    }
    if (count == n->nin) return false;
    out[0] = fac_emit(n->op, n->attrs, count, list);
    if (out[0]->node) {
        out[0]->node->name = fac_arena_text(&to->arena, n->name); /* n goes away with its graph */
        out[0]->node->scope = fac_arena_text(&to->arena, n->scope);
    }
    return true;
}

fac_graph *fac_pass_joins(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL);
}
