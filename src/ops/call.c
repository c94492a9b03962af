/* A graph inside a graph: a function of the model, called.  Its expansion is the body itself. */
#include "ops/cost.h"
#include "ops/flow.h"
#include "facula/ops.h"
#include "graph/onnx_write.h"

#if FAC_INTERFACE
/* What the body makes of in[0..n), which are its inputs, in order: a closed graph, without
 * parameters.  out[] receives its outputs.  g takes over the body.  name (may be NULL): of the
 * function, in ONNX files. */
void fac_call(fac_graph *g, const char *name, fac_graph *body, int n, fac_value *const in[],
              fac_value *out[]);
#endif

typedef struct attrs {
    const char *name;
} attrs;
static const fac_attr table[] = { { "name", FAC_A_TEXT, offsetof(attrs, name), 0, 0, 0, 0, NULL,
                                    "of the function, in ONNX files" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, FAC_OPTIONAL | FAC_VARIADIC }, { 0 } };
static const fac_port out[] = { { "y", FAC_ANY, FAC_VARIADIC }, { 0 } };

static bool infer(fac_node *n) {
    fac_flow f;
    fac_flow_feed *feed = fac_arena_alloc(&n->graph->arena, (size_t)n->nin + 1, sizeof *feed);
    if (!feed) return fac_fail(n, FAC_E_NOMEM, "no memory for the types of its body");
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i]) return fac_fail(n, FAC_E_ARGUMENT, "input %d is missing", i);
        feed[i] = fac_flow_same(n->in[i]);
    }
    const bool ok =
        fac_flow_open(&f, n, 0, n->nin, feed) && fac_node_outputs(n, (int)f.body->noutputs);
    for (int k = 0; ok && k < n->nout; k++) {
        const fac_value *y = f.body->outputs[k].value;
        n->out[k]->type = fac_flow_type(&f, (size_t)k);
        if (y->known && !y->known->symbolic) fac_knows(n->out[k], y->known);
    }
    fac_flow_close(&f, ok);
    return ok;
}

static int64_t expands(const fac_node *n) { return fac_flow_nodes(n->body[0]) + 1; }
static void expand(const fac_node *n, fac_value *y[]) {
    fac_flow_inline(n, n->body[0], NULL, n->in, y);
}

static void cost(const fac_node *n, fac_cost *c) {
    *c = (fac_cost){ 0 };
    fac_cost_bytes(n, c);
    fac_flow_cost(n->body[0], 1, c);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *name = ((const attrs *)n->attrs)->name;
    fac_onnx_put_call(w, name ? name : "call", n);
    return true;
}

static const fac_case cases[] = {
    { "call(f32[2,3], f32[3]) {t0 = mul(x0, x1); t1 = exp(t0); t1}", -2, 2, 1e-6 },
    { "call(f32[2], f32[2]) {t0 = add(x0, x1); t1 = tanh(x1); t0, t1}", -2, 2, 1e-6 },
    { "call(f32[3]) name=outer {t0 = call(x0) {t0 = mul(x0, x0); t0}; t1 = sin(t0); t1}", -2, 2,
      1e-6 },
    { 0 }
};

const fac_op fac_op_call = {
    .name = "call",
    .doc = "what its body makes of the inputs",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_BODIES | FAC_OP_FLOW,
    .infer = infer,
    .expand = expand,
    .expands = expands,
    .cost = cost,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

void fac_call(fac_graph *g, const char *name, fac_graph *body, int n, fac_value *const in_[],
              fac_value *out_[]) {
    const int count = body ? (int)body->noutputs : 0;
    fac_value *y = fac_emit_body(g, &fac_op_call, &(attrs){ name }, n, n, in_, body, NULL);
    fac_flow_outputs(y, count, out_);
}
