/* Rounding of functions of one number, and of few.
 *
 *   f with |f'| <= L          e = L e_x + 8 u (1 + |y|), and 8 u |x| more where f is x times a
 *       function that may lie near 0 or 1
 *   f that only grows or falls  e = the larger of |f(x + d) - y| and |f(x - d) - y| with d = e_x +
 *       2 u |x|, and 16 u |y|
 *   cosh                      f(|x| + d) - y: it grows at most there
 *   1 / x                     |y| e_x / (|x| - e_x), infinite where the exact x may be 0
 *   x^p, p a constant         with z = |x|: the larger of |(z + d)^p - z^p| and |max(z - d, 0)^p -
 *       z^p|
 *   max, min, where           the larger of both errors, that of the one which was picked
 *   prelu                     e_x max(1, |s|) + (|x| + e_x) e_s + u |y|
 *   floor, ceil, sign ...     nothing where x is exact; else they may jump, and nothing is known */
#include "ops/shape.h"
#include "graph/attr.h"
#include "op_list.h"
#include "report/verify/bound.h"

fac_value *fac_bound_smooth(fac_bounds *b, const fac_node *n, fac_value *const in[], fac_value *y) {
    fac_value *e = fac_bound_of(b, in[0]), *scale = fac_add(size_of(y), number(y->graph, 1));
    double L = n->op->rounding.slope;
    if (n->op->rounding.times_x) scale = fac_add(scale, size_of(in[0]));
    fac_value *round = times(scale, 8 * UNIT);
    if (fac_attr_find(n->op, "slope")) L = fmax(1, fabs(fac_attr_real(n, "slope", L)));
    return e ? fac_add(round, times(e, L)) : round;
}

static fac_value *distance(fac_value *x, fac_value *y) { return fac_abs(fac_sub(x, y)); }
static fac_value *margin(fac_value *x, fac_value *e) {
    return fac_add(e, times(size_of(x), 2 * UNIT));
}
static fac_value *relative(fac_value *y) { return times(size_of(y), 16 * UNIT); }

/* Roots and logarithms have nothing below 0: at 0 a logarithm is infinite, and so is its bound. */
fac_value *fac_bound_monotone(fac_bounds *b, const fac_node *n, fac_value *const in[],
                              fac_value *y) {
    fac_value *e = fac_bound_of(b, in[0]), *x = wide(in[0]);
    if (!e) return relative(y);
    if (fac_attr_real(n, "alpha", 1) < 0) return fac_bound_unknown(b, n); /* of elu and its like */
    fac_value *d = margin(x, e), *low = fac_sub(x, d), *value = wide(y);
    if (FAC_IS(n, sqrt) || FAC_IS(n, log)) low = at_least(low, 0);
    fac_value *up = distance(fac_bound_again(n, in, fac_add(x, d), NULL, NULL), value);
    return fac_add(relative(y),
                   fac_max(up, distance(fac_bound_again(n, in, low, NULL, NULL), value)));
}

fac_value *fac_bound_cosh(fac_bounds *b, const fac_node *n, fac_value *const in[], fac_value *y) {
    fac_value *e = fac_bound_of(b, in[0]),
              *far = e ? fac_add(size_of(in[0]), margin(in[0], e)) : NULL;
    return e ? fac_add(relative(y), distance(fac_bound_again(n, in, far, NULL, NULL), wide(y)))
             : relative(y);
}

fac_value *fac_bound_reciprocal(fac_bounds *b, const fac_node *n, fac_value *const in[],
                                fac_value *y) {
    fac_value *e = fac_bound_of(b, in[0]);
    (void)n;
    return e ? fac_add(relative(y),
                       fac_div(fac_mul(size_of(y), e), at_least(fac_sub(size_of(in[0]), e), 0)))
             : relative(y);
}

fac_value *fac_bound_pow(fac_bounds *b, const fac_node *n, fac_value *const in[], fac_value *y) {
    fac_value *e = fac_bound_of(b, in[0]);
    double p = 1;
    if (!e && !fac_bound_of(b, in[1])) return relative(y);
    if (!e || fac_bound_of(b, in[1]) || !fac_scalar_known(in[1], &p))
        return fac_bound_unknown(b, n);
    fac_value *z = size_of(in[0]), *d = margin(in[0], e), *power = number(y->graph, p),
              *here = fac_pow(z, power);
    fac_value *up = distance(fac_pow(fac_add(z, d), power), here);
    fac_value *down = distance(fac_pow(at_least(fac_sub(z, d), 0), power), here);
    return fac_add(relative(y), fac_max(up, down));
}

fac_value *fac_bound_pick(fac_bounds *b, const fac_node *n, fac_value *const in[], fac_value *y) {
    const int first = FAC_IS(n, where);
    fac_value *ea = fac_bound_of(b, in[first]), *eb = fac_bound_of(b, in[first + 1]);
    if (first && fac_bound_of(b, in[0])) return fac_bound_unknown(b, n);
    if (!ea && !eb) return NULL;
    fac_value *zeros = zeros_like(wide(y)); /* y is as large as all operands together */
    if (!ea) ea = zeros;
    if (!eb) eb = zeros;
    return first ? fac_where(in[0], ea, eb) : fac_max(fac_max(ea, eb), zeros);
}

fac_value *fac_bound_prelu(fac_bounds *b, const fac_node *n, fac_value *const in[], fac_value *y) {
    fac_value *e = fac_bound_of(b, in[0]), *es = fac_bound_of(b, in[1]),
              *all = times(size_of(y), SLACK * UNIT);
    (void)n;
    if (e) all = fac_add(all, fac_mul(e, at_least(size_of(in[1]), 1)));
    return es ? fac_add(all, fac_mul(reach(in[0], e), es)) : all;
}

fac_value *fac_bound_whole(fac_bounds *b, const fac_node *n, fac_value *const in[], fac_value *y) {
    bool exact = true;
    (void)y;
    for (int i = 0; i < n->nin; i++) exact &= !fac_bound_of(b, in[i]);
    return exact ? NULL : fac_bound_unknown(b, n);
}
