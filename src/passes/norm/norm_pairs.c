/* Residual blocks whose shortcut has a convolution end with the sum of two batch norms of training:
 *
 *     y = relu(norm(x) + norm(other_x))
 *
 * One batch_norm_pair does not write the output of the shortcut's norm, nor read it again
 * (batch_norm_pair_relu where norm_masks.c lets the norm keep bits).  Both norms' gradients read
 * the same dy: batch_norm_grad_pair reads it once.  It takes the sums of both norms;
 * batch_norm_sums computes them for a norm that got none from a convolution (norm_sums.c).
 *
 * Applied where norm_moments.c gave the statistics and price(self, node) says that it takes less
 * time.  Must run after norm_sums.c, which asks which norm made a value.  With 16-bit tensors the
 * shortcut's output is no longer rounded before the add. */
#include "facula/ops.h"
#include "op_list.h"
#include "graph/attr.h"
#include "passes/common/each.h"
#include "passes/passes.h"
#include "passes/common/single.h"

enum {
    NORM = 7,
    X = 0,
    SCALE,
    MEAN = 3,
    VAR,
    DSCALE,
    DBIAS
}; /* operands of a norm; of a gradient whose sums are given */

static bool same_type(const fac_value *a, const fac_value *b) {
    return a->type.dtype == b->type.dtype && fac_dims_equal(&a->type.dims, &b->type.dims);
}

/* ---- forward ---- */

enum {
    MASK = 3,
    PAIR_MASK = 5
}; /* outputs of norms that keep what relu lets pass (norm_masks.c) */

/* The sum inside of a body whose two operands nothing else reads. */
static const fac_node *sum_of(const fac_graph *body) {
    if (!body || body->ninputs != 2 || !fac_used_once(body->inputs[0]) ||
        !fac_used_once(body->inputs[1]))
        return NULL;
    const fac_node *n = body->inputs[0]->uses->node;
    return FAC_IS(n, add) && n == body->inputs[1]->uses->node ? n : NULL;
}

/* The body after that sum: its first operand stands for the sum, the second one is gone. */
static fac_value *without_second(void *self, fac_graph *to, const fac_value *v) {
    const fac_graph *body = self;
    return v == body->inputs[1] ? fac_number(to, v->type.dtype, 0) : NULL;
}

static bool without_sum(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                        fac_value *out[]) {
    (void)to;
    const fac_graph *body = self;
    if (n != sum_of(body)) return false;
    out[0] = in[n->in[0] == body->inputs[0] ? 0 : 1];
    return true;
}

static void fuse(fac_graph *g, fac_node *n, fac_price *price, void *self) {
    const bool relu = FAC_IS(n, batch_norm_given_relu);
    if (n->nin != NORM + 1 || !n->in[NORM] ||
        (relu ? n->body[0] != NULL : n->nports != NORM || !sum_of(n->body[0])))
        return;
    fac_node *other = n->in[NORM]->node;
    if (!FAC_IS(other, batch_norm_given) || other == n || other->nin != NORM || other->body[0])
        return;
    if (n->in[NORM]->index || !fac_used_once(n->in[NORM]) || other->stage != n->stage) return;
    if (!same_type(n->in[X], other->in[X])) return;
    fac_value *args[2 * NORM];
    for (int i = 0; i < 2 * NORM; i++) args[i] = i < NORM ? n->in[i] : other->in[i - NORM];
    char how[160];
    snprintf(how, sizeof how,
             "epsilon=%.17g momentum=%.17g other_epsilon=%.17g other_momentum=%.17g",
             fac_attr_real(n, "epsilon", 0), fac_attr_real(n, "momentum", 0),
             fac_attr_real(other, "epsilon", 0), fac_attr_real(other, "momentum", 0));
    fac_value *y = fac_apply(g, relu ? &fac_op_batch_norm_pair_relu : &fac_op_batch_norm_pair, how,
                             2 * NORM, args);
    if (!y->node) return;
    if (!relu && n->body[0]->outputs[0].value->node != sum_of(n->body[0])) {
        const fac_rebuild without = { .self = n->body[0],
                                      .visit = without_sum,
                                      .leaf = without_second };
        fac_graph *body = fac_graph_rebuild(n->body[0], &without, NULL);
        if (!body)
            fac_graph_raise(g, FAC_E_NOMEM, "no memory for a body");
        else
            y = fac_emit_body(g, y->node->op, y->node->attrs, 2 * NORM, 2 * NORM, args, body, NULL);
    }
    if (!y->node || !(price(self, y->node) <= price(self, n) + price(self, other))) return;
    fac_node_stands_for(y->node, n);
    fac_replace(n->out[0], y);
    for (int k = 1; k < 3; k++) {
        if (k < n->nout) fac_replace(n->out[k], y->node->out[k]);
        if (k < other->nout) fac_replace(other->out[k], y->node->out[2 + k]);
    }
    if (relu) fac_replace(n->out[MASK], y->node->out[PAIR_MASK]);
}

