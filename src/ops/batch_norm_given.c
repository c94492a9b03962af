/* Batch normalization in training whose batch's statistics are there already: conv2d_moments made
 * them.  Made by src/passes/norm/norm_moments.c.  Has no prototype. */
#include <math.h>
#include "ops/batch_norm_given.h"
#include "ops/cost.h"
#include "ops/grad.h"

typedef fac_norm_given attrs;
static const fac_attr table[] = { { "epsilon", FAC_A_REAL, offsetof(attrs, epsilon), 0, 0, 0, 0,
                                    NULL, "added to the variance" },
                                  { "momentum", FAC_A_REAL, offsetof(attrs, momentum), 0, 0, 0, 0,
                                    NULL, "share of the old running statistics" },
                                  { 0 } };
/* mean, var: the running statistics; own_mean, own_var: of x */
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },       { "scale", FAC_FLOATS, 0 },
                               { "bias", FAC_FLOATS, 0 },    { "mean", FAC_FLOATS, 0 },
                               { "var", FAC_FLOATS, 0 },     { "own_mean", FAC_FLOATS, 0 },
                               { "own_var", FAC_FLOATS, 0 }, { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 },
                                { "running_mean", FAC_FLOATS, FAC_OPTIONAL },
                                { "running_var", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

bool fac_batch_norm_given_infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    if (x->n < 2) return fac_fail(n, FAC_E_SHAPE, "x must have a channel dim");
    for (int k = 1; k < FAC_NORM_GIVEN; k++) {
        const fac_dims *d = &n->in[k]->type.dims;
        if (d->n != 1 || (d->d[0] != x->d[1] && d->d[0] >= 0 && x->d[1] >= 0))
            return fac_fail(n, FAC_E_SHAPE, "%s must have one number for each of the %lld channels",
                            in[k].name, (long long)x->d[1]);
    }
    n->out[0]->type = n->in[0]->type;
    for (int k = 1; k < n->nout; k++) n->out[k]->type = n->in[2 + k]->type;
    return true;
}

fac_status fac_batch_norm_given_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const attrs *a = r->attrs;
    const fac_dims *d = &r->in[0].type.dims;
    int64_t plane = 1;
    for (int k = 2; k < d->n; k++) plane *= d->d[k];
    for (int64_t c = 0; c < d->d[1]; c++) {
        const double mean = r->in[5].f[c], var = r->in[6].f[c],
                     f = r->in[1].f[c] / sqrt(var + a->epsilon);
        for (int64_t i = 0; r->out[0].f && i < d->d[0] * plane; i++) {
            const int64_t at = (i / plane * d->d[1] + c) * plane + i % plane;
            r->out[0].f[at] = (r->in[0].f[at] - mean) * f + r->in[2].f[c];
        }
        if (r->out[1].f) r->out[1].f[c] = r->in[3].f[c] * a->momentum + mean * (1 - a->momentum);
        if (r->out[2].f) r->out[2].f[c] = r->in[4].f[c] * a->momentum + var * (1 - a->momentum);
    }
    return FAC_OK;
}

/* old momentum + own (1 - momentum), in no less than f32. */
static fac_value *running(const fac_node *n, fac_value *old, fac_value *own) {
    const fac_dtype dtype = old->type.dtype, wide = fac_grad_wide(dtype);
    const double keep = ((const attrs *)n->attrs)->momentum;
    fac_value *kept = fac_grad_times(fac_grad_as(old, wide), keep),
              *come = fac_grad_times(fac_grad_as(own, wide), 1 - keep);
    return fac_grad_as(fac_add(kept, come), dtype);
}

/* What the norm is in inference, by the statistics of the batch. */
static void expand(const fac_node *n, fac_value *to[]) {
    enum { X, SCALE, BIAS, MEAN, VAR, OWN_MEAN, OWN_VAR };
    fac_value *const *v = n->in;
    to[0] = fac_batch_norm(v[X], v[SCALE], v[BIAS], v[OWN_MEAN], v[OWN_VAR],
                           ((const attrs *)n->attrs)->epsilon);
    to[1] = running(n, v[MEAN], v[OWN_MEAN]);
    to[2] = running(n, v[VAR], v[OWN_VAR]);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 2, to); }

static const fac_case cases[] = {
    { "batch_norm_given(f32[2,3,4,5], f32[3], f32[3], f32[3], f32[3], f32[3], f32[3]) epsilon=1e-5 "
      "momentum=0.9",
      0.1, 2, 1e-5 },
    { "batch_norm_given(f16[2,3,5], f32[3], f32[3], f32[3], f32[3], f32[3], f32[3]) epsilon=0.01 "
      "momentum=0.5",
      0.1, 2, 1e-2 },
    { "batch_norm_given(f32[2,3,4,5], f32[3], f32[3], f32[3], f32[3], f32[3], f32[3], "
      "f32[2,3,4,5]) epsilon=1e-5 momentum=0.9 "
      "{add(_, x1) relu}",
      0.1, 2, 1e-5 },
    { 0 }
};

extern const fac_op fac_op_batch_norm_given;
const fac_op fac_op_batch_norm_given = {
    .name = "batch_norm_given",
    .doc = "batch normalization in training by statistics that are there",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = fac_batch_norm_given_infer,
    .ref = fac_batch_norm_given_ref,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
