/* The gradient of relu after a residual add reads the add's result for its mask alone:
 *
 *     y = relu(norm(x) + shortcut)  ...  conv2d_grad_x_norm(.., y) lo=0
 *
 * The norm keeps what relu let pass as bits (batch_norm_given_relu), and the gradient reads these:
 * a 16th of the bytes of f32. Done where kernels take both.  Preserves every bit but of f16 numbers
 * below its least. */
#include <math.h>
#include "facula/ops.h"
#include "op_list.h"
#include "ops/batch_norm_given.h"
#include "ops/bits.h"
#include "graph/attr.h"
#include "passes/common/each.h"
#include "passes/passes.h"

enum { ADD = FAC_NORM_GIVEN, MASK = 3, GRAD_PORTS = 11, GRAD_Y = 9, GRAD_MASK = 10 };

/* norm's body is relu, or relu of a sum with *add. */
static bool read_body(const fac_node *norm, fac_value **add) {
    const fac_graph *body = norm->body[0];
    *add = NULL;
    if (!FAC_IS(norm, batch_norm_given) || norm->nports != FAC_NORM_GIVEN || !body) return false;
    const fac_value *v = body->outputs[0].value;
    if (!FAC_IS(v->node, relu)) return false;
    v = v->node->in[0];
    if (v == body->inputs[0]) return norm->nin == norm->nports;
    const fac_node *sum = v->node;
    if (!FAC_IS(sum, add) || body->ninputs != 2 || norm->nin != norm->nports + 1) return false;
    const fac_value *const *in = (const fac_value *const *)body->inputs;
    *add = norm->in[norm->nports];
    return (sum->in[0] == in[0] && sum->in[1] == in[1]) ||
           (sum->in[0] == in[1] && sum->in[1] == in[0]);
}

/* norm with bits, which nothing reads yet; NULL: it has another body, or no kernel takes it. */
static fac_node *with_bits(const fac_node *norm, fac_price *price, void *self) {
    fac_value *args[ADD + 1];
    if (!read_body(norm, &args[ADD])) return NULL;
    const fac_type *x = &norm->in[0]->type;
    if (x->dims.n != 4 || x->dims.d[1] % FAC_BITS) return NULL;
    if (args[ADD] &&
        (args[ADD]->type.dtype != x->dtype || !fac_dims_equal(&args[ADD]->type.dims, &x->dims)))
        return NULL;
    for (int k = 0; k < ADD; k++) args[k] = norm->in[k];
    fac_value *y = fac_emit(&fac_op_batch_norm_given_relu, norm->attrs, ADD + 1, args);
    return y->node && price(self, y->node) < INFINITY ? y->node : NULL;
}

static void fuse(fac_node *n, fac_price *price, void *self) {
    fac_value *y = n->nin > GRAD_Y ? n->in[GRAD_Y] : NULL, *args[GRAD_PORTS] = { NULL };
    if (!y || !y->node || y->index || n->body[0]) return;
    if (fac_attr_real(n, "lo", 1) != 0 || fac_attr_real(n, "hi", 0) < INFINITY) return;
    fac_node *norm = y->node;
    const bool has_bits = FAC_IS(norm, batch_norm_given_relu);
    fac_node *to = has_bits ? norm : with_bits(norm, price, self);
    if (!to) return;
    for (int k = 0; k < GRAD_Y; k++) args[k] = n->in[k];
    args[GRAD_MASK] = to->out[MASK];
    fac_value *dx = fac_emit(n->op, n->attrs, GRAD_PORTS, args);
    if (!dx->node || !(price(self, dx->node) < INFINITY)) return;
    fac_node_stands_for(dx->node, n);
    for (int k = 0; k < n->nout; k++) fac_replace(n->out[k], dx->node->out[k]);
    if (has_bits) return;
    fac_node_stands_for(to, norm);
    for (int k = 0; k < norm->nout; k++) fac_replace(norm->out[k], to->out[k]);
}

static void visit(fac_graph *to, fac_node *n, const fac_judge *by) {
    (void)to;
    if (FAC_IS(n, conv2d_grad_x_norm) && n->out[0]->time == FAC_RUN) fuse(n, by->price, by->self);
}

fac_graph *fac_pass_norm_masks(const fac_graph *g, fac_price *price, void *self) {
    return fac_pass_each(g, visit, &(fac_judge){ .price = price, .self = self });
}
