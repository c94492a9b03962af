/* Chains of elementwise ops become one `fused` node: its body computes block by block without a
 * trip to memory. A producer is taken in when nothing else reads it and it has the shape of its
 * reader, so nothing is computed twice. */
#include <stdio.h>
#include "facula/ops.h"
#include "op_list.h"
#include "graph/attr.h"
#include "passes/common/casts.h"
#include "passes/passes.h"
#include "passes/common/single.h"

enum { NODES = 24, INPUTS = 12 };

typedef struct chain {
    fac_graph *body;
    int n;
    fac_value *outer[INPUTS]; /* the node's inputs, in the order of the body's */
    bool full;
} chain;

static bool elementwise(const fac_node *n) {
    if (!n || n->nout != 1 || n->out[0]->time != FAC_RUN) return false;
    return FAC_IS(n, fused) || (n->op->map && !n->body[0]) || fac_is_float_cast(n);
}

static int size_of(const fac_node *n) { return FAC_IS(n, fused) ? n->body[0]->nodes : 1; }

/* What stands for an outer value inside the body. */
static fac_value *inside(chain *c, fac_value *v) {
    if (!v) return NULL;
    if (v->leaf == FAC_CONST && v->tensor && fac_dims_count(&v->type.dims) == 1)
        return fac_const(c->body, v->tensor);
    if (c->body->error.status)
        return c->body->poison; /* an input that could not be made is none to find */
    for (int i = 0; i < c->n; i++)
        if (c->outer[i] == v) return c->body->inputs[i];
    if (c->n == INPUTS) {
        c->full = true;
        return NULL;
    }
    char name[16];
    snprintf(name, sizeof name, "x%d", c->n);
    c->outer[c->n++] = v;
    return fac_input(c->body, name, v->type.dtype, v->type.dims);
}

/* Copies one node, or the nodes of a fused one, into the body; its operands are already inside. */
static fac_value *splice(chain *c, const fac_node *n, fac_value *const in[]) {
    fac_value *out[1] = { NULL };
    if (!FAC_IS(n, fused)) {
        fac_node_copy(c->body, n, in, out);
        return out[0];
    }
    const fac_graph *from = n->body[0];
    for (size_t i = 0; i < from->ninputs; i++) from->inputs[i]->mark = in[i];
    for (size_t i = 0; i < from->nconsts; i++)
        from->consts[i]->mark = fac_const(c->body, from->consts[i]->tensor);
    for (const fac_node *m = from->first; m; m = m->next) {
        fac_value *args[INPUTS];
        for (int i = 0; i < m->nin; i++) args[i] = m->in[i] ? m->in[i]->mark : NULL;
        fac_node_copy(c->body, m, args, out);
        m->out[0]->mark = out[0];
    }
    return from->outputs[0].value->mark;
}

static bool absorbs(const fac_node *n, int i, fac_value *const in[]) {
    fac_node *p = in[i] ? in[i]->node : NULL;
    return elementwise(p) && n->in[i]->node && fac_used_once(n->in[i]) &&
           fac_dims_equal(&p->out[0]->type.dims, &n->out[0]->type.dims);
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    (void)self;
    if (!elementwise(n) || n->nin > INPUTS) return false;
    int nodes = size_of(n);
    bool take[INPUTS] = { false }, any = false;
    for (int i = 0; i < n->nin; i++) {
        if (!absorbs(n, i, in) || nodes + size_of(in[i]->node) > NODES) continue;
        nodes += size_of(in[i]->node);
        any = take[i] = true;
    }
    if (!any) return false;
    chain c = { .body = fac_graph_new() };
    if (!c.body) return false;
    fac_value *args[INPUTS];
    for (int i = 0; i < n->nin && !c.full; i++) {
        if (!take[i]) {
            args[i] = inside(&c, in[i]);
            continue;
        }
        fac_node *p = in[i]->node;
        fac_value *of[INPUTS];
        for (int k = 0; k < p->nin && !c.full; k++) of[k] = inside(&c, p->in[k]);
        if (!c.full) args[i] = splice(&c, p, of);
    }
    if (!c.full) fac_output(c.body, "y", splice(&c, n, args));
    if (c.full || c.body->error.status) {
        fac_graph_free(c.body);
        return false;
    }
    out[0] = fac_emit_body(to, &fac_op_fused, NULL, c.n, c.n, c.outer, c.body, NULL);
    if (out[0]->node) {
        out[0]->node->name = fac_arena_text(&to->arena, n->name); /* n goes away with its graph */
        out[0]->node->scope = fac_arena_text(&to->arena, n->scope);
    }
    return true;
}

/* Again while it helps: a value with two readers has one when both are in one chain, as in the
 * gradients s (1 - s) of a sigmoid or x (1 - t^2) of a tanh. */
fac_graph *fac_pass_chains(const fac_graph *g) {
    enum { ROUNDS = 4 };
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL);
    for (int i = 1, before = g->nodes; i < ROUNDS && to && !to->error.status && to->nodes < before;
         i++) {
        before = to->nodes;
        fac_graph *next = fac_graph_rebuild(to, &(fac_rebuild){ .visit = visit }, NULL);
        fac_graph_free(to);
        to = next;
    }
    return to;
}
