/* Rounding of what adds and multiplies; u = 2^-24, gamma_n = n u / (1 - n u) (Higham 2002,
 * "Accuracy and stability of numerical algorithms", section 3.1), whatever the order of the sum.
 *
 *   sum of K products    e = gamma_(K+2) |a||b| + e_a |b| + (|a| + e_a) e_b, the same product with
 *                        other operands
 *   a + b                e = e_a + e_b + u |y|
 *   a b                  e = e_a |b| + (|a| + e_a) e_b + u |y|
 *   a / b                e = (e_a + |y| e_b) / (|b| - e_b) + u |y|; infinite where the exact b may
 *                        be 0
 *   sum, mean of n       e = gamma_n sum |x| + sum e_x
 *   largest of some      the largest of their errors
 *   softmax              p_i = exp(x_i - max x).  e_i = (q_i + y_i sum q) / sum exp(x - e_x - max
 *                        x) + gamma_n y_i with q_i = exp(x_i + e_i - max x) (1 - exp(-e_i)), by how
 *                        much p_i may grow; it may shrink by less
 *   log of sum of exp    e = max e_x + gamma_n + u |y|
 *   log_softmax          e_i = e_xi + max e_x + gamma_n + u |y| */
#include "graph/attr.h"
#include "op_list.h"
#include "report/verify/bound.h"

static fac_value *rounding(fac_value *y, double units) { return times(size_of(y), units * UNIT); }

/* |a||b| of the operator itself; a negative alpha is negated. */
static fac_value *positive(const fac_node *n, fac_value *const in[], fac_value *a, fac_value *b,
                           fac_value *c) {
    fac_value *e = fac_bound_again(n, in, a, b, c);
    return fac_attr_real(n, "alpha", 1) < 0 ? fac_neg(e) : e;
}

/* |c| takes part in the rounding, e_c in the error.  The operator adds |c| itself unless it would
 * cancel. */
fac_value *fac_bound_product(fac_bounds *b, const fac_node *n, fac_value *const in[],
                             fac_value *y) {
    fac_value *ea = fac_bound_of(b, in[0]), *eb = fac_bound_of(b, in[1]),
              *c = n->nin > 2 ? in[2] : NULL;
    fac_value *ec = fac_bound_of(b, c), *absolute = size_of(in[0]), *other = size_of(in[1]),
              *added = c ? size_of(c) : NULL;
    const double alpha = fac_attr_real(n, "alpha", 1), beta = fac_attr_real(n, "beta", 1);
    const bool cancels = alpha < 0 || beta < 0;
    fac_value *e = positive(n, in, absolute, other, cancels ? NULL : added);
    if (added && cancels) e = fac_add(e, times(added, fabs(beta)));
    e = times(e, gamma_of(fac_product_depth(n) + 2));
    if (ea) e = fac_add(e, positive(n, in, ea, other, NULL));
    if (eb) e = fac_add(e, positive(n, in, ea ? fac_add(absolute, ea) : absolute, eb, NULL));
    if (ec && (n->op->layer == FAC_CLASS_CONV || n->op->layer == FAC_CLASS_CONV_TRANSPOSE))
        ec = fac_reshape_sizes(ec, by_channel(ec, y));
    if (ec && beta != 1) ec = times(ec, fabs(beta));
    return ec ? fac_add(e, ec) : e;
}

/* An infinite sum (of a mask of -inf) is exact. */
fac_value *fac_bound_add(fac_bounds *b, const fac_node *n, fac_value *const in[], fac_value *y) {
    (void)n;
    fac_value *finite = fac_min(size_of(y), number(y->graph, 0x1p127));
    return plus(plus(fac_bound_of(b, in[0]), fac_bound_of(b, in[1])), times(finite, SLACK * UNIT));
}

fac_value *fac_bound_mul(fac_bounds *b, const fac_node *n, fac_value *const in[], fac_value *y) {
    (void)n;
    fac_value *ea = fac_bound_of(b, in[0]), *eb = fac_bound_of(b, in[1]), *e = rounding(y, SLACK);
    if (ea) e = fac_add(e, fac_mul(ea, size_of(in[1])));
    return eb ? fac_add(e, fac_mul(reach(in[0], ea), eb)) : e;
}

