/* A chain of elementwise ops as one node: what its body says.  Made by src/passes/chains.c; has no prototype. */
#include "facula/op.h"
#include "graph/graph_internal.h"

static const fac_port in[] = { { "x", FAC_FLOATS | FAC_INTS | FAC_BOOLS, FAC_VARIADIC }, { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS | FAC_INTS | FAC_BOOLS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    const fac_graph *b = n->body[0];
    if (!b || b->noutputs != 1) return fac_fail(n, FAC_E_ARGUMENT, "a fused node has one body with one output");
    if (b->ninputs != (size_t)n->nin) return fac_fail(n, FAC_E_ARGUMENT, "its body takes %zu inputs, it has %d", b->ninputs, n->nin);
    for (int i = 0; i < n->nin; i++)
        if (!n->in[i] || n->in[i]->type.dtype != b->inputs[i]->type.dtype || !fac_dims_equal(&n->in[i]->type.dims, &b->inputs[i]->type.dims))
            return fac_fail(n, FAC_E_SHAPE, "input %d differs from that of its body", i);
    n->out[0]->type = b->outputs[0].value->type;
    return true;
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_graph *b = n->body[0];
    for (size_t i = 0; i < b->ninputs; i++) b->inputs[i]->mark = n->in[i];
    for (size_t i = 0; i < b->nconsts; i++) b->consts[i]->mark = fac_const(n->graph, b->consts[i]->tensor);
    for (const fac_node *m = b->first; m; m = m->next) {
        fac_value *args[32], *made[1];
        for (int i = 0; i < m->nin; i++) args[i] = m->in[i] ? m->in[i]->mark : NULL;
        fac_node_copy(n->graph, m, args, made);
        m->out[0]->mark = made[0];
    }
    y[0] = b->outputs[0].value->mark;
}

static void cost(const fac_node *n, fac_cost *c) {
    *c = (fac_cost){ 0 };
    for (const fac_node *m = n->body[0]->first; m; m = m->next) c->other += (double)fac_dims_count(&m->out[0]->type.dims);
}

static const fac_case cases[] = {
    { "fused(f32[2,3], f32[3]) {t0 = add(x0, x1); t1 = exp(t0); t2 = mul(t1, x0); t2}", -2, 2, 1e-6 },
    { "fused(f32[7]) {relu neg}", -2, 2, 0 },
    { 0 } };

extern const fac_op fac_op_fused;
const fac_op fac_op_fused = {
    .name = "fused", .doc = "a chain of elementwise ops, computed in one pass", .in = in, .out = out, .is = FAC_OP_BODIES | FAC_OP_INPLACE,
    .infer = infer, .expand = expand, .cost = cost, .cases = cases };
