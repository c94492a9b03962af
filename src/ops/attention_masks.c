/* Which keys a query of attention sees: causal order, windows, lengths and masks. */
#include <math.h>
#include "ops/attention.h"
#include "ops/known.h"
#include "ops/shape.h"

/* 0, 1, ... for each row of that axis. */
static fac_value *count_up(fac_value *v, int axis) {
    fac_graph *g = v->graph;
    return fac_arange(fac_number(g, FAC_I64, 0), fac_dim_of(v, axis), fac_number(g, FAC_I64, 1));
}

fac_value *fac_attention_both(fac_value *a, fac_value *b) {
    if (a && b) return fac_and(a, b);
    return a ? a : b;
}

/* lengths as B,1,1,1 */
static fac_value *each_sequence(fac_value *lengths) {
    return fac_unsqueeze(fac_cast(lengths, FAC_I64), fac_shape(1, 2, 3));
}

/* Which keys a query may see because of `causal` and lengths: bool, broadcasting to scores; NULL:
 * all. */
static fac_value *structure(const fac_attention_masks *m, fac_value *q, fac_value *keys) {
    fac_value *lengths = m->lengths ? each_sequence(m->lengths) : NULL, *seen = NULL;
    if (!m->causal && !lengths) return NULL;
    fac_value *j = count_up(keys, 2);
    if (m->causal) {
        fac_value *i = fac_unsqueeze(count_up(q, 2), fac_shape(1));
        if (m->past) i = fac_add(i, fac_dim_of(m->past, 2));
        if (lengths) i = fac_add(i, fac_sub(lengths, fac_dim_of(q, 2)));
        seen = fac_less_or_equal(j, i);
        if (m->window > 0)
            seen = fac_attention_both(
                seen, fac_less(fac_sub(i, fac_number(i->graph, FAC_I64, (double)m->window)), j));
    }
    return lengths ? fac_attention_both(seen, fac_less(j, lengths)) : seen;
}

fac_value *fac_attention_filled(fac_value *mask, fac_value *rows, int axis) {
    if (!mask) return NULL;
    const fac_dims *d = &mask->type.dims;
    const int64_t have = d->d[d->n - 1], want = rows->type.dims.d[axis];
    if (have == want) return mask;
    fac_graph *g = mask->graph;
    fac_value *none = mask->type.dtype == FAC_BOOL ? fac_number(mask->graph, FAC_BOOL, 0)
                                                   : fac_number_as(mask, -INFINITY);
    if (have < 0 || want < 0) {
        fac_value *all = fac_slice(fac_shape_of(rows), 0, axis, axis + 1, 1);
        fac_value *more = fac_sub(all, fac_slice(fac_shape_of(mask), 0, d->n - 1, d->n, 1));
        fac_value *by[] = { fac_ints(g, fac_shape(0)), more };
        return fac_pad(mask, fac_concat(by, 2, 0), none, fac_ints(g, fac_shape(-1)),
                       FAC_PAD_CONSTANT);
    }
    fac_dims pads = { .n = 2 * d->n };
    pads.d[2 * d->n - 1] = want - have;
    return fac_pad(mask, fac_ints(mask->graph, pads), none, NULL, FAC_PAD_CONSTANT);
}

/* A mask of R,S,.. with a batch instead, that of q. */
static fac_value *with_batch(fac_value *mask, fac_value *q) {
    if (!mask || mask->type.dims.n != 5) return mask;
    fac_graph *g = q->graph;
    fac_value *batch = fac_shape_of(q), *shape = fac_shape_of(mask);
    batch = fac_slice(batch, 0, 0, 1, 1);
    fac_value *each = fac_slice(shape, 0, 1, 2, 1), *rest = fac_slice(shape, 0, 2, 5, 1);
    fac_value *apart[] = { fac_div(batch, each), fac_ints(g, fac_shape(1, 1, 1, 1)) };
    fac_value *whole[] = { batch, rest };
    return fac_reshape_exactly(fac_expand_to(mask, fac_concat(apart, 2, 0)),
                               fac_concat(whole, 2, 0));
}

fac_value *fac_attention_bias(const fac_attention_masks *m, fac_value *q, fac_value *keys,
                              fac_value **dead) {
    fac_value *mask = fac_attention_filled(with_batch(m->mask, q), keys, 2),
              *seen = structure(m, q, keys), *bias = NULL;
    const bool certain = !mask && !m->lengths; /* a causal query sees at least itself */
    *dead = NULL;
    if (mask && mask->type.dtype == FAC_BOOL)
        seen = fac_attention_both(seen, mask);
    else
        bias = mask;
    if (seen)
        bias = fac_where(seen, bias ? bias : fac_number_as(q, 0), fac_number_as(q, -INFINITY));
    if (bias && !certain)
        *dead = fac_equal(fac_reduce_max(bias, fac_shape(-1), true), fac_number_as(q, -INFINITY));
    return bias;
}

fac_value *fac_attention_within(const fac_attention_masks *m, fac_value *q, fac_value *keys,
                                int64_t left, int64_t right) {
    fac_value *lengths = m->lengths ? each_sequence(m->lengths) : NULL, *seen = NULL;
    if (m->past) keys = fac_concat((fac_value *[]){ m->past, keys }, 2, 2);
    fac_value *j = count_up(keys, 2), *p = fac_unsqueeze(count_up(q, 2), fac_shape(1));
    if (m->past) p = fac_add(p, fac_dim_of(m->past, 2));
    if (lengths) p = fac_add(p, fac_sub(lengths, fac_dim_of(q, 2)));
    fac_value *first = fac_sub(p, fac_number(p->graph, FAC_I64, (double)left));
    fac_value *last = fac_add(p, fac_number(p->graph, FAC_I64, (double)right));
    if (left >= 0) seen = fac_less_or_equal(first, j);
    return right >= 0 ? fac_attention_both(seen, fac_less_or_equal(j, last)) : seen;
}
