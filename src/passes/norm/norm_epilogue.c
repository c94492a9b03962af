/* Residual add and activation after a batch norm of training become its body, as epilogue.c does
 * it for convolutions; and before its gradient that of relu or relu6, a mask by what the activation
 * made, becomes part of it.
 *
 * A batch norm has other results, its running statistics, which may have been read before the
 * activation comes; so this works on a copy of the graph in place, where fac_replace keeps the
 * order. */
#include <math.h>
#include "facula/ops.h"
#include "op_list.h"
#include "ops/shape.h"
#include "graph/attr.h"
#include "passes/common/each.h"
#include "passes/passes.h"
#include "passes/common/single.h"

static bool trains(const fac_node *n) {
    return FAC_IS(n, batch_norm) && fac_attr_flag(n, "training_mode") && !n->body[0] &&
           n->out[0]->time == FAC_RUN;
}

/* The elementwise op that alone reads v, of v's type; NULL. */
static fac_node *reader(const fac_value *v) {
    fac_node *n = v->node && fac_used_once(v) ? v->uses->node : NULL;
    bool fits =
        n && n->op->map && !n->body[0] && n->nout == 1 && n->out[0]->type.dtype == v->type.dtype;
    return fits && fac_dims_equal(&n->out[0]->type.dims, &v->type.dims) ? n : NULL;
}

static bool activation(const fac_node *n, const fac_value *v) {
    if (FAC_IS(n, relu)) return true;
    if (!FAC_IS(n, clip) || n->in[0] != v) return false;
    for (int i = 1; i < n->nin; i++)
        if (!n->in[i] || n->in[i]->leaf != FAC_CONST || !n->in[i]->tensor) return false;
    return true;
}

/* Inside the body; other: what is added, NULL for an activation. */
static fac_value *inside(fac_graph *body, const fac_node *n, fac_value *v, const fac_value *other) {
    fac_value *in[3] = { v, NULL, NULL }, *out[1] = { NULL };
    if (other) return fac_add(v, fac_input(body, "x1", other->type.dtype, other->type.dims));
    for (int i = 1; i < n->nin && i < 3; i++) in[i] = fac_const(body, n->in[i]->tensor);
    fac_node_copy(body, n, in, out);
    return out[0];
}

static void fuse(fac_graph *g, fac_node *n, fac_accept *accept, void *self) {
    enum { PORTS = 5 };
    fac_value *last = n->out[0], *other = NULL, *args[PORTS + 1];
    fac_node *add = reader(last);
    if (FAC_IS(add, add)) {
        other = add->in[0] == last ? add->in[1] : add->in[0];
        bool alike = fac_dims_equal(&other->type.dims, &last->type.dims) &&
                     other->type.dtype == last->type.dtype;
        if (other == last || !alike) return;
        last = add->out[0];
    }
    fac_node *act = reader(last);
    if (act && !activation(act, last)) act = NULL;
    if (!other && !act) return;

    fac_graph *body = fac_graph_new();
    if (!body) return;
    fac_value *v = fac_input(body, "x0", n->out[0]->type.dtype, n->out[0]->type.dims);
    if (other) v = inside(body, add, v, other);
    if (act) v = inside(body, act, v, NULL);
    fac_output(body, "y", v);
    if (body->error.status || n->nin != PORTS) {
        fac_graph_free(body);
        return;
    }
    for (int i = 0; i < PORTS; i++) args[i] = n->in[i];
    args[PORTS] = other;
    fac_value *y =
        fac_emit_body(g, n->op, n->attrs, PORTS + (other != NULL), PORTS, args, body, NULL);
    if (!y->node || !accept(self, y->node)) return; /* nothing reads it: the sweep takes it away */
    fac_node_named_as(y->node, n);
    for (int k = 1; k < n->nout; k++) fac_replace(n->out[k], y->node->out[k]);
    fac_replace(act ? act->out[0] : last, y);
}

/* What a value is masked by: where(y <= lo, 0, where(y >= hi, 0, dy)), each of them once or not at
 * all. */
typedef struct mask {
    fac_value *dy, *y;
    double lo, hi;
} mask;

static bool read_mask(fac_value *v, mask *m) {
    *m = (mask){ v, NULL, -INFINITY, INFINITY };
    while (m->dy->node && FAC_IS(m->dy->node, where) && fac_used_once(m->dy)) {
        const fac_node *n = m->dy->node, *test = n->in[0]->node;
        double zero, limit;
        const bool above = FAC_IS(test, less_or_equal), below = FAC_IS(test, greater_or_equal);
        if ((!above && !below) || !fac_scalar_known(n->in[1], &zero) || zero != 0 ||
            !fac_scalar_known(test->in[1], &limit))
            break;
        if ((m->y && m->y != test->in[0]) ||
            !fac_dims_equal(&test->in[0]->type.dims, &v->type.dims))
            break;
        if (!fac_dims_equal(&n->in[2]->type.dims, &v->type.dims) ||
            test->in[0]->type.dtype != v->type.dtype)
            break;
        if (above)
            m->lo = fmax(m->lo, limit);
        else
            m->hi = fmin(m->hi, limit);
        m->y = test->in[0];
        m->dy = n->in[2];
    }
    return m->y != NULL;
}

/* batch_norm_grad(x, masked dy, scale) takes the mask itself. */
static void fuse_mask(fac_graph *g, fac_node *n, fac_accept *accept, void *self) {
    mask m;
    char how[128];
    if (n->out[0]->time != FAC_RUN || !read_mask(n->in[1], &m)) return;
    snprintf(how, sizeof how, "epsilon=%.17g lo=%.9g hi=%.9g", fac_attr_real(n, "epsilon", 0), m.lo,
             m.hi);
    fac_value *args[] = { n->in[0], m.dy, n->in[2], m.y };
    fac_value *y = fac_apply(g, &fac_op_batch_norm_act_grad, how, 4, args);
    if (!y->node || !accept(self, y->node)) return;
    fac_node_stands_for(y->node, n);
    for (int k = 0; k < n->nout; k++) fac_replace(n->out[k], y->node->out[k]);
}

static void visit(fac_graph *to, fac_node *n, const fac_judge *by) {
    if (trains(n))
        fuse(to, n, by->accept, by->self);
    else if (FAC_IS(n, batch_norm_grad))
        fuse_mask(to, n, by->accept, by->self);
}

fac_graph *fac_pass_norm_epilogue(const fac_graph *g, fac_accept *accept, void *self) {
    return fac_pass_each(g, visit, &(fac_judge){ .accept = accept, .self = self });
}
