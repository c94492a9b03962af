/* softmax(scale q k^T + mask) v, spelled out as exporters do, becomes one attention node, which
 * keeps no matrix of scores.
 *
 * From the last product backwards: a softmax along the last axis, then  add(scores, mask),  once or
 * more, or  where(condition, scores, -inf)  or neither, then constant factors, then the product of
 * q and a transposed k, both of which may have constant factors too.  Operands have four dims, or
 * three, whose first is batch and heads together.
 *
 * Windows of images are a batch for the products, and a mask is of each window of an image: it is
 * added where a reshape has made two dims, images and windows, of the first.
 *
 * PyTorch's exporter writes  where(isnan(weights), 0, weights)  after the softmax, for queries
 * that see no key: attention gives zeros for them anyway.  In mixed precision scores are widened
 * before the softmax and weights narrowed after it, which attention does inside. */
#include <math.h>
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/fusion/causal_mask.h"
#include "passes/passes.h"
#include "passes/common/range.h"
#include "passes/common/single.h"

enum { MOST_OUT = 8 };

typedef struct state {
    fac_accept *accept;
    void *self;
    const fac_value *mask; /* that was looked at last, and whether it is causal */
    bool causal;
} state;

/* v without its constant factors, which go into *scale.  only: v disappears, so nobody else may
 * read it. */
static fac_both without_factors(fac_both v, bool only, double *scale) {
    for (;;) {
        const bool mul = fac_both_made_by(v, &fac_op_mul), div = fac_both_made_by(v, &fac_op_div);
        int which = -1;
        double c = 1;
        for (int i = div ? 1 : 0; i < 2 && (mul || div) && which < 0; i++)
            if (fac_const_number(v.now->node->in[i], &c)) which = i;
        if (which < 0 || c == 0 || !isfinite(c) || (only && !fac_used_once(v.was))) return v;
        const fac_both other = fac_both_in(v, 1 - which);
        if (other.now->type.dtype != v.now->type.dtype ||
            !fac_dims_equal(&other.now->type.dims, &v.now->type.dims))
            return v;
        *scale = mul ? *scale * c : *scale / c;
        v = other;
    }
}

/* v without the casts between the type of the products and f32, which disappear. */
static fac_both without_cast(fac_both v, fac_dtype from, fac_dtype to) {
    if (!fac_both_made_by(v, &fac_op_cast) || v.now->type.dtype != to || !fac_used_once(v.was))
        return v;
    const fac_both inner = fac_both_in(v, 0);
    return inner.now->type.dtype == from && inner.was->type.dtype == from ? inner : v;
}

static bool used_twice(const fac_value *v) {
    return v->uses && v->uses->next && !v->uses->next->next && !v->roots;
}

/* A factor in f32 between casts, of a value that is narrow before and after it: what a product
 * reads in mixed precision. */
static fac_both without_wide_factors(fac_both v, double *scale) {
    const fac_dtype low = v.now->type.dtype;
    if (low == FAC_F32 || !fac_both_made_by(v, &fac_op_cast) ||
        fac_both_in(v, 0).now->type.dtype != FAC_F32)
        return v;
    double factor = 1;
    const fac_both inner = without_factors(fac_both_in(v, 0), false, &factor);
    if (!fac_both_made_by(inner, &fac_op_cast) || fac_both_in(inner, 0).now->type.dtype != low)
        return v;
    *scale *= factor;
    return fac_both_in(inner, 0);
}

/* The weights in  where(isnan(weights), 0, weights),  or what was given; *readers: of the
 * weights. */
static fac_both without_guard(fac_both v, int *readers) {
    double none = 1;
    *readers = 1;
    if (!fac_both_made_by(v, &fac_op_where) || !fac_used_once(v.was)) return v;
    const fac_both test = fac_both_in(v, 0), weights = fac_both_in(v, 2);
    if (!fac_both_made_by(test, &fac_op_isnan) || !fac_used_once(test.was)) return v;
    if (fac_both_in(test, 0).now != weights.now ||
        !fac_const_number(fac_both_in(v, 1).now, &none) || none != 0)
        return v;
    *readers = 2;
    return weights;
}

enum { MASKS = 4, DEPTH = 8 };

typedef struct parts {
    fac_both q, k_transposed;
    fac_value *mask[MASKS]; /* what is added to the scores; one of bools is alone */
    int masks;
    int64_t sequences; /* of the batch that masks of five dims have as their second one; 0: none */
    double scale;
    fac_dtype dtype; /* of the products */
} parts;

