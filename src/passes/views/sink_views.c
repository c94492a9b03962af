/* y = add(reshape(product), residual)  becomes  reshape(add(product, reshape(residual))):
 * elementwise ops stand right after the product that they can join, and what only renames places
 * goes after them.  So are transposes that move dims of one.
 *
 * y = add(transpose(product), residual)  becomes  transpose(add(product, back(residual))) likewise,
 * where values of either order may lie in one layout: images whose channels are last for products
 * and first for convolutions. */
#include "facula/ops.h"
#include "op_list.h"
#include "ops/transpose.h"
#include "passes/common/casts.h"
#include "passes/passes.h"
#include "passes/common/single.h"

enum { OPERANDS = 8, DEPTH = 4, ROUNDS = 4 };

static bool is_product(const fac_node *n) {
    static const fac_op *const names[] = { &fac_op_linear, &fac_op_gemm, &fac_op_matmul, NULL };
    return n && fac_op_is_one_of(n->op, names);
}

static bool is_elementwise(const fac_node *n) {
    return (n->op->map && !n->body[0] && n->nout == 1) || fac_is_float_cast(n);
}

/* A product, or what elementwise ops make of one: the epilogue may take them all. */
static bool ends_in_product(const fac_node *n, int depth) {
    if (is_product(n)) return true;
    if (!n || !depth || !is_elementwise(n)) return false;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && fac_used_once(n->in[i]) && ends_in_product(n->in[i]->node, depth - 1))
            return true;
    return false;
}

/* Do the elements of n's result follow each other as those of its input? */
static bool keeps_order(const fac_node *n) {
    const fac_dims *d = &n->out[0]->type.dims;
    if (!n->op->view || n->nin < 1 || n->nout != 1 || !n->in[0]) return false;
    const fac_layout x = fac_layout_plain(&n->in[0]->type.dims);
    fac_layout y;
    if (!n->op->view(n, &x, &y) || y.offset ||
        fac_dims_count(d) != fac_dims_count(&n->in[0]->type.dims))
        return false;
    int64_t step = 1;
    for (int k = d->n - 1; k >= 0; step *= d->d[k--])
        if (d->d[k] != 1 && y.stride[k] != step) return false;
    return true;
}

/* The product that v is a view of, through what nothing else reads; NULL: there is none, or v is
 * its result itself. */
static fac_value *product_of(fac_both v) {
    const fac_value *first = v.now;
    while (v.now->node && v.was->node && v.now->node->op == v.was->node->op &&
           fac_used_once(v.was)) {
        if (ends_in_product(v.was->node, DEPTH))
            return v.now == first || v.now->index ? NULL : v.now;
        if (!keeps_order(v.now->node)) return NULL;
        v = fac_both_in(v, 0);
    }
    return NULL;
}

/* The operand v of an elementwise op with the dims `from`, for one with the dims `to`; NULL: it
 * must be copied for that. */
static fac_value *operand(fac_value *v, const fac_dims *from, const fac_dims *to) {
    const fac_dims *d = &v->type.dims;
    const int64_t count = fac_dims_count(d);
    if (count == 1 && v->leaf == FAC_CONST) return v;
    if (fac_dims_equal(d, from)) {
        const bool strided = v->node && v->node->op->view && !keeps_order(v->node);
        return strided ? NULL : fac_reshape_sizes(v, *to);
    }
    if (!d->n || !from->n || !to->n) return NULL;
    const int64_t last = d->d[d->n - 1];
    if (count != last || last != from->d[from->n - 1] || last != to->d[to->n - 1]) return NULL;
    return d->n == 1 ? v : fac_reshape_sizes(v, fac_shape(last));
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    bool *sunk = self;
    fac_value *args[OPERANDS], *made[1], *p = NULL;
    if (!is_elementwise(n) || n->nin > OPERANDS || n->out[0]->time != FAC_RUN) return false;
    const fac_dims *dims = &n->out[0]->type.dims;
    int at = -1;
    for (int i = 0; i < n->nin && !p; i++)
        if (in[i] && fac_dims_equal(&in[i]->type.dims, dims)) {
            p = product_of((fac_both){ n->in[i], in[i] });
            at = i;
        }
    if (!p || fac_dims_count(dims) <= 0) return false;
    for (int i = 0; i < n->nin; i++) {
        args[i] = i == at ? p : NULL;
        if (in[i] && i != at) args[i] = operand(in[i], dims, &p->type.dims);
        if (in[i] && !args[i]) return false;
    }
    fac_node_copy(to, n, args, made);
    out[0] = fac_reshape_sizes(made[0], *dims);
    *sunk = true;
    return true;
}

