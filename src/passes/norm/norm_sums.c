/* The gradient of a batch norm of training begins with two sums over dy.  Where dy comes from a
 * convolution's gradient by x,
 *
 *     dy = where(y > lo, conv2d_grad_x(...) + add, 0)          the epilogue that epilogue.c made;
 *         each part may be missing
 *
 * that node gives the sums as well (conv2d_grad_x_norm), and the norm's gradient takes them
 * (batch_norm_grad_given).  y > lo is seen from the norm's own x where the activation stands
 * directly after it: then y need not be read.  Done where both nodes together are about as cheap as
 * before: the norm's gradient reads x and dy once less, the convolution's x once more.
 *
 * Where add is the gradient of a strided convolution of 1 x 1, as a residual's shortcut has, most
 * of it is zeros: then it is made and added without them. */
#include <math.h>
#include <stdint.h>
#include "facula/ops.h"
#include "op_list.h"
#include "graph/attr.h"
#include "passes/common/each.h"
#include "passes/passes.h"
#include "passes/common/single.h"

enum { PORTS = 10, GRAD_PORTS = 3 };

/* Estimates are no better than that; a launch and a pass over memory less are worth it beside what
 * runs on another queue. */
#define ABOUT 1.1

/* What the epilogue of a gradient by x adds, and what it is masked by. */
typedef struct epilogue {
    fac_value *add, *y;
    double lo;
} epilogue;

/* The operand of conv that input v of its body is; NULL: what it made itself, or no input. */
static fac_value *operand_of(const fac_node *conv, const fac_value *v) {
    const fac_graph *body = conv->body[0];
    for (size_t i = 1; i < body->ninputs; i++)
        if (body->inputs[i] == v) return conv->in[conv->nports + (int)i - 1];
    return NULL;
}

static bool read_epilogue(const fac_node *conv, epilogue *e) {
    *e = (epilogue){ NULL, NULL, -INFINITY };
    if (!conv->body[0]) return true;
    const fac_graph *body = conv->body[0];
    const fac_value *v = body->outputs[0].value;
    double zero;
    if (FAC_IS(v->node, where)) {
        const fac_node *n = v->node, *test = n->in[0]->node;
        if (!FAC_IS(test, less_or_equal) || !fac_const_number(n->in[1], &zero) || zero != 0)
            return false;
        if (!fac_const_number(test->in[1], &e->lo) || !(e->y = operand_of(conv, test->in[0])))
            return false;
        v = n->in[2];
    }
    if (FAC_IS(v->node, add)) {
        const fac_node *n = v->node;
        const int own = n->in[0] == body->inputs[0] ? 0 : 1;
        if (!(e->add = operand_of(conv, n->in[1 - own]))) return false;
        v = n->in[own];
    }
    return v == body->inputs[0];
}

/* What conv adds, without the zeros that a stride of 1 x 1 leaves, and how far its pixels are
 * apart; *from: what made it.  Else add itself. */
static fac_value *thinned(const fac_node *conv, fac_value *add, fac_node **from, int64_t *apart) {
    enum { HEIGHT = 2, WIDTH };
    fac_node *n = add ? add->node : NULL;
    *from = NULL;
    *apart = 1;
    if (!FAC_IS(n, conv2d_grad_x) || n->body[0] || !fac_used_once(add)) return add;
    const fac_conv2d_opts *own = conv->attrs;
    if (own->stride[0] > 1 || own->stride[1] > 1)
        return add; /* its pixels fall into phases of their own */
    fac_conv2d_opts how = *(const fac_conv2d_opts *)n->attrs;
    const int64_t *kernel = n->in[1]->type.dims.d + HEIGHT, stride = how.stride[0];
    if (kernel[0] != 1 || kernel[1] != 1 || stride < 2 || how.stride[1] != stride || how.auto_pad)
        return add;
    for (int k = 0; k < 4; k++)
        if (how.pad[k]) return add;
    how.stride[0] = how.stride[1] = 1;
    fac_value *x = fac_slice(fac_slice(n->in[2], HEIGHT, 0, INT64_MAX, stride), WIDTH, 0, INT64_MAX,
                             stride); /* a shape */
    fac_value *thin = fac_conv2d_grad_x(n->in[0], n->in[1], x, &how);
    if (!thin->node) return add;
    fac_node_named_as(thin->node, n);
    thin->node->stage = x->node->stage = x->node->in[0]->node->stage = n->stage;
    *from = n;
    *apart = stride;
    return thin;
}