/* The product that masked scores come from. */
static bool find_product(fac_both scores, parts *p) {
    p->scale = 1;
    const fac_both wide = without_factors(scores, true, &p->scale);
    const fac_both s = without_factors(without_cast(wide, p->dtype, FAC_F32), true, &p->scale);
    if (!fac_both_made_by(s, &fac_op_matmul) || !fac_used_once(s.was)) return false;
    p->q = without_wide_factors(without_factors(fac_both_in(s, 0), false, &p->scale), &p->scale);
    p->k_transposed =
        without_wide_factors(without_factors(fac_both_in(s, 1), false, &p->scale), &p->scale);
    return true;
}

static bool is_minus_infinity(const fac_value *v) {
    double x;
    return fac_const_number(v, &x) && x == -INFINITY;
}

/* Does v make two dims of the first of `inner`, or one of its first two?  *sequences: the second.
 */
static bool regroups(fac_both v, int64_t *sequences) {
    if (!fac_both_made_by(v, &fac_op_reshape) || !fac_used_once(v.was)) return false;
    const fac_dims *five = &v.now->type.dims, *four = &fac_both_in(v, 0).now->type.dims;
    if (five->n == 4) {
        const fac_dims *result = five;
        five = four;
        four = result;
    }
    if (five->n != 5 || four->n != 4 || four->d[0] < 0 || five->d[0] * five->d[1] != four->d[0])
        return false;
    for (int k = 1; k < 4; k++)
        if (five->d[k + 1] != four->d[k]) return false;
    if (*sequences && *sequences != five->d[1]) return false;
    *sequences = five->d[1];
    return true;
}

static bool find_scores(fac_both scores, int depth, parts *p);

static bool find_below_sum(fac_both s, int depth, parts *p) {
    const parts before = *p;
    for (int i = 0; i < 2; i++) {
        *p = before;
        p->mask[p->masks++] = fac_both_in(s, 1 - i).now;
        if (fac_dims_equal(&fac_both_in(s, i).now->type.dims, &s.now->type.dims) &&
            find_scores(fac_both_in(s, i), depth, p))
            return true;
    }
    return false;
}

static bool find_scores(fac_both scores, int depth, parts *p) {
    const fac_both s = without_cast(scores, p->dtype, FAC_F32);
    if (!depth) return false;
    if (regroups(s, &p->sequences)) return find_scores(fac_both_in(s, 0), depth - 1, p);
    if (fac_both_made_by(s, &fac_op_add) && fac_used_once(s.was) && p->masks < MASKS)
        return find_below_sum(s, depth - 1, p);
    if (fac_both_made_by(s, &fac_op_where) && fac_used_once(s.was) && !p->masks) {
        const int i = is_minus_infinity(fac_both_in(s, 2).now)   ? 1
                      : is_minus_infinity(fac_both_in(s, 1).now) ? 2
                                                                 : 0;
        if (!i || !fac_dims_equal(&fac_both_in(s, i).now->type.dims, &s.now->type.dims) ||
            !find_product(fac_both_in(s, i), p))
            return false;
        p->mask[p->masks++] = i == 1 ? fac_both_in(s, 0).now : fac_not(fac_both_in(s, 0).now);
        return true;
    }
    return find_product(s, p);
}

/* A mask of numbers in the type of the products; *hides: it is none where it is all zeros.  false:
 * the type cannot say it. */
static bool settle(const parts *p, fac_value **mask, bool *hides) {
    fac_value *m = *mask;
    const fac_value *numbers = FAC_IS(m->node, cast) ? m->node->in[0] : m;
    *hides = m->type.dtype == FAC_BOOL || !numbers->tensor || !fac_range_is_zero(numbers->tensor);
    if (!*hides || m->type.dtype == FAC_BOOL || m->type.dtype == p->dtype) return true;
    if (p->dtype != FAC_BF16) return false; /* bf16 has the range of f32 */
    *mask = fac_cast(m, FAC_BF16);
    return true;
}

/* The batch of a mask as images and windows, where others have it so. */
static fac_value *as_others(const parts *p, fac_value *m) {
    const fac_dims *d = &m->type.dims;
    if (!p->sequences || d->n != 4 || d->d[0] == 1 || d->d[0] == p->sequences) return m;
    return fac_reshape_sizes(
        m, fac_shape(d->d[0] / p->sequences, p->sequences, d->d[1], d->d[2], d->d[3]));
}

