/* softmax(scale q k^T + mask) v, spelled out as exporters do, becomes one attention node, which keeps no matrix of scores.
 *
 * From the last product backwards: a softmax along the last axis, then  add(scores, mask)  or  where(condition, scores, -inf)  or
 * neither, then constant factors, then the product of q and a transposed k, both of which may have constant factors too.  Operands
 * have four dims, or three, whose first is batch and heads together. */
#include <math.h>
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/passes.h"
#include "passes/single.h"

/* A value of the old graph, which knows its readers, and what has become of it. */
typedef struct both { const fac_value *was; fac_value *now; } both;

typedef struct state { fac_accept *accept; void *self; } state;

static bool made_by(both v, const fac_op *op) {
    return fac_node_of(v.was->node, op) && fac_node_of(v.now->node, op) && !v.now->node->body[0];
}
static both input(both v, int i) { return (both){ v.was->node->in[i], v.now->node->in[i] }; }

/* v without its constant factors, which go into *scale.  only: v disappears, so nobody else may read it. */
static both without_factors(both v, bool only, double *scale) {
    for (;;) {
        const bool mul = made_by(v, &fac_op_mul), div = made_by(v, &fac_op_div);
        int which = -1;
        double c = 1;
        for (int i = div ? 1 : 0; i < 2 && (mul || div) && which < 0; i++)
            if (fac_const_number(v.now->node->in[i], &c)) which = i;
        if (which < 0 || c == 0 || !isfinite(c) || (only && !fac_used_once(v.was))) return v;
        const both other = input(v, 1 - which);
        if (other.now->type.dtype != v.now->type.dtype || !fac_dims_equal(&other.now->type.dims, &v.now->type.dims)) return v;
        *scale = mul ? *scale * c : *scale / c;
        v = other;
    }
}

typedef struct parts { both q, k_turned; fac_value *mask; double scale; } parts;

/* The product behind masked scores. */
static bool find_product(both scores, parts *p) {
    p->scale = 1;
    const both s = without_factors(scores, true, &p->scale);
    if (!made_by(s, &fac_op_matmul) || !fac_used_once(s.was)) return false;
    p->q = without_factors(input(s, 0), false, &p->scale);
    p->k_turned = without_factors(input(s, 1), false, &p->scale);
    return true;
}

static bool is_minus_infinity(const fac_value *v) {
    double x;
    return fac_const_number(v, &x) && x == -INFINITY;
}

static bool find_scores(both s, parts *p) {
    if (made_by(s, &fac_op_add) && fac_used_once(s.was)) {
        for (int i = 0; i < 2; i++) {
            p->mask = input(s, 1 - i).now;
            if (fac_dims_equal(&input(s, i).now->type.dims, &s.now->type.dims) && find_product(input(s, i), p)) return true;
        }
        return false;
    }
    if (made_by(s, &fac_op_where) && fac_used_once(s.was)) {
        const int i = is_minus_infinity(input(s, 2).now) ? 1 : is_minus_infinity(input(s, 1).now) ? 2 : 0;
        if (!i || !fac_dims_equal(&input(s, i).now->type.dims, &s.now->type.dims) || !find_product(input(s, i), p)) return false;
        p->mask = i == 1 ? input(s, 0).now : fac_not(input(s, 0).now);
        return true;
    }
    return find_product(s, p);
}

/* With a dim of one head behind the first of three. */
static fac_value *with_heads(fac_value *v, int rank) {
    return v && rank == 3 && v->type.dims.n == 3 ? fac_unsqueeze(v, fac_shape(1)) : v;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    const state *s = self;
    parts p = { .mask = NULL };
    (void)to;
    if (!FAC_IS(n, matmul) || n->body[0]) return false;
    const both weights = { n->in[0], in[0] };
    const int rank = in[0]->type.dims.n;
    if ((rank != 3 && rank != 4) || in[1]->type.dims.n != rank || !made_by(weights, &fac_op_softmax) || !fac_used_once(weights.was))
        return false;
    if (fac_axis(fac_attr_int(weights.now->node, "axis", -1), rank) != rank - 1 || !find_scores(input(weights, 0), &p))
        return false;
    fac_value *q = p.q.now, *turned = p.k_turned.now;
    const fac_dims *d = &in[0]->type.dims;
    if (q->type.dims.n != rank || turned->type.dims.n != rank || q->type.dims.d[0] != d->d[0] ||
        turned->type.dims.d[0] != d->d[0]) return false;
    if (rank == 4 && (q->type.dims.d[1] != d->d[1] || turned->type.dims.d[1] != d->d[1] || in[1]->type.dims.d[1] != d->d[1]))
        return false;
    if (in[1]->type.dims.d[0] != d->d[0]) return false;
    if (p.mask && (p.mask->type.dims.n < 1 || p.mask->type.dims.n > rank ||
                   p.mask->type.dims.d[p.mask->type.dims.n - 1] != d->d[rank - 1])) return false;
    fac_value *k = rank == 3 ? fac_transpose(turned, fac_shape(0, 2, 1)) : fac_transpose(turned, fac_shape(0, 1, 3, 2));
    const fac_attention_opts o = { .scale = p.scale };
    fac_value *y = fac_attention(with_heads(q, rank), with_heads(k, rank), with_heads(in[1], rank), with_heads(p.mask, rank),
                                 NULL, NULL, NULL, &o);
    if (!y->node || !s->accept(s->self, y->node)) return false;
    out[0] = rank == 3 ? fac_squeeze(y, fac_shape(1)) : y;
    return true;
}

fac_graph *fac_pass_attention(const fac_graph *g, fac_accept *accept, void *self) {
    state s = { accept, self };
    return fac_graph_rebuild(g, &(fac_rebuild){ .self = &s, .visit = visit }, NULL);
}
