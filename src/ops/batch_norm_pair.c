/* The sum of two batch norms in training whose batches' statistics are there already, as a residual
 * block with a convolution in its shortcut ends: what the second one makes is neither written nor
 * read.  Made by src/passes/norm/norm_pairs.c.  Has no prototype. */
#include <math.h>
#include <stdio.h>
#include "op_list.h"
#include "ops/batch_norm_pair.h"
#include "ops/cost.h"
#include "ops/grad.h"

typedef fac_norm_pair attrs;
static const fac_attr table[] = { { "epsilon", FAC_A_REAL, offsetof(attrs, epsilon), 0, 0, 0, 0,
                                    NULL, "added to the variance" },
                                  { "momentum", FAC_A_REAL, offsetof(attrs, momentum), 0, 0, 0, 0,
                                    NULL, "share of the old running statistics" },
                                  { "other_epsilon", FAC_A_REAL, offsetof(attrs, other_epsilon), 0,
                                    0, 0, 0, NULL, "epsilon of the other norm" },
                                  { "other_momentum", FAC_A_REAL, offsetof(attrs, other_momentum),
                                    0, 0, 0, 0, NULL, "momentum of the other norm" },
                                  { 0 } };
enum { X, SCALE, BIAS, MEAN, VAR, OWN_MEAN, OWN_VAR, PORTS }; /* twice */
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "scale", FAC_FLOATS, 0 },
                               { "bias", FAC_FLOATS, 0 },
                               { "mean", FAC_FLOATS, 0 },
                               { "var", FAC_FLOATS, 0 },
                               { "own_mean", FAC_FLOATS, 0 },
                               { "own_var", FAC_FLOATS, 0 },
                               { "other_x", FAC_FLOATS, 0 },
                               { "other_scale", FAC_FLOATS, 0 },
                               { "other_bias", FAC_FLOATS, 0 },
                               { "other_mean", FAC_FLOATS, 0 },
                               { "other_var", FAC_FLOATS, 0 },
                               { "other_own_mean", FAC_FLOATS, 0 },
                               { "other_own_var", FAC_FLOATS, 0 },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 },
                                { "running_mean", FAC_FLOATS, FAC_OPTIONAL },
                                { "running_var", FAC_FLOATS, FAC_OPTIONAL },
                                { "other_running_mean", FAC_FLOATS, FAC_OPTIONAL },
                                { "other_running_var", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

bool fac_batch_norm_pair_infer(fac_node *n) {
    const fac_type *x = &n->in[X]->type, *other = &n->in[PORTS]->type;
    if (x->dims.n < 2 || other->dtype != x->dtype || !fac_dims_equal(&other->dims, &x->dims))
        return fac_fail(n, FAC_E_SHAPE, "x and other_x differ, or have no channels");
    for (int k = 0; k < 2 * PORTS; k++) {
        const fac_dims *d = &n->in[k]->type.dims;
        if (k % PORTS &&
            (d->n != 1 || (d->d[0] != x->dims.d[1] && d->d[0] >= 0 && x->dims.d[1] >= 0)))
            return fac_fail(n, FAC_E_SHAPE, "%s must have one number for each of the %lld channels",
                            in[k].name, (long long)x->dims.d[1]);
    }
    n->out[0]->type = *x;
    for (int k = 1; k < FAC_NORM_PAIR_OUT; k++)
        n->out[k]->type = n->in[k < 3 ? 2 + k : PORTS + k]->type;
    return true;
}

double fac_batch_norm_pair_sum(const fac_ref *r, int64_t c, int64_t at) {
    const attrs *a = r->attrs;
    double sum = 0;
    for (int which = 0; which < 2; which++) {
        const fac_array *v = r->in + which * PORTS;
        const double f =
            v[SCALE].f[c] / sqrt(v[OWN_VAR].f[c] + (which ? a->other_epsilon : a->epsilon));
        sum += (v[X].f[at] - v[OWN_MEAN].f[c]) * f + v[BIAS].f[c];
    }
    return sum;
}

void fac_batch_norm_pair_running(const fac_ref *r) {
    const attrs *a = r->attrs;
    for (int which = 0; which < 2; which++) {
        const fac_array *v = r->in + which * PORTS, *running = r->out + 1 + 2 * which;
        const double keep = which ? a->other_momentum : a->momentum;
        for (int64_t c = 0; c < r->in[X].type.dims.d[1]; c++) {
            if (running[0].f) running[0].f[c] = v[MEAN].f[c] * keep + v[OWN_MEAN].f[c] * (1 - keep);
            if (running[1].f) running[1].f[c] = v[VAR].f[c] * keep + v[OWN_VAR].f[c] * (1 - keep);
        }
    }
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_dims *d = &r->in[X].type.dims;
    int64_t plane = 1;
    for (int k = 2; k < d->n; k++) plane *= d->d[k];
    for (int64_t at = 0; r->out[0].f && at < d->d[0] * d->d[1] * plane; at++)
        r->out[0].f[at] = fac_batch_norm_pair_sum(r, at / plane % d->d[1], at);
    fac_batch_norm_pair_running(r);
    return FAC_OK;
}

/* Norm number `which` by itself. */
static fac_value *norm_of(const fac_node *n, int which) {
    const attrs *a = n->attrs;
    char how[96];
    snprintf(how, sizeof how, "epsilon=%.17g momentum=%.17g", which ? a->other_epsilon : a->epsilon,
             which ? a->other_momentum : a->momentum);
    return fac_apply(n->in[X]->graph, &fac_op_batch_norm_given, how, PORTS, n->in + which * PORTS);
}

static void expand(const fac_node *n, fac_value *to[]) {
    fac_value *y = norm_of(n, 0), *other = norm_of(n, 1);
    to[0] = fac_add(y, other);
    for (int k = 1; k < 3; k++) {
        to[k] = fac_value_other(y, k);
        to[2 + k] = fac_value_other(other, k);
    }
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 5, to); }

static const fac_case cases[] = {
    { "batch_norm_pair(f32[2,3,4,5], f32[3], f32[3], f32[3], f32[3], f32[3], f32[3], f32[2,3,4,5], "
      "f32[3], f32[3], f32[3], f32[3], "
      "f32[3], f32[3]) epsilon=1e-5 momentum=0.9 other_epsilon=0.1 other_momentum=0.7",
      0.1, 2, 1e-5 },
    { "batch_norm_pair(f16[2,3,5], f32[3], f32[3], f32[3], f32[3], f32[3], f32[3], f16[2,3,5], "
      "f32[3], f32[3], f32[3], f32[3], "
      "f32[3], f32[3]) epsilon=0.01 momentum=0.5 other_epsilon=0.01",
      0.1, 2, 1e-2 },
    { "batch_norm_pair(f32[2,8,3,5], f32[8], f32[8], f32[8], f32[8], f32[8], f32[8], f32[2,8,3,5], "
      "f32[8], f32[8], f32[8], f32[8], "
      "f32[8], f32[8]) epsilon=1e-5 momentum=0.9 other_epsilon=0.1 {relu}",
      0.1, 2, 1e-5 },
    { 0 }
};

extern const fac_op fac_op_batch_norm_pair;
const fac_op fac_op_batch_norm_pair = {
    .name = "batch_norm_pair",
    .doc = "the sum of two batch normalizations in training by statistics that are there",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = fac_batch_norm_pair_infer,
    .ref = ref,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
