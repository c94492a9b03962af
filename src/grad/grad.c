/* Reverse mode: d loss / d wrt as ordinary ops in the same graph, so gradients can be
 * differentiated, fused, planned and exported like anything else.  Nodes are visited backwards;
 * each op's .grad emits the gradients of its inputs from those of its outputs, only where something
 * that is asked for lies after that input.  An op without .grad is differentiated through its
 * expansion: the expansion is emitted for its gradient alone, the forward node stays as it is. */
#include <string.h>
#include "base/memory.h"
#include "facula/ops.h"
#include "grad/reverse.h"

/* value->mark: on a path from what is asked for. */
static char wanted;

typedef fac_reverse reverse;

static bool is_wanted(const fac_value *v) { return v && v->mark == &wanted; }

bool fac_needs(const fac_node *n, int input) { return input < n->nin && is_wanted(n->in[input]); }

static bool differentiable(const fac_value *v) { return fac_dtype_get(v->type.dtype)->kind == 'f'; }

static fac_value **slot(reverse *r, const fac_value *v) {
    size_t before = r->room;
    if (!fac_reserve(&r->d, &r->room, (size_t)v->id + 1, sizeof *r->d)) {
        fac_graph_raise(r->g, FAC_E_NOMEM, "no memory for gradients");
        return NULL;
    }
    if (r->room > before) memset(r->d + before, 0, (r->room - before) * sizeof *r->d);
    return &r->d[v->id];
}

static fac_value *gradient_of(const reverse *r, const fac_value *v) {
    return v->id < r->room ? r->d[v->id] : NULL;
}

static void add_to(reverse *r, const fac_value *v, fac_value *dv) {
    fac_value **s = slot(r, v);
    if (s) *s = *s ? fac_add(*s, dv) : dv;
}

/* Marks what the node makes when one of its inputs is wanted; what was asked for itself keeps
 * its mark. */
static void spread(fac_node *n) {
    bool any = false;
    for (int i = 0; i < n->nin; i++) any |= is_wanted(n->in[i]);
    any = any && !(n->op->is & FAC_OP_NO_GRAD);
    for (int k = 0; k < n->nout; k++)
        if (any && differentiable(n->out[k])) n->out[k]->mark = &wanted;
}

static bool visit(reverse *r, fac_node *n);

/* The graph has an error then: there is no more to say. */
static bool no_memory(const fac_node *n) {
    fac_graph_raise(n->graph, FAC_E_NOMEM, "no memory for the gradient of %s", n->op->name);
    return true;
}

/* The gradient through the expansion: its nodes are those that come to be while it is emitted. */
static bool through_expansion(reverse *r, const fac_node *n, fac_value *const dy[]) {
    fac_graph *g = r->g;
    fac_node *before = g->last;
    fac_value **y = fac_arena_alloc(&g->arena, (size_t)n->nout, sizeof *y);
    if (!y) return no_memory(n);
    n->op->expand(n, y);
    if (g->error.status) return true;
    for (fac_node *m = before->next; m; m = m->next) spread(m);
    fac_node *last = g->last;
    for (int k = 0; k < n->nout; k++)
        if (dy[k] && y[k]) add_to(r, y[k], dy[k]);
    /* backwards over the new nodes; what visiting emits comes after `last` */
    for (fac_node *m = last; m != before && !g->error.status; m = m->prev)
        if (!visit(r, m)) return false;
    return true;
}

/* false: the node has no gradient and should have one. */
static bool visit(reverse *r, fac_node *n) {
    fac_value **dy = fac_arena_alloc(&r->g->arena, (size_t)n->nout + (size_t)n->nin, sizeof *dy);
    bool any = false, asked = false;
    if (!dy) return no_memory(n);
    fac_value **dx = dy + n->nout;
    for (int k = 0; k < n->nout; k++) any |= (dy[k] = gradient_of(r, n->out[k])) != NULL;
    for (int i = 0; i < n->nin; i++) asked |= fac_needs(n, i);
    if (!any || !asked || (n->op->is & FAC_OP_NO_GRAD)) return true;
    if (!n->op->grad || (n->op->grads && !n->op->grads(n, dy)))
        return fac_node_expands(n) ? through_expansion(r, n, dy) : false;
    const char *scope = r->g->scope;
    r->g->scope = n->scope; /* gradients carry the name of what they are gradients of */
    n->op->grad(n, dy, dx);
    r->g->scope = scope;
    for (int i = 0; i < n->nin && !r->g->error.status; i++) {
        if (!dx[i] || !is_wanted(n->in[i])) continue;
        if (dx[i]->type.dtype != n->in[i]->type.dtype ||
            dx[i]->type.dims.n != n->in[i]->type.dims.n) {
            fac_fail(n, FAC_E_INTERNAL, "its gradient for input %d has %d dims and type %s", i,
                     dx[i]->type.dims.n, fac_dtype_get(dx[i]->type.dtype)->name);
            return true;
        }
        add_to(r, n->in[i], dx[i]);
    }
    return true;
}