/* y = relu(norm(x)), by a norm with these statistics. */
static bool is_its_relu(const fac_value *y, const fac_value *x, const fac_value *scale) {
    const fac_node *n = y->node;
    if (!FAC_IS(n, batch_norm_given) || y->index != 0 || n->nin != n->nports) return false;
    if (n->in[0] != x || n->in[1] != scale) return false;
    const fac_value *v = n->body[0] ? n->body[0]->outputs[0].value : NULL;
    return v && FAC_IS(v->node, relu) && v->node->in[0] == n->body[0]->inputs[0];
}

/* The norm that made statistics of x its own. */
static const fac_node *norm_of(const fac_value *x, const fac_value *scale) {
    for (const fac_use *u = x->uses; u; u = u->next)
        if (FAC_IS(u->node, batch_norm_given) && u->node->in[0] == x && u->node->in[1] == scale)
            return u->node;
    return NULL;
}

static bool same_type(const fac_value *a, const fac_value *b) {
    return !a || (a->type.dtype == b->type.dtype && fac_dims_equal(&a->type.dims, &b->type.dims));
}

static void fuse(fac_graph *g, fac_node *n, fac_price *price, void *self) {
    fac_value *x = n->in[0], *dy = n->in[1];
    fac_node *conv = dy->node;
    epilogue e;
    fac_text how = { 0 };
    if (!FAC_IS(x->node, conv2d_moments) || x->index != 0 || !FAC_IS(conv, conv2d_grad_x)) return;
    const fac_node *norm = norm_of(x, n->in[2]);
    if (!norm || conv->stage != n->stage || !read_epilogue(conv, &e)) return;
    if (!same_type(e.add, dy) || !same_type(e.y, dy) || !same_type(x, dy)) return;
    if (e.y && is_its_relu(e.y, x, n->in[2]))
        e.y = NULL;
    else if (!e.y && e.lo > -INFINITY)
        return;
    int64_t apart;
    fac_node *shortcut;
    e.add = thinned(conv, e.add, &shortcut, &apart);
    fac_attrs_print(conv->op, conv->attrs, &how);
    fac_text_print(&how, " epsilon=%.17g lo=%.9g hi=inf apart=%lld", fac_attr_real(n, "epsilon", 0),
                   e.lo, (long long)apart);
    fac_value *args[PORTS] = { conv->in[0], conv->in[1],           conv->in[2],
                               x,           fac_value_other(x, 1), fac_value_other(x, 2),
                               n->in[2],    norm->in[2],           e.add,
                               e.y };
    fac_value *d = how.failed ? NULL : fac_apply(g, &fac_op_conv2d_grad_x_norm, how.s, PORTS, args);
    fac_text_free(&how);
    if (!d || !d->node) return;
    fac_value *dscale = fac_value_other(d, 1), *dbias = fac_value_other(d, 2);
    char epsilon[48];
    snprintf(epsilon, sizeof epsilon, "epsilon=%.17g", fac_attr_real(n, "epsilon", 0));
    fac_value *given[] = { x, d, n->in[2], args[4], args[5], dscale, dbias };
    fac_value *dx = fac_apply(g, &fac_op_batch_norm_grad_given, epsilon, 7, given);
    if (!dx->node) return;
    double before = price(self, conv) + price(self, n),
           after = price(self, d->node) + price(self, dx->node);
    if (shortcut) {
        before += price(self, shortcut);
        after += price(self, e.add->node);
    }
    if (!(after <= before * ABOUT)) return;
    fac_node_stands_for(d->node, conv);
    fac_node_stands_for(dx->node, n);
    fac_replace(n->out[0], dx);
    if (n->nout > 1) fac_replace(n->out[1], dscale);
    if (n->nout > 2) fac_replace(n->out[2], dbias);
    fac_replace(dy, d);
}

static void visit(fac_graph *to, fac_node *n, const fac_judge *by) {
    if (FAC_IS(n, batch_norm_grad) && n->out[0]->time == FAC_RUN) fuse(to, n, by->price, by->self);
}

fac_graph *fac_pass_norm_sums(const fac_graph *g, fac_price *price, void *self) {
    return fac_pass_each(g, visit, &(fac_judge){ .price = price, .self = self });
}