fac_value *fac_bound_div(fac_bounds *b, const fac_node *n, fac_value *const in[], fac_value *y) {
    (void)n;
    fac_value *ea = fac_bound_of(b, in[0]), *eb = fac_bound_of(b, in[1]), *e = rounding(y, SLACK),
              *below = size_of(in[1]);
    if (!ea && !eb) return e;
    fac_value *above = plus(ea, eb ? fac_mul(size_of(y), eb) : NULL);
    if (eb) below = at_least(fac_sub(below, eb), 0);
    return fac_add(e, fac_div(above, below));
}

/* How many numbers one result is a sum of: at most. */
static double terms(const fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims, *y = &n->out[0]->type.dims;
    const double before = (double)fac_dims_count(x), after = (double)fac_dims_count(y);
    double plane = 1;
    for (int k = 2; k < x->n; k++) plane *= (double)x->d[k];
    if (n->op->layer == FAC_CLASS_AVG_POOL) return plane;
    if (FAC_IS(n, cum_sum)) return before;
    return after > 0 ? before / after : 0;
}

fac_value *fac_bound_sum(fac_bounds *b, const fac_node *n, fac_value *const in[], fac_value *y) {
    (void)y;
    fac_value *e = fac_bound_of(b, in[0]), *second = n->nin > 1 ? in[1] : NULL,
              *third = n->nin > 2 ? in[2] : NULL;
    fac_value *round =
        times(fac_bound_again(n, in, size_of(in[0]), second, third), gamma_of(terms(n) + 2));
    return e ? fac_add(round, fac_bound_again(n, in, e, second, third)) : round;
}

fac_value *fac_bound_largest(fac_bounds *b, const fac_node *n, fac_value *const in[],
                             fac_value *y) {
    fac_value *e = fac_bound_of(b, in[0]), *most = e;
    (void)y;
    if (!e) return NULL;
    if (!FAC_IS(n, reduce_min))
        return fac_bound_again(n, in, most, n->nin > 1 ? in[1] : NULL, NULL);
    return fac_neg(fac_bound_again(n, in, fac_neg(most), in[1], NULL));
}

static int64_t axis_of(const fac_node *n) {
    const int64_t axis = fac_attr_int(n, "axis", -1);
    return axis < 0 ? axis + n->in[0]->type.dims.n : axis;
}

fac_value *fac_bound_softmax(fac_bounds *b, const fac_node *n, fac_value *const in[],
                             fac_value *y) {
    fac_value *e = fac_bound_of(b, in[0]), *x = wide(in[0]), *one = number(y->graph, 1);
    const int64_t axis = axis_of(n);
    fac_value *round = times(wide(y), gamma_of((double)n->in[0]->type.dims.d[axis] + 32));
    if (!e) return round;
    x = fac_sub(x, fac_reduce_max(x, fac_shape(axis), true));
    e = fac_add(
        e, times(fac_min(fac_abs(x), number(y->graph, 128)), 2 * UNIT)); /* smaller ones are 0 */
    fac_value *grown = fac_mul(fac_exp(fac_add(x, e)), fac_sub(one, fac_exp(fac_neg(e))));
    grown = fac_add(grown, times(fac_exp(fac_add(x, e)), 4 * UNIT)); /* 1 - exp(-e) cancels */
    fac_value *all = fac_mul(wide(y), fac_sum(grown, fac_shape(axis), true));
    return fac_add(round, times(fac_div(fac_add(grown, all),
                                        fac_sum(fac_exp(fac_sub(x, e)), fac_shape(axis), true)),
                                1 + 1e-4));
}

fac_value *fac_bound_log_softmax(fac_bounds *b, const fac_node *n, fac_value *const in[],
                                 fac_value *y) {
    fac_value *e = fac_bound_of(b, in[0]);
    const int64_t axis = axis_of(n);
    fac_value *round =
        fac_add(rounding(y, 4 * SLACK),
                number(y->graph, gamma_of((double)n->in[0]->type.dims.d[axis] + 64)));
    return e ? fac_add(round, fac_add(e, fac_reduce_max(e, fac_shape(axis), true))) : round;
}

fac_value *fac_bound_log_sum_exp(fac_bounds *b, const fac_node *n, fac_value *const in[],
                                 fac_value *y) {
    fac_value *e = fac_bound_of(b, in[0]);
    fac_value *round = fac_add(rounding(y, 4 * SLACK), number(y->graph, gamma_of(terms(n) + 64)));
    return e ? fac_add(round,
                       fac_emit(&fac_op_reduce_max, n->attrs, 2, (fac_value *[]){ e, in[1] }))
             : round;
}
