/* Ops that give the same elements in the same order other dims, and what computes these dims.
 *
 * A chain of reshape, flatten, squeeze and unsqueeze is one reshape, or nothing when the dims are
 * those of the beginning.  Its shape is spelled without any computation wherever ONNX can: numbers,
 * 0 for "as in x" and one -1.  So the Shape, Gather, Unsqueeze and Concat that exporters write for
 * a batch of open size are read by nobody any more.  Lists of sizes that are still read come from
 * the shape of an input, one node each.  Preserves every bit. */
#include <stdio.h>
#include "base/memory.h"
#include "facula/ops.h"
#include "op_list.h"
#include "ops/reshapes.h"
#include "graph/attr.h"
#include "passes/common/frozen.h"
#include "passes/passes.h"

/* Transposing that moves dims of 1 only. */
static bool keeps_order(const fac_node *n) {
    const fac_attr *a = fac_attr_find(n->op, "perm");
    const fac_dims *x = &n->in[0]->type.dims,
                   *perm = (const fac_dims *)(const void *)((const char *)n->attrs + a->at);
    int64_t last = -1;
    for (int k = 0; k < x->n; k++) {
        int64_t from = perm->n ? perm->d[k] : x->n - 1 - k;
        if (from < 0) from += x->n;
        if (x->d[from] == 1) continue;
        if (from < last) return false;
        last = from;
    }
    return true;
}

static bool is_flat(const fac_node *n) {
    if (FAC_IS(n, transpose)) return keeps_order(n);
    return fac_node_reshapes(n);
}

/* Whether -1 is a whole number: what a run would refuse is left to the run.  Dims that are copied
 * cancel: an empty x[N] has no elements for [N,6,K] either. */
static bool divides(const fac_dims *x, const fac_dims *list) {
    size_t count = 1, rest = 1;
    for (int k = 0; k < x->n; k++) {
        const bool copied = k < list->n && list->d[k] == 0;
        if (!copied && x->d[k] < 0) return true; /* as many as a run says */
        if (!copied && !fac_size_mul(count, (size_t)x->d[k], &count)) return false;
    }
    for (int k = 0; k < list->n; k++)
        if (list->d[k] > 0 && !fac_size_mul(rest, (size_t)list->d[k], &rest)) return false;
    return count % rest == 0;
}

/* The shape operand that gives dims y to a value of dims x. */
static bool spelled(const fac_dims *x, const fac_dims *y, fac_dims *list) {
    bool open = false, empty = false;
    *list = (fac_dims){ .n = y->n };
    for (int k = 0; k < y->n; k++) {
        const int64_t d = y->d[k];
        const bool same = k < x->n && x->d[k] == d;
        empty |= d == 0;
        if (d > 0)
            list->d[k] = d;
        else if (same)
            list->d[k] = 0;
        else if (d == 0 || open)
            return false;
        else {
            list->d[k] = -1;
            open = true;
        }
    }
    const int64_t count = fac_dims_count(x);
    int64_t rest = 1;
    for (int k = 0; k < y->n && count > 0; k++) { /* what a run would refuse is left to the run */
        if (list->d[k] <= 0) continue;
        if (list->d[k] > count / rest) return false;
        rest *= list->d[k];
    }
    if (open && !divides(x, list)) return false;
    return !(open && empty); /* beside 0 elements -1 could be any size */
}

static bool reshaped(fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    fac_dims list;
    fac_contents c;
    fac_value *x = in[0];
    while (is_flat(x->node)) x = x->node->in[0];
    const bool computed = FAC_IS(n, reshape) && !fac_known_numbers(in[1], &c);
    if (!is_flat(n) || (x == in[0] && !computed)) return false;
    fac_node_copy(to, n, in, out); /* for its dims; nothing reads it when it is not needed */
    const fac_dims *y = &out[0]->type.dims;
    if (fac_dims_equal(&x->type.dims, y))
        out[0] = x;
    else if (spelled(&x->type.dims, y, &list)) {
        const fac_dims want = *y;
        fac_value *v = fac_reshape(x, list);
        if (!fac_dims_equal(&v->type.dims, &want)) return true;
        fac_named_like(v, n);
        out[0] = v;
    }
    return true;
}

/* ---- softmax as it was before opset 13 ---- */

/* unflatten(softmax(flatten(x))) over the last dim of two is one along a dim of x, when all after
 * that one are 1. */
static bool softmaxed(const fac_node *n, fac_value *const in[], fac_value *out[]) {
    const fac_node *s = in[0]->node;
    if (!is_flat(n) || !(FAC_IS(s, softmax) || FAC_IS(s, log_softmax))) return false;
    if (!s->in[0]->node || !is_flat(s->in[0]->node)) return false;
    fac_value *x = s->in[0]->node->in[0];
    const fac_dims *flat = &s->in[0]->type.dims, *d = &x->type.dims;
    int axis = d->n - 1;
    while (axis > 0 && d->d[axis] == 1) axis--;
    if (flat->n != 2 || axis < 0 || fac_axis(fac_attr_int(s, "axis", -1), 2) != 1 ||
        flat->d[1] != d->d[axis])
        return false;
    if (flat->d[1] < 0 || !fac_dims_equal(d, &n->out[0]->type.dims)) return false;
    out[0] = FAC_IS(s, softmax) ? fac_softmax(x, axis) : fac_log_softmax(x, axis);
    fac_named_like(out[0], s);
    return true;
}

/* ---- lists of sizes ---- */

/* An input of which these sizes are consecutive dims, and the first of them. */
static fac_value *with_run(const fac_graph *g, const fac_contents *c, int *start) {
    for (size_t i = 0; i < g->ninputs; i++) {
        const fac_dims *d = &g->inputs[i]->type.dims;
        for (*start = 0; *start + c->n <= d->n; ++*start) {
            int k = 0;
            while (k < c->n && d->d[*start + k] == c->v[k]) k++;
            if (k == c->n) return g->inputs[i];
        }
    }
    return NULL;
}

static bool listed(fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    fac_contents c;
    char text[64];
    int start;
    if (n->nout != 1 || n->out[0]->type.dtype != FAC_I64 || n->out[0]->type.dims.n != 1 ||
        !n->out[0]->known)
        return false;
    if (FAC_IS(n, shape) && in[0]->leaf == FAC_INPUT) return false;
    fac_node_copy(to, n, in, out);
    if (!fac_known(out[0], &c) || !c.n || !c.symbolic) return true;
    fac_value *from = with_run(to, &c, &start);
    void *attrs = from ? fac_arena_alloc(&to->arena, 1, fac_op_shape.attrs_size) : NULL;
    if (!attrs) return true;
    snprintf(text, sizeof text, "start=%d without=%d", start, from->type.dims.n - start - c.n);
    if (fac_attrs_parse(&fac_op_shape, text, &to->arena, attrs, NULL)) return true;
    fac_value *v = fac_emit(&fac_op_shape, attrs, 1, &from);
    if (!v->node) return true;
    fac_named_like(v, n);
    out[0] = v;
    return true;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    (void)self;
    if (!n->nin || !in[0]) return false;
    return softmaxed(n, in, out) || reshaped(to, n, in, out) || listed(to, n, in, out);
}

fac_graph *fac_pass_shapes(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL);
}
