/* The gradient of batch normalization in training whose sums are there already: conv2d_grad_x_norm
 * made them.  Made by src/passes/norm/norm_sums.c.  Has no prototype.
 *
 *     dx = scale / sqrt(var + epsilon) (dy - dbias / n - (x - mean) / sqrt(var + epsilon) dscale /
 *         n)     n elements a channel */
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
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },     { "dy", FAC_FLOATS, 0 },
                               { "scale", FAC_FLOATS, 0 }, { "mean", FAC_FLOATS, 0 },
                               { "var", FAC_FLOATS, 0 },   { "dscale", FAC_FLOATS, 0 },
                               { "dbias", FAC_FLOATS, 0 }, { 0 } };
static const fac_port out[] = { { "dx", FAC_FLOATS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type, *dy = &n->in[1]->type;
    if (x->dims.n < 2 || dy->dtype != x->dtype || !fac_dims_equal(&dy->dims, &x->dims))
        return fac_fail(n, FAC_E_SHAPE, "x and dy differ, or have no channels");
    for (int k = 2; k < 7; k++) {
        const fac_dims *d = &n->in[k]->type.dims;
        if (d->n != 1 || (d->d[0] != x->dims.d[1] && d->d[0] >= 0 && x->dims.d[1] >= 0))
            return fac_fail(n, FAC_E_SHAPE, "%s must have one number for each of the %lld channels",
                            in[k].name, (long long)x->dims.d[1]);
    }
    n->out[0]->type = *x;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_dims *d = &r->in[0].type.dims;
    int64_t plane = 1;
    for (int k = 2; k < d->n; k++) plane *= d->d[k];
    const double count = (double)(d->d[0] * plane);
    for (int64_t c = 0; c < d->d[1]; c++) {
        const double inverse = 1 / sqrt(r->in[4].f[c] + ((const attrs *)r->attrs)->epsilon);
        for (int64_t i = 0; i < d->d[0] * plane; i++) {
            const int64_t at = (i / plane * d->d[1] + c) * plane + i % plane;
            const double hat = (r->in[0].f[at] - r->in[3].f[c]) * inverse;
            r->out[0].f[at] =
                r->in[2].f[c] * inverse *
                (r->in[1].f[at] - r->in[6].f[c] / count - hat * r->in[5].f[c] / count);
        }
    }
    return FAC_OK;
}

/* The formula above, in no less than f32. */
static void expand(const fac_node *n, fac_value *to[]) {
    enum { X, DY, SCALE, MEAN, VAR, DSCALE, DBIAS };
    const fac_dtype dtype = n->in[X]->type.dtype, wide = fac_grad_wide(dtype);
    fac_value *x = fac_grad_as(n->in[X], wide), *of[DBIAS + 1];
    for (int k = SCALE; k <= DBIAS; k++) of[k] = fac_grad_of_channels(n->in[k], x);
    fac_value *inverse =
        fac_reciprocal(fac_sqrt(fac_grad_shifted(of[VAR], ((const attrs *)n->attrs)->epsilon)));
    fac_value *along =
        fac_mul(fac_sub(x, of[MEAN]), fac_mul(inverse, fac_grad_share(of[DSCALE], x, of[MEAN])));
    fac_value *rest = fac_sub(
        fac_sub(fac_grad_as(n->in[DY], wide), fac_grad_share(of[DBIAS], x, of[MEAN])), along);
    to[0] = fac_grad_as(fac_mul(fac_mul(of[SCALE], inverse), rest), dtype);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 4, to); }

static const fac_case cases[] = { { "batch_norm_grad_given(f32[2,3,4,5], f32[2,3,4,5], f32[3], "
                                    "f32[3], f32[3], f32[3], f32[3]) epsilon=1e-5",
                                    0.1, 2, 1e-5 },
                                  { "batch_norm_grad_given(f16[2,3,5], f16[2,3,5], f32[3], f32[3], "
                                    "f32[3], f32[3], f32[3]) epsilon=0.01",
                                    0.1, 2, 1e-2 },
                                  { 0 } };

extern const fac_op fac_op_batch_norm_grad_given;
const fac_op fac_op_batch_norm_grad_given = {
    .name = "batch_norm_grad_given",
    .doc = "the gradient of batch normalization, given its precomputed sums",
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
