/* Rounding of what normalizes.  With h = (x - m) r, r = 1 / sqrt(v + epsilon), y = h s + t:
 *
 *   batch norm (m and v are given; in training it is one of the next kind)
 *       e_h = (e_x + e_m + u (|x| + |m|)) (r + e_r) + |x - m| e_r;  1 / sqrt of a variance that is
 *           e_v smaller gives e_r
 *   layer, group and instance norm (m and v are those of n numbers x), with e = e_x + u |x| +
 *       gamma_n mean |x|
 *       centering is a projection, so the vector x - m changes by at most the norm of e and sigma =
 *           sqrt(v + epsilon), a norm
 *       of it, by at most E = sqrt(mean e^2):
 *       e_h = (e + mean e + |h| E) / max(sigma - E, sqrt(epsilon)) + gamma_n |h|
 *   rms norm: the same without m and mean e
 *   in all of them  e_y = e_h (|s| + e_s) + |h| e_s + e_t + u (|h s| + |t|)
 *
 *   local response normalization, y = x B^-beta with B = bias + alpha mean x^2 >= bias over a
 *       window of channels
 *       e_B = alpha mean (2 |x| e_x + e_x^2) + gamma_n B,  e_y = e_x B_low^-beta + |x| (B_low^-beta
 *           - B_high^-beta) + u |y| */
#include "ops/shape.h"
#include "graph/attr.h"
#include "report/verify/bound.h"

/* 1 / sqrt(v + epsilon) may be off by as much as a variance that is e smaller makes it. */
static fac_value *rate_error(fac_value *variance, fac_value *e, fac_value *epsilon,
                             fac_value *rate) {
    fac_value *least = at_least(fac_sub(variance, e), 0);
    return fac_sub(fac_div(number(e->graph, 1), fac_sqrt(fac_add(least, epsilon))), rate);
}

/* The rounding of both sums, then what the operands' own errors do. */
static fac_value *given_moments(fac_bounds *b, const fac_node *n, fac_value *const in[]) {
    fac_value *x = wide(in[0]), *epsilon = number(x->graph, fac_attr_real(n, "epsilon", 1e-5)),
              *variance = wide(in[4]);
    fac_value *es = fac_bound_of(b, in[1]), *et = fac_bound_of(b, in[2]);
    fac_value *em = fac_bound_of(b, in[3]), *ev = fac_bound_of(b, in[4]);
    fac_value *rate = fac_div(number(x->graph, 1), fac_sqrt(fac_add(variance, epsilon)));
    fac_value *er = ev ? rate_error(variance, ev, epsilon, rate) : NULL, *scale = size_of(in[1]),
              *product = NULL;
    if (es || er) { /* of r s: e_r (|s| + e_s) + r e_s */
        product = er ? fac_mul(er, plus(scale, es)) : NULL;
        product = plus(product, es ? fac_mul(rate, es) : NULL);
    }
    const fac_dims d = by_channel(in[1], x);
    fac_value *sum = fac_add(fac_abs(x), fac_reshape_sizes(size_of(in[3]), d));
    fac_value *off = plus(times(sum, 8 * SLACK * UNIT),
                          plus(fac_bound_of(b, in[0]), em ? fac_reshape_sizes(em, d) : NULL));
    fac_value *e = fac_mul(off, fac_reshape_sizes(plus(fac_mul(scale, rate), product), d));
    if (product)
        e = fac_add(e, fac_mul(fac_abs(fac_sub(x, fac_reshape_sizes(wide(in[3]), d))),
                               fac_reshape_sizes(product, d)));
    return fac_add(e, fac_reshape_sizes(plus(times(size_of(in[2]), SLACK * UNIT), et), d));
}

/* ---- statistics of the numbers themselves ---- */

/* |h|, and its error. */
typedef struct standard {
    fac_value *size, *error;
} standard;

static fac_value *root_mean_square(fac_value *x, fac_dims axes) {
    return fac_sqrt(fac_mean(fac_mul(x, x), axes, true));
}

static standard standardize(fac_value *x, fac_value *error, fac_dims axes, double epsilon,
                            bool centered) {
    double n = 1;
    for (int k = 0; k < axes.n; k++) n *= (double)x->type.dims.d[axes.d[k]];
    fac_value *e = plus(error, times(fac_abs(x), SLACK * UNIT)), *centre = x;
    if (centered) {
        e = fac_add(e, times(fac_mean(fac_abs(x), axes, true), gamma_of(n)));
        centre = fac_sub(x, fac_mean(x, axes, true));
    }
    fac_value *off = root_mean_square(e, axes), *least = number(x->graph, sqrt(epsilon));
    fac_value *sigma =
        fac_sqrt(fac_add(fac_mean(fac_mul(centre, centre), axes, true), number(x->graph, epsilon)));
    fac_value *h = fac_abs(fac_div(centre, sigma)),
              *own = centered ? fac_add(e, fac_mean(e, axes, true)) : e;
    fac_value *moved = fac_div(fac_add(own, fac_mul(h, off)), fac_max(fac_sub(sigma, off), least));
    return (standard){ h, fac_add(times(moved, 1 + 1e-4), times(h, gamma_of(n + 8))) };
}

/* y = h s + t; s, t and their errors broadcast to h. */
static fac_value *scaled(standard h, fac_value *s, fac_value *es, fac_value *t, fac_value *et) {
    fac_value *e = s ? fac_mul(h.error, reach(s, es)) : h.error;
    if (es) e = fac_add(e, fac_mul(h.size, es));
    e = fac_add(e, times(s ? fac_mul(h.size, size_of(s)) : h.size, SLACK * UNIT));
    return plus(t ? fac_add(e, times(size_of(t), SLACK * UNIT)) : e, et);
}