/* ---- one node at a time ---- */

static void unmark(fac_value *v) {
    if (v) v->mark = NULL;
}

static void forget(reverse *r, const fac_value *v) {
    if (v && v->id < r->room) r->d[v->id] = NULL;
}

/* What the node's inputs have got; a value that is two inputs gives its gradient to the first. */
static void gather(reverse *r, const fac_node *n, fac_value *dx[]) {
    for (int i = 0; i < n->nin; i++) {
        dx[i] = n->in[i] ? gradient_of(r, n->in[i]) : NULL;
        forget(r, n->in[i]);
    }
}

bool fac_reverse_node(fac_reverse *r, fac_node *n, const bool needs[], fac_value *const dy[],
                      fac_value *dx[]) {
    fac_node *last = r->g->last;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && needs[i]) n->in[i]->mark = &wanted;
    for (int k = 0; k < n->nout; k++)
        if (dy[k]) add_to(r, n->out[k], dy[k]);
    const bool known = visit(r, n);
    gather(r, n, dx);
    for (int k = 0; k < n->nout; k++) forget(r, n->out[k]);
    for (int i = 0; i < n->nin; i++) unmark(n->in[i]);
    for (fac_node *m = last ? last->next : r->g->first; m; m = m->next)
        for (int k = 0; k < m->nout; k++) unmark(m->out[k]);
    return known;
}

void fac_reverse_end(fac_reverse *r) {
    fac_release(r->d);
    *r = (fac_reverse){ 0 };
}

static fac_value *zeros_like(fac_value *v) {
    return fac_expand_to(fac_number(v->graph, v->type.dtype, 0), fac_shape_of(v));
}

void fac_grad(fac_value *loss, int n, fac_value *const wrt[], fac_value *grads[]) {
    fac_graph *g = loss->graph;
    fac_value *seed;
    for (int i = 0; i < n; i++) grads[i] = g->poison;
    if (g->error.status) return;
    if (!differentiable(loss) || loss->type.dims.n != 0) {
        fac_graph_raise(
            g, FAC_E_SHAPE,
            "fac_grad: the loss must be one floating-point number, it has %d dims and type %s",
            loss->type.dims.n, fac_dtype_get(loss->type.dtype)->name);
        return;
    }
    for (size_t i = 0; i < g->ninputs; i++) g->inputs[i]->mark = NULL;
    for (size_t i = 0; i < g->nparams; i++) g->params[i]->mark = NULL;
    for (size_t i = 0; i < g->nconsts; i++) g->consts[i]->mark = NULL;
    for (fac_node *m = g->first; m; m = m->next)
        for (int k = 0; k < m->nout; k++) m->out[k]->mark = NULL;
    for (int i = 0; i < n; i++) {
        if (!wrt[i] || wrt[i]->graph != g) {
            fac_graph_raise(g, FAC_E_ARGUMENT, "fac_grad: value %d belongs to another graph", i);
            return;
        }
        if (differentiable(wrt[i])) wrt[i]->mark = &wanted;
    }
    for (fac_node *m = g->first; m; m = m->next) spread(m);
    reverse r = { g, NULL, 0 };
    seed = fac_number(g, loss->type.dtype, 1);
    add_to(&r, loss, seed);
    for (fac_node *m = loss->node; m && !g->error.status; m = m->prev)
        if (!visit(&r, m)) fac_fail(m, FAC_E_UNSUPPORTED, "%s has no gradient", m->op->name);
    for (int i = 0; i < n && !g->error.status; i++) {
        fac_value *d = gradient_of(&r, wrt[i]);
        grads[i] = d ? d : zeros_like(wrt[i]);
    }
    if (g->error.status)
        for (int i = 0; i < n; i++) grads[i] = g->poison;
    fac_release(r.d);
}