/* ---- gradients ---- */

static bool is_given(const fac_node *n) { return FAC_IS(n, batch_norm_grad_given); }

/* A gradient of a norm, still read, whose sums are there, or could be: a convolution gave the
 * statistics of x. */
static bool fits(const fac_node *n) {
    if (n->out[0]->time != FAC_RUN || (!n->out[0]->uses && !n->out[0]->roots)) return false;
    if (is_given(n)) return true;
    if (!FAC_IS(n, batch_norm_grad)) return false;
    const fac_value *x = n->in[X], *scale = n->in[2];
    return FAC_IS(x->node, conv2d_moments) && !x->index && same_type(scale, fac_value_other(x, 1));
}

/* Another gradient of a norm that reads the dy of n. */
static fac_node *partner_of(const fac_node *n) {
    for (const fac_use *u = n->in[1]->uses; u; u = u->next)
        if (u->node != n && fits(u->node) && u->node->in[1] == n->in[1] &&
            u->node->stage == n->stage && same_type(u->node->in[X], n->in[X]))
            return u->node;
    return NULL;
}

/* x, scale, mean, var, dscale, dbias of a norm's gradient; *sums: what makes the last two, if that
 * is new. */
static bool read_gradient(fac_graph *g, const fac_node *n, fac_value **to, fac_node **sums) {
    enum { EACH = 6 };
    to[0] = n->in[X];
    *sums = NULL;
    if (is_given(n)) {
        for (int k = 1; k < EACH; k++) to[k] = n->in[1 + k];
        return true;
    }
    char how[48];
    snprintf(how, sizeof how, "epsilon=%.17g", fac_attr_real(n, "epsilon", 0));
    to[1] = n->in[2];
    to[2] = fac_value_other(n->in[X], 1);
    to[3] = fac_value_other(n->in[X], 2);
    fac_value *args[] = { n->in[X], n->in[1], to[2], to[3] };
    to[4] = fac_apply(g, &fac_op_batch_norm_sums, how, 4, args);
    if (!to[4]->node) return false;
    to[5] = fac_value_other(to[4], 1);
    *sums = to[4]->node;
    return true;
}

static void fuse_gradients(fac_graph *g, fac_node *n, fac_price *price, void *self) {
    enum { EACH = 6, PORTS = 1 + 2 * EACH };
    fac_node *of[2] = { n, fits(n) ? partner_of(n) : NULL }, *sums[2];
    fac_value *args[PORTS] = { n->in[1] };
    if (!of[1]) return;
    double before = 0, after = 0;
    for (int which = 0; which < 2; which++) {
        if (!read_gradient(g, of[which], args + 1 + which * EACH, &sums[which])) return;
        before += price(self, of[which]);
        if (sums[which]) after += price(self, sums[which]);
    }
    char how[96];
    snprintf(how, sizeof how, "epsilon=%.17g other_epsilon=%.17g",
             fac_attr_real(of[0], "epsilon", 0), fac_attr_real(of[1], "epsilon", 0));
    fac_value *dx = fac_apply(g, &fac_op_batch_norm_grad_pair, how, PORTS, args);
    if (!dx->node || !(after + price(self, dx->node) <= before)) return;
    fac_node_stands_for(dx->node, n);
    for (int which = 0; which < 2; which++) {
        fac_replace(of[which]->out[0], dx->node->out[which]);
        if (!sums[which]) continue;
        fac_node_stands_for(sums[which], of[which]);
        for (int k = 1; k < of[which]->nout; k++)
            fac_replace(of[which]->out[k], sums[which]->out[k - 1]);
    }
}

static void visit(fac_graph *to, fac_node *n, const fac_judge *by) {
    const bool norm = FAC_IS(n, batch_norm_given) || FAC_IS(n, batch_norm_given_relu);
    if (norm && n->out[0]->time == FAC_RUN)
        fuse(to, n, by->price, by->self);
    else if (fits(n))
        fuse_gradients(to, n, by->price, by->self);
}

fac_graph *fac_pass_norm_pairs(const fac_graph *g, fac_price *price, void *self) {
    return fac_pass_each(g, visit, &(fac_judge){ .price = price, .self = self });
}
