/* batch_norm_given, what is added, and relu; and which elements are not at or below 0, as bits: the
 * gradient of relu need not read y for that.  The bits are of the numbers before they are rounded
 * to y. Made by src/passes/norm/norm_masks.c.  Has no prototype. */
#include <math.h>
#include "op_list.h"
#include "base/error.h"
#include "ops/batch_norm_given.h"
#include "ops/bits.h"
#include "ops/cost.h"
#include "ops/map_grad.h"

enum { ADD = FAC_NORM_GIVEN, MASK = 3 };

static const fac_attr table[] = { { "epsilon", FAC_A_REAL, offsetof(fac_norm_given, epsilon), 0, 0,
                                    0, 0, NULL, "added to the variance" },
                                  { "momentum", FAC_A_REAL, offsetof(fac_norm_given, momentum), 0,
                                    0, 0, 0, NULL, "share of the old running statistics" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "scale", FAC_FLOATS, 0 },
                               { "bias", FAC_FLOATS, 0 },
                               { "mean", FAC_FLOATS, 0 },
                               { "var", FAC_FLOATS, 0 },
                               { "own_mean", FAC_FLOATS, 0 },
                               { "own_var", FAC_FLOATS, 0 },
                               { "add", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 },
                                { "running_mean", FAC_FLOATS, FAC_OPTIONAL },
                                { "running_var", FAC_FLOATS, FAC_OPTIONAL },
                                { "mask", FAC_INTS, FAC_OPTIONAL },
                                { 0 } };

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type, *add = n->in[ADD] ? &n->in[ADD]->type : x;
    if (x->dims.n != 4)
        return fac_fail(n, FAC_E_SHAPE, "x must be [images, channels, height, width]");
    if (add->dtype != x->dtype || !fac_dims_equal(&add->dims, &x->dims))
        return fac_fail(n, FAC_E_SHAPE, "x and add differ");
    if (!fac_batch_norm_given_infer(n)) return false;
    n->out[MASK]->type = (fac_type){ FAC_U8, fac_bits_dims(&x->dims) };
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    fac_array kept[] = { { .f = NULL }, r->out[1], r->out[2] };
    const fac_ref running = { r->attrs, FAC_NORM_GIVEN, 3, r->in, kept };
    FAC_TRY(fac_batch_norm_given_ref(&running, err));
    const fac_dims *d = &r->in[0].type.dims;
    const int64_t plane = d->d[2] * d->d[3];
    for (int64_t c = 0; c < d->d[1]; c++) {
        const double mean = r->in[5].f[c],
                     f = r->in[1].f[c] /
                         sqrt(r->in[6].f[c] + ((const fac_norm_given *)r->attrs)->epsilon);
        for (int64_t i = 0; i < d->d[0] * plane; i++) {
            const int64_t at = (i / plane * d->d[1] + c) * plane + i % plane;
            const double v =
                (r->in[0].f[at] - mean) * f + r->in[2].f[c] + (r->in[ADD].f ? r->in[ADD].f[at] : 0);
            int bit;
            int64_t *byte =
                r->out[MASK].i ? r->out[MASK].i + fac_bits_at(d, plane, at, &bit) : NULL;
            if (r->out[0].f) r->out[0].f[at] = v > 0 || isnan(v) ? v : 0;
            if (byte)
                *byte = (bit ? *byte : 0) | (int64_t) !(v <= 0)
                                                << bit; /* a byte's first channel comes first */
        }
    }
    return FAC_OK;
}

/* Sums in no less than f32. */
static void expand(const fac_node *n, fac_value *to[]) {
    const fac_dtype dtype = n->in[0]->type.dtype, wide = fac_grad_wide(dtype);
    fac_value *args[FAC_NORM_GIVEN];
    for (int k = 0; k < FAC_NORM_GIVEN; k++) args[k] = k ? n->in[k] : fac_grad_as(n->in[0], wide);
    fac_value *v = fac_emit(&fac_op_batch_norm_given, n->attrs, FAC_NORM_GIVEN, args);
    for (int k = 1; k < MASK; k++) to[k] = fac_value_other(v, k);
    if (n->in[ADD]) v = fac_add(v, fac_grad_as(n->in[ADD], wide));
    to[0] = fac_grad_as(fac_relu(v), dtype);
    to[MASK] = fac_bits_of(fac_not(fac_less_or_equal(v, fac_grad_number(v, 0))));
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, n->in[ADD] ? 4 : 3, to); }

static const fac_case cases[] = { { "batch_norm_given_relu(f32[2,6,4,5], f32[6], f32[6], f32[6], "
                                    "f32[6], f32[6], f32[6], f32[2,6,4,5]) epsilon=0.1 "
                                    "momentum=0.9",
                                    0.1, 2, 1e-5 },
                                  { "batch_norm_given_relu(f32[3,4,1,5], f32[4], f32[4], f32[4], "
                                    "f32[4], f32[4], f32[4]) epsilon=0.01 momentum=0.5",
                                    0.1, 2, 1e-5 },
                                  { "batch_norm_given_relu(f16[2,5,3,3], f32[5], f32[5], f32[5], "
                                    "f32[5], f32[5], f32[5], f16[2,5,3,3]) epsilon=0.1 "
                                    "momentum=0.9",
                                    0.1, 2, 1e-2 },
                                  { 0 } };

extern const fac_op fac_op_batch_norm_given_relu;
const fac_op fac_op_batch_norm_given_relu = {
    .name = "batch_norm_given_relu",
    .doc = "batch_norm_given, an addend and relu, with bits of what relu lets pass",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(fac_norm_given),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
