/* Input gradients of two training batch norms whose outputs were added, given their precomputed
 * sums.  dy is read once for both.  Made by src/passes/norm/norm_pairs.c.  Has no prototype.
 *
 *     dx = s (dy - dbias / n - (x - mean) / sqrt(var + epsilon) dscale / n)
 *     s  = scale / sqrt(var + epsilon), n elements a channel */
#include <math.h>
#include <stdio.h>
#include "op_list.h"
#include "ops/cost.h"
#include "ops/grad.h"

typedef struct attrs {
    double epsilon, other_epsilon;
} attrs;
static const fac_attr table[] = { { "epsilon", FAC_A_REAL, offsetof(attrs, epsilon), 0, 0, 0, 0,
                                    NULL, "added to the variance" },
                                  { "other_epsilon", FAC_A_REAL, offsetof(attrs, other_epsilon), 0,
                                    0, 0, 0, NULL, "epsilon of the other norm" },
                                  { 0 } };
/* After dy twice what batch_norm_grad_given has. */
enum { DY, EACH = 6, X = 1, SCALE, MEAN, VAR, DSCALE, DBIAS, PORTS = 1 + 2 * EACH };
static const fac_port in[] = { { "dy", FAC_FLOATS, 0 },          { "x", FAC_FLOATS, 0 },
                               { "scale", FAC_FLOATS, 0 },       { "mean", FAC_FLOATS, 0 },
                               { "var", FAC_FLOATS, 0 },         { "dscale", FAC_FLOATS, 0 },
                               { "dbias", FAC_FLOATS, 0 },       { "other_x", FAC_FLOATS, 0 },
                               { "other_scale", FAC_FLOATS, 0 }, { "other_mean", FAC_FLOATS, 0 },
                               { "other_var", FAC_FLOATS, 0 },   { "other_dscale", FAC_FLOATS, 0 },
                               { "other_dbias", FAC_FLOATS, 0 }, { 0 } };
static const fac_port out[] = { { "dx", FAC_FLOATS, 0 },
                                { "other_dx", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

static bool infer(fac_node *n) {
    const fac_type *dy = &n->in[DY]->type;
    for (int k = 1; k < PORTS; k++) {
        const fac_type *t = &n->in[k]->type;
        if ((k - X) % EACH == 0) {
            if (dy->dims.n < 2 || t->dtype != dy->dtype || !fac_dims_equal(&t->dims, &dy->dims))
                return fac_fail(n, FAC_E_SHAPE, "%s and dy differ, or have no channels",
                                in[k].name);
        } else if (t->dims.n != 1 ||
                   (t->dims.d[0] != dy->dims.d[1] && t->dims.d[0] >= 0 && dy->dims.d[1] >= 0)) {
            return fac_fail(n, FAC_E_SHAPE, "%s must have one number for each of the %lld channels",
                            in[k].name, (long long)dy->dims.d[1]);
        }
    }
    for (int k = 0; k < n->nout; k++) n->out[k]->type = *dy;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const attrs *a = r->attrs;
    const fac_dims *d = &r->in[DY].type.dims;
    int64_t plane = 1;
    for (int k = 2; k < d->n; k++) plane *= d->d[k];
    const double count = (double)(d->d[0] * plane);
    for (int which = 0; which < 2; which++) {
        const fac_array *v = r->in + which * EACH;
        for (int64_t c = 0; r->out[which].f && c < d->d[1]; c++) {
            const double inverse = 1 / sqrt(v[VAR].f[c] + (which ? a->other_epsilon : a->epsilon));
            for (int64_t i = 0; i < d->d[0] * plane; i++) {
                const int64_t at = (i / plane * d->d[1] + c) * plane + i % plane;
                const double hat = (v[X].f[at] - v[MEAN].f[c]) * inverse;
                r->out[which].f[at] =
                    v[SCALE].f[c] * inverse *
                    (r->in[DY].f[at] - v[DBIAS].f[c] / count - hat * v[DSCALE].f[c] / count);
            }
        }
    }
    return FAC_OK;
}

static void expand(const fac_node *n, fac_value *to[]) {
    const attrs *a = n->attrs;
    for (int which = 0; which < 2; which++) {
        fac_value *const *v = n->in + which * EACH;
        fac_value *of[] = { v[X], n->in[DY], v[SCALE], v[MEAN], v[VAR], v[DSCALE], v[DBIAS] };
        char how[48];
        snprintf(how, sizeof how, "epsilon=%.17g", which ? a->other_epsilon : a->epsilon);
        to[which] = fac_apply(v[X]->graph, &fac_op_batch_norm_grad_given, how, 7, of);
    }
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 8, to); }

static const fac_case cases[] = {
    { "batch_norm_grad_pair(f32[2,3,4,5], f32[2,3,4,5], f32[3], f32[3], f32[3], f32[3], f32[3], "
      "f32[2,3,4,5], f32[3], f32[3], f32[3], "
      "f32[3], f32[3]) epsilon=1e-5 other_epsilon=0.1",
      0.1, 2, 1e-5 },
    { "batch_norm_grad_pair(f16[2,8,5], f16[2,8,5], f32[8], f32[8], f32[8], f32[8], f32[8], "
      "f16[2,8,5], f32[8], f32[8], f32[8], "
      "f32[8], f32[8]) epsilon=0.01 other_epsilon=0.01",
      0.1, 2, 1e-2 },
    { 0 }
};

extern const fac_op fac_op_batch_norm_grad_pair;
const fac_op fac_op_batch_norm_grad_pair = {
    .name = "batch_norm_grad_pair",
    .doc = "the gradients of two batch normalizations that were added, given precomputed sums",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
