/* See problem.h. */
#include "backends/problem.h"
#include <stdio.h>
#include <string.h>
#include "base/memory.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "ops/reduce.h"
#include "ops/shape.h"

bool fac_known_move_of(const fac_problem *p, int k, fac_known_move *to) {
    if (p->nin > FAC_MOVE_INPUTS) return false;
    memset(to->in, 0, sizeof to->in);
    to->in[0].type = p->in[0].type;
    for (int i = 1; i < p->nin; i++) {
        const fac_contents *c = p->in[i].known;
        if (p->in[i].type.dtype == FAC_NONE) continue;
        if (!c || c->symbolic) return false;
        memcpy(to->contents[i], c->v, sizeof to->contents[i]);
        to->in[i] = (fac_array){ .type = p->in[i].type, .i = to->contents[i] };
    }
    to->move = (fac_move){ p->node->attrs, p->nin, k, to->in, p->out[k].type.dims };
    return true;
}

bool fac_known_pads(const fac_problem *p, int pads, int axes, int64_t before[FAC_DIMS]) {
    const fac_contents *c = p->in[pads].known, *a = NULL;
    const int rank = p->out[0].type.dims.n;
    if (!c || c->symbolic) return false;
    if (p->nin > axes && p->in[axes].type.dtype != FAC_NONE) {
        a = p->in[axes].known;
        if (!a || a->symbolic) return false;
    }
    for (int k = 0; k < FAC_DIMS; k++) before[k] = 0;
    for (int k = 0; k < c->n / 2; k++) {
        const int axis = a ? fac_axis(a->v[k], rank) : k;
        if (axis < 0 || axis >= rank) return false;
        before[axis] = c->v[k];
    }
    return true;
}

/* The body without its product: that becomes the last input. */
static bool without_product(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                            fac_value *out[]) {
    (void)in;
    if (n != self) return false;
    out[0] = fac_input(to, "product", n->out[0]->type.dtype, n->out[0]->type.dims);
    return true;
}

fac_graph *fac_after_product(const fac_node *n) {
    fac_graph *body = fac_graph_rebuild(
        n->body[0], &(fac_rebuild){ .self = n->body[0]->first, .visit = without_product }, NULL);
    fac_graph *rest = fac_graph_new();
    fac_value **in = fac_alloc((size_t)n->nin + 1, sizeof *in);
    char name[24];
    const bool good =
        body && rest && in && !body->error.status && body->ninputs == (size_t)n->nin + 1;
    for (size_t i = 0; good && i < body->ninputs; i++) {
        snprintf(name, sizeof name, "x%zu", i);
        in[i] = fac_input(rest, name, body->inputs[i]->type.dtype, body->inputs[i]->type.dims);
    }
    if (good)
        fac_emit_body(rest, &fac_op_fused, NULL, n->nin + 1, n->nin + 1, in, body, NULL);
    else
        fac_graph_free(body);
    fac_release(in);
    if (good && !rest->error.status && rest->last) return rest;
    fac_graph_free(rest);
    return NULL;
}

void fac_lay_in_order(const fac_operand *x, fac_operand *y) {
    const fac_dims *d = &y->type.dims;
    bool placed[FAC_DIMS] = { false };
    int64_t step = 1;
    if (x->type.dims.n != d->n || x->layout.block || y->layout.block || fac_dims_count(d) <= 0)
        return;
    fac_layout l = fac_layout_plain(d);
    for (int turn = 0; turn < d->n; turn++) {
        int next = -1; /* the innermost dim of those that are left; of one, the outermost */
        for (int k = d->n - 1; k >= 0; k--) {
            if (placed[k]) continue;
            if (d->d[k] != 1 && x->layout.stride[k] <= 0) return;
            const bool longer = next >= 0 && d->d[next] != 1;
            if (next < 0 ||
                (d->d[k] != 1 && (!longer || x->layout.stride[k] < x->layout.stride[next])))
                next = k;
        }
        placed[next] = true;
        l.stride[next] = step;
        step *= d->d[next];
    }
    y->layout = l;
}

bool fac_problem_axes(const fac_problem *p, unsigned *mask) {
    if (!FAC_IS(p->node, sum_like)) return fac_reduce_axes(p->node, mask);
    const fac_dims *x = &p->in[0].type.dims, *y = &p->out[0].type.dims;
    *mask = 0;
    for (int k = 0, lead = x->n - y->n; k < x->n; k++)
        if (k < lead || (y->d[k - lead] == 1 && x->d[k] != 1)) *mask |= 1u << k;
    return true;
}
