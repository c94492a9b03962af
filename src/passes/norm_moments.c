/* Batch norms of training after convolutions: the convolution gives the mean and variance of what
 * it makes (conv2d_moments), and the norm takes them (batch_norm_given), so that the image is not
 * read for its statistics alone.  Applied only if the pair costs no more.  Runs after
 * norm_epilogue.c; its bodies are carried over. */
#include "facula/ops.h"
#include "op_list.h"
#include "graph/attr.h"
#include "passes/passes.h"
#include "passes/single.h"

enum { PORTS = 5, OPERANDS = PORTS + 3 };

static bool trains(const fac_node *n) {
    return FAC_IS(n, batch_norm) && fac_attr_flag(n, "training_mode") &&
           n->out[0]->time == FAC_RUN && n->nports == PORTS && n->nin <= PORTS + 1;
}

static void name_as(fac_node *to, const fac_node *n) {
    to->name = n->name, to->scope = n->scope, to->stage = n->stage;
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
    args[PORTS] = fac_value_other(made, 1), args[PORTS + 1] = fac_value_other(made, 2);
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
    name_as(made->node, conv);
    name_as(y->node, n);
    fac_replace(conv->out[0], made);
    for (int k = 0; k < n->nout; k++) fac_replace(n->out[k], y->node->out[k]);
}

fac_graph *fac_pass_norm_moments(const fac_graph *g, fac_price *price, void *self) {
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ 0 }, NULL);
    if (!to || to->error.status) return to;
    fac_node *last = to->last;
    for (fac_node *n = to->first, *next; n && !to->error.status; n = n == last ? NULL : next) {
        next = n->next;
        if (trains(n)) fuse(to, n, price, self);
    }
    if (!to->error.status) fac_graph_sweep(to);
    return to;
}
