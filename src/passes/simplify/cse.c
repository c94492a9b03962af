/* Common subexpressions: equal nodes with equal inputs become one.  Ordinals of inputs stand in for
 * their hashes, but constants are equal when their contents are. */
#include <stdio.h>
#include "base/memory.h"
#include "passes/passes.h"

/* Open addressing: 128-bit key -> the node that came first. */
typedef struct seen {
    fac_hash key;
    fac_node *node;
} seen;
typedef struct cse {
    seen *slots;
    size_t room;
} cse;

static seen *find(cse *c, fac_hash key) {
    size_t i = (size_t)key.a & (c->room - 1);
    while (c->slots[i].node && !fac_hash_equal(c->slots[i].key, key)) i = (i + 1) & (c->room - 1);
    return &c->slots[i];
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    cse *c = self;
    if (n->op->is & FAC_OP_BARRIER) return false;
    fac_hash h = fac_node_hash(fac_hash_start(3), n);
    for (int i = 0; i < n->nin; i++)
        h = in[i] && in[i]->leaf == FAC_CONST ? fac_const_hash(h, in[i])
                                              : fac_hash_int(h, in[i] ? in[i]->id + 1 : 0);
    seen *s = find(c, h);
    if (s->node) {
        for (int k = 0; k < n->nout; k++) out[k] = s->node->out[k];
        return true;
    }
    fac_node_copy(to, n, in, out);
    if (n->nout > 0 && out[0]->node) *s = (seen){ h, out[0]->node };
    return true;
}

fac_graph *fac_pass_cse(const fac_graph *g) {
    cse c = { NULL, 64 };
    while (c.room < 2 * (size_t)g->nodes + 2) c.room *= 2;
    if (!(c.slots = fac_alloc(c.room, sizeof *c.slots))) return NULL;
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .self = &c, .visit = visit }, NULL);
    fac_release(c.slots);
    return to;
}
