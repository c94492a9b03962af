/* The sums that the gradient of batch normalization begins with, where the batch's statistics are
 * there already.  Made by src/passes/norm/norm_pairs.c.  Has no prototype.
 *
 *     dbias = sum dy,   dscale = sum dy (x - mean) / sqrt(var + epsilon)      of each channel */
#include <math.h>
#include "facula/op.h"
#include "ops/cost.h"
#include "ops/map_grad.h"

typedef struct attrs {
    double epsilon;
} attrs;
static const fac_attr table[] = { { "epsilon", FAC_A_REAL, offsetof(attrs, epsilon), 0, 0, 0, 0,
                                    NULL, "added to the variance" },
                                  { 0 } };
enum { X, DY, MEAN, VAR, PORTS };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "dy", FAC_FLOATS, 0 },
                               { "mean", FAC_FLOATS, 0 },
                               { "var", FAC_FLOATS, 0 },
                               { 0 } };
static const fac_port out[] = { { "dscale", FAC_FLOATS, 0 },
                                { "dbias", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

/* The results are of the statistics' type. */
static bool infer(fac_node *n) {
    const fac_type *x = &n->in[X]->type, *dy = &n->in[DY]->type;
    if (x->dims.n < 2 || dy->dtype != x->dtype || !fac_dims_equal(&dy->dims, &x->dims))
        return fac_fail(n, FAC_E_SHAPE, "x and dy differ, or have no channels");
    for (int k = MEAN; k < PORTS; k++) {
        const fac_dims *d = &n->in[k]->type.dims;
        if (d->n != 1 || (d->d[0] != x->dims.d[1] && d->d[0] >= 0 && x->dims.d[1] >= 0))
            return fac_fail(n, FAC_E_SHAPE, "%s must have one number for each of the %lld channels",
                            in[k].name, (long long)x->dims.d[1]);
    }
    for (int k = 0; k < n->nout; k++) n->out[k]->type = n->in[MEAN]->type;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_dims *d = &r->in[X].type.dims;
    int64_t plane = 1;
    for (int k = 2; k < d->n; k++) plane *= d->d[k];
    for (int64_t c = 0; c < d->d[1]; c++) {
        double sum = 0, along = 0;
        for (int64_t i = 0; i < d->d[0] * plane; i++) {
            const int64_t at = (i / plane * d->d[1] + c) * plane + i % plane;
            sum += r->in[DY].f[at];
            along += r->in[DY].f[at] * (r->in[X].f[at] - r->in[MEAN].f[c]);
        }
        if (r->out[0].f)
            r->out[0].f[c] = along / sqrt(r->in[VAR].f[c] + ((const attrs *)r->attrs)->epsilon);
        if (r->out[1].f) r->out[1].f[c] = sum;
    }
    return FAC_OK;
}

/* The formula above, in no less than f32, or what the sums have. */
static void expand(const fac_node *n, fac_value *to[]) {
    const fac_dtype sums = n->out[0]->type.dtype,
                    wide = sums == FAC_F64 ? sums : fac_grad_wide(n->in[X]->type.dtype);
    fac_dims over = { .n = 1 };
    for (int k = 2; k < n->in[X]->type.dims.n; k++) over.d[over.n++] = k;
    fac_value *x = fac_grad_as(n->in[X], wide), *dy = fac_grad_as(n->in[DY], wide);
    fac_value *along =
        fac_sum(fac_mul(dy, fac_sub(x, fac_grad_of_channels(n->in[MEAN], x))), over, false);
    fac_value *var =
        fac_grad_shifted(fac_grad_as(n->in[VAR], wide), ((const attrs *)n->attrs)->epsilon);
    to[0] = fac_grad_as(fac_mul(along, fac_reciprocal(fac_sqrt(var))), sums);
    to[1] = fac_grad_as(fac_sum(dy, over, false), sums);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 4, to); }

static const fac_case cases[] = {
    { "batch_norm_sums(f32[2,3,4,5], f32[2,3,4,5], f32[3], f32[3]) epsilon=1e-5", 0.1, 2, 1e-5 },
    { "batch_norm_sums(f16[2,3,5], f16[2,3,5], f32[3], f32[3]) epsilon=0.01", 0.1, 2, 1e-2 },
    { "batch_norm_sums(f32[6,24,9,11], f32[6,24,9,11], f32[24], f32[24]) epsilon=1e-5", 0.1, 2,
      1e-5 },
    { 0 }
};

extern const fac_op fac_op_batch_norm_sums;
const fac_op fac_op_batch_norm_sums = {
    .name = "batch_norm_sums",
    .doc = "what the gradient of batch normalization sums, by statistics that are there",
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
