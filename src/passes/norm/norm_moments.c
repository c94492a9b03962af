/* Batch norms of training after convolutions: the convolution gives the mean and variance of what
 * it makes (conv2d_moments), and the norm takes them (batch_norm_given), so that the image is not
 * read for its statistics alone.  Applied only if the pair costs no more.  Runs after
 * norm_epilogue.c; its bodies are carried over. */
#include "facula/ops.h"
#include "op_list.h"
#include "graph/attr.h"
#include "passes/common/each.h"
#include "passes/passes.h"
#include "passes/common/single.h"

enum { PORTS = 5, OPERANDS = PORTS + 3 };

static bool trains(const fac_node *n) {
    return FAC_IS(n, batch_norm) && fac_attr_flag(n, "training_mode") &&
           n->out[0]->time == FAC_RUN && n->nports == PORTS && n->nin <= PORTS + 1;
}

static void fuse(fac_graph *g, fac_node *n, fac_price *price, void *self) {
    fac_node *conv = n->in[0]->node;
    char how[96];
    if (!FAC_IS(conv, conv2d) || conv->body[0] || conv->stage != n->stage) return;
    fac_value *made = fac_emit(&fac_op_conv2d_moments, conv->attrs, conv->nin, conv->in);
    if (!made->node) return;

    fac_graph *body = n->body[0] ? fac_graph_rebuild(n->body[0], &(fac_rebuild){ 0 }, NULL) : NULL;
    fac_value *args[OPERANDS];
    for (int i = 0; i < PORTS; i++) args[i] = i ? n->in[i] : made;
    args[PORTS] = fac_value_other(made, 1);
    args[PORTS + 1] = fac_value_other(made, 2);
    if (n->nin > PORTS) args[PORTS + 2] = n->in[PORTS];
    snprintf(how, sizeof how, "epsilon=%.17g momentum=%.17g", fac_attr_real(n, "epsilon", 0),
             fac_attr_real(n, "momentum", 0));
    fac_value *y = fac_apply(g, &fac_op_batch_norm_given, how, PORTS + 2, args);
    if (!y->node) {
        fac_graph_free(body);
        return;
    }
    if (body)
        y = fac_emit_body(g, y->node->op, y->node->attrs, PORTS + 2 + n->nin - PORTS, PORTS + 2,
                          args, body, NULL);
    if (!y->node ||
        !(price(self, made->node) + price(self, y->node) <= price(self, conv) + price(self, n)))
        return;
    fac_node_stands_for(made->node, conv);
    fac_node_stands_for(y->node, n);
    fac_replace(conv->out[0], made);
    for (int k = 0; k < n->nout; k++) fac_replace(n->out[k], y->node->out[k]);
}

static void visit(fac_graph *to, fac_node *n, const fac_judge *by) {
    if (trains(n)) fuse(to, n, by->price, by->self);
}

fac_graph *fac_pass_norm_moments(const fac_graph *g, fac_price *price, void *self) {
    return fac_pass_each(g, visit, &(fac_judge){ .price = price, .self = self });
}