/* Whether the mask is causal; masks of all layers of a model are one value, and large. */
static bool is_causal(state *s, const fac_value *mask, const fac_dims *d) {
    if (s->mask != mask) {
        s->mask = mask;
        s->causal = fac_mask_is_causal(mask, d->d[d->n - 2], d->d[d->n - 1]);
    }
    return s->causal;
}

/* All masks as one that broadcasts to the scores, of the dims d; *one NULL: nothing is hidden.
 * *causal: but keys after each query. */
static bool one_mask(state *s, const parts *p, const fac_dims *d, fac_value **one, bool *causal) {
    bool hides;
    *one = NULL;
    *causal = false;
    for (int i = 0; i < p->masks; i++) {
        fac_value *m = p->mask[i];
        if (is_causal(s, m, d)) {
            *causal = true;
            continue;
        }
        if (!settle(p, &m, &hides)) return false;
        if (!hides) continue;
        if (m->type.dtype == FAC_BOOL && p->masks > 1) return false;
        m = as_others(p, m);
        *one = *one ? fac_add(*one, m) : m;
    }
    if (!*one) return true;
    const fac_dims *m = &(*one)->type.dims;
    if (m->n == 5 && m->d[0] == 1 && (m->d[1] == 1 || m->d[1] == d->d[0]))
        *one = fac_reshape_sizes(*one, fac_shape(m->d[1], m->d[2], m->d[3], m->d[4]));
    m = &(*one)->type.dims;
    return m->n >= 1 && m->n <= (p->sequences ? 5 : d->n) && m->d[m->n - 1] == d->d[d->n - 1];
}

/* With a dim of one head after the first of three. */
static fac_value *with_heads(fac_value *v, int rank) {
    return v && rank == 3 && v->type.dims.n == 3 ? fac_unsqueeze(v, fac_shape(1)) : v;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    state *s = self;
    parts p = { .dtype = n->out[0]->type.dtype };
    fac_value *mask;
    bool causal;
    int readers;
    (void)to;
    if (!FAC_IS(n, matmul) || n->body[0]) return false;
    const fac_both weights =
        without_guard(without_cast((fac_both){ n->in[0], in[0] }, FAC_F32, p.dtype), &readers);
    const int rank = in[0]->type.dims.n;
    if ((rank != 3 && rank != 4) || in[1]->type.dims.n != rank ||
        !fac_both_made_by(weights, &fac_op_softmax))
        return false;
    if (!(readers == 1 ? fac_used_once(weights.was) : used_twice(weights.was))) return false;
    if (fac_axis(fac_attr_int(weights.now->node, "axis", -1), rank) != rank - 1 ||
        !find_scores(fac_both_in(weights, 0), DEPTH, &p))
        return false;
    if (p.q.now->type.dtype != p.dtype || p.k_transposed.now->type.dtype != p.dtype ||
        (p.sequences && rank != 4) || !one_mask(s, &p, &in[0]->type.dims, &mask, &causal))
        return false;
    fac_value *q = p.q.now, *transposed = p.k_transposed.now;
    const fac_dims *d = &in[0]->type.dims;
    if (q->type.dims.n != rank || transposed->type.dims.n != rank || q->type.dims.d[0] != d->d[0] ||
        transposed->type.dims.d[0] != d->d[0])
        return false;
    if (rank == 4 && (q->type.dims.d[1] != d->d[1] || transposed->type.dims.d[1] != d->d[1] ||
                      in[1]->type.dims.d[1] != d->d[1]))
        return false;
    if (in[1]->type.dims.d[0] != d->d[0]) return false;
    fac_value *k = rank == 3 ? fac_transpose(transposed, fac_shape(0, 2, 1))
                             : fac_transpose(transposed, fac_shape(0, 1, 3, 2));
    const fac_attention_opts o = { .scale = p.scale, .causal = causal };
    fac_value *y = fac_attention(with_heads(q, rank), with_heads(k, rank), with_heads(in[1], rank),
                                 with_heads(mask, rank), NULL, NULL, NULL, &o);
    if (!y->node) return false;
    if (!s->accept(s->self, y->node)) {
        fac_value *with[MOST_OUT];
        if (!fac_attention_widened(s->accept, s->self, y->node, y->node->in, with)) return false;
        y = with[0];
    }
    out[0] = rank == 3 ? fac_squeeze(y, fac_shape(1)) : y;
    return true;
}

fac_graph *fac_pass_attention(const fac_graph *g, fac_accept *accept, void *self) {
    state s = { .accept = accept, .self = self };
    return fac_graph_rebuild(g, &(fac_rebuild){ .self = &s, .visit = visit }, NULL);
}