static fac_value *lines(fac_bounds *b, const fac_node *n, fac_value *const in[], bool centered) {
    fac_value *x = wide(in[0]), *t = n->nin > 2 ? in[2] : NULL;
    fac_dims axes = { 0 };
    const int64_t axis = fac_attr_int(n, "axis", -1);
    for (int64_t k = axis < 0 ? axis + x->type.dims.n : axis; k < x->type.dims.n; k++)
        axes.d[axes.n++] = k;
    const standard h =
        standardize(x, fac_bound_of(b, in[0]), axes, fac_attr_real(n, "epsilon", 1e-5), centered);
    return scaled(h, in[1], fac_bound_of(b, in[1]), t, fac_bound_of(b, t));
}

fac_value *fac_bound_layer_norm(fac_bounds *b, const fac_node *n, fac_value *const in[],
                                fac_value *y) {
    (void)y;
    return lines(b, n, in, true);
}

fac_value *fac_bound_rms_norm(fac_bounds *b, const fac_node *n, fac_value *const in[],
                              fac_value *y) {
    (void)y;
    return lines(b, n, in, false);
}

/* One number for each channel or each group: for each channel, beside N,C,... */
static fac_value *of_channels(fac_value *v, const fac_value *x) {
    const int64_t channels = x->type.dims.d[1], have = v ? fac_dims_count(&v->type.dims) : 0;
    if (!v) return NULL;
    if (have != channels)
        v = fac_expand(fac_reshape_sizes(v, fac_shape(have, 1)), fac_shape(have, channels / have));
    v = fac_reshape(v, fac_shape(-1));
    return fac_reshape_sizes(v, by_channel(v, x));
}

/* In training, m and v are those of a channel. */
fac_value *fac_bound_batch_norm(fac_bounds *b, const fac_node *n, fac_value *const in[],
                                fac_value *y) {
    fac_value *x = wide(in[0]);
    fac_dims axes = { .n = 1 };
    (void)y;
    if (!fac_attr_flag(n, "training_mode")) return given_moments(b, n, in);
    for (int k = 2; k < x->type.dims.n; k++) axes.d[axes.n++] = k;
    const standard h =
        standardize(x, fac_bound_of(b, in[0]), axes, fac_attr_real(n, "epsilon", 1e-5), true);
    return scaled(h, of_channels(in[1], x), of_channels(fac_bound_of(b, in[1]), x),
                  of_channels(in[2], x), of_channels(fac_bound_of(b, in[2]), x));
}

/* Group norm, and instance norm: each channel is a group. */
fac_value *fac_bound_group_norm(fac_bounds *b, const fac_node *n, fac_value *const in[],
                                fac_value *y) {
    fac_value *x = wide(in[0]), *e = fac_bound_of(b, in[0]);
    const fac_dims apart = fac_shape(0, fac_attr_int(n, "groups", x->type.dims.d[1]), -1);
    standard h = standardize(fac_reshape(x, apart), e ? fac_reshape(e, apart) : NULL, fac_shape(2),
                             fac_attr_real(n, "epsilon", 1e-5), true);
    h.size = fac_reshape_sizes(h.size, x->type.dims);
    h.error = fac_reshape_sizes(h.error, x->type.dims);
    (void)y;
    return scaled(h, of_channels(in[1], x), of_channels(fac_bound_of(b, in[1]), x),
                  of_channels(in[2], x), of_channels(fac_bound_of(b, in[2]), x));
}

/* ---- local response normalization ---- */

/* The mean over a window of channels, zeros beside the edges: an average pool of N,1,C,all others.
 */
static fac_value *window_mean(fac_value *v, int64_t size) {
    const int64_t before = (size - 1) / 2;
    const fac_pool2d_opts o = { .stride = { 1, 1 },
                                .pad = { before, 0, size - 1 - before, 0 },
                                .count_include_pad = true };
    fac_value *apart = fac_unsqueeze(fac_reshape(v, fac_shape(0, 0, -1)), fac_shape(1));
    return fac_reshape_like(fac_avg_pool2d(apart, size, 1, &o), v);
}

fac_value *fac_bound_lrn(fac_bounds *b, const fac_node *n, fac_value *const in[], fac_value *y) {
    fac_value *x = wide(in[0]), *e = fac_bound_of(b, in[0]);
    const double alpha = fac_attr_real(n, "alpha", 0), beta = fac_attr_real(n, "beta", 0),
                 bias = fac_attr_real(n, "bias", 0);
    const int64_t size = fac_attr_int(n, "size", 1);
    if (alpha < 0 || beta < 0 || bias <= 0) return fac_bound_unknown(b, n);
    fac_value *base =
        fac_add(times(window_mean(fac_mul(x, x), size), alpha), number(x->graph, bias));
    fac_value *off = times(base, gamma_of((double)size + 4)), *exponent = number(x->graph, -beta);
    if (e)
        off = fac_add(
            off, times(window_mean(fac_mul(e, fac_add(times(fac_abs(x), 2), e)), size), alpha));
    fac_value *high = fac_pow(at_least(fac_sub(base, off), bias), exponent),
              *low = fac_pow(fac_add(base, off), exponent);
    fac_value *moved = plus(fac_mul(fac_abs(x), fac_sub(high, low)), e ? fac_mul(e, high) : NULL);
    return fac_add(moved, times(size_of(y), 8 * SLACK * UNIT));
}