/* ---- transposes ---- */

/* Dim k of a transpose's result is dim perm[k] of its operand. */
static bool transpose_of(const fac_node *n, fac_dims *perm, fac_dims *back) {
    if (!fac_transpose_order(n, perm)) return false;
    back->n = perm->n;
    for (int k = 0; k < perm->n; k++) back->d[perm->d[k]] = k;
    return true;
}

/* The operand v, of the dims after the transpose, for an op before it; NULL: it must be copied. */
static fac_value *transposed_back(fac_value *v, const fac_node *transpose, const fac_dims *back) {
    fac_dims d = { .n = back->n }, perm, other;
    const fac_dims *from = &v->type.dims;
    if (fac_dims_count(from) == 1 && v->leaf == FAC_CONST) return v;
    if (fac_dims_equal(from, &transpose->out[0]->type.dims)) {
        if (v->node && transpose_of(v->node, &perm, &other) && fac_dims_equal(&other, back))
            return v->node->in[0];
        return v->time == FAC_RUN ? fac_transpose(v, *back) : NULL;
    }
    const int lacks = back->n - from->n;
    if (lacks < 0 || v->time == FAC_RUN) return NULL;
    for (int k = 0; k < back->n; k++) {
        const int64_t at = back->d[k] - lacks;
        d.d[k] = at < 0 ? 1 : from->d[at];
    }
    const int64_t last = d.d[d.n - 1];
    return last == fac_dims_count(from) ? fac_reshape_sizes(v, fac_shape(last)) : NULL;
}

static bool visit_transposes(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                             fac_value *out[]) {
    bool *sunk = self;
    fac_value *args[OPERANDS], *made[1];
    fac_dims perm, back;
    int at = -1;
    if (!is_elementwise(n) || n->nin > OPERANDS || n->out[0]->time != FAC_RUN) return false;
    for (int i = 0; i < n->nin && at < 0; i++) {
        const fac_both v = { n->in[i], in[i] };
        if (in[i] && fac_dims_equal(&in[i]->type.dims, &n->out[0]->type.dims) &&
            fac_both_made_by(v, &fac_op_transpose) && fac_used_once(v.was) &&
            ends_in_product(v.was->node->in[0]->node, DEPTH))
            at = i;
    }
    if (at < 0 || !transpose_of(in[at]->node, &perm, &back) ||
        fac_dims_count(&n->out[0]->type.dims) <= 0)
        return false;
    for (int i = 0; i < n->nin; i++) {
        args[i] = i == at ? in[at]->node->in[0]
                  : in[i] ? transposed_back(in[i], in[at]->node, &back)
                          : NULL;
        if (in[i] && !args[i]) return false;
    }
    fac_node_copy(to, n, args, made);
    out[0] = fac_transpose(made[0], perm);
    *sunk = true;
    return true;
}

/* Again for what stands after a view that has just gone after its op. */
static fac_graph *again(const fac_graph *g, fac_rebuild pass) {
    bool sunk = false;
    pass.self = &sunk;
    fac_graph *to = fac_graph_rebuild(g, &pass, NULL);
    for (int i = 1; i < ROUNDS && sunk && to && !to->error.status; i++) {
        sunk = false;
        fac_graph *next = fac_graph_rebuild(to, &pass, NULL);
        fac_graph_free(to);
        to = next;
    }
    return to;
}

fac_graph *fac_pass_sink_views(const fac_graph *g) {
    return again(g, (fac_rebuild){ .visit = visit });
}

fac_graph *fac_pass_sink_transposes(const fac_graph *g) {
    return again(g, (fac_rebuild){ .visit = visit_transposes });
}
