/* batch_norm_pair and relu; and which elements are not at or below 0, as bits: the gradient of relu
 * need not read y for that.  The bits are of the numbers before they are rounded to y.  Made by
 * src/passes/norm/norm_pairs.c of what norm_masks.c made.  Has no prototype. */
#include <math.h>
#include "op_list.h"
#include "ops/batch_norm_pair.h"
#include "ops/bits.h"
#include "ops/cost.h"
#include "ops/map_grad.h"

enum { MASK = FAC_NORM_PAIR_OUT };

static const fac_attr table[] = {
    { "epsilon", FAC_A_REAL, offsetof(fac_norm_pair, epsilon), 0, 0, 0, 0, NULL,
      "added to the variance" },
    { "momentum", FAC_A_REAL, offsetof(fac_norm_pair, momentum), 0, 0, 0, 0, NULL,
      "share of the old running statistics" },
    { "other_epsilon", FAC_A_REAL, offsetof(fac_norm_pair, other_epsilon), 0, 0, 0, 0, NULL,
      "epsilon of the other norm" },
    { "other_momentum", FAC_A_REAL, offsetof(fac_norm_pair, other_momentum), 0, 0, 0, 0, NULL,
      "momentum of the other norm" },
    { 0 }
};
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
                                { "mask", FAC_INTS, FAC_OPTIONAL },
                                { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    if (x->n != 4) return fac_fail(n, FAC_E_SHAPE, "x must be [images, channels, height, width]");
    if (!fac_batch_norm_pair_infer(n)) return false;
    n->out[MASK]->type = (fac_type){ FAC_U8, fac_bits_dims(x) };
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_dims *d = &r->in[0].type.dims;
    const int64_t plane = d->d[2] * d->d[3];
    for (int64_t at = 0; at < fac_dims_count(d); at++) {
        const double v = fac_batch_norm_pair_sum(r, at / plane % d->d[1], at);
        int bit;
        int64_t *byte = r->out[MASK].i ? r->out[MASK].i + fac_bits_at(d, plane, at, &bit) : NULL;
        if (r->out[0].f) r->out[0].f[at] = v > 0 || isnan(v) ? v : 0;
        if (byte)
            *byte = (bit ? *byte : 0) | (int64_t) !(v <= 0)
                                            << bit; /* a byte's first channel comes first */
    }
    fac_batch_norm_pair_running(r);
    return FAC_OK;
}

/* Sums in no less than f32. */
static void expand(const fac_node *n, fac_value *to[]) {
    enum { OTHER = FAC_NORM_PAIR / 2 };
    const fac_dtype dtype = n->in[0]->type.dtype, wide = fac_grad_wide(dtype);
    fac_value *args[FAC_NORM_PAIR];
    for (int k = 0; k < FAC_NORM_PAIR; k++)
        args[k] = k % OTHER ? n->in[k] : fac_grad_as(n->in[k], wide);
    fac_value *v = fac_emit(&fac_op_batch_norm_pair, n->attrs, FAC_NORM_PAIR, args);
    for (int k = 1; k < MASK; k++) to[k] = fac_value_other(v, k);
    to[0] = fac_grad_as(fac_relu(v), dtype);
    to[MASK] = fac_bits_of(fac_not(fac_less_or_equal(v, fac_grad_number(v, 0))));
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 6, to); }

static const fac_case cases[] = {
    { "batch_norm_pair_relu(f32[2,6,4,5], f32[6], f32[6], f32[6], f32[6], f32[6], f32[6], "
      "f32[2,6,4,5], f32[6], f32[6], f32[6], f32[6], "
      "f32[6], f32[6]) epsilon=0.1 momentum=0.9 other_epsilon=0.2 other_momentum=0.7",
      0.1, 2, 1e-5 },
    { "batch_norm_pair_relu(f16[2,8,3,3], f32[8], f32[8], f32[8], f32[8], f32[8], f32[8], "
      "f16[2,8,3,3], f32[8], f32[8], f32[8], f32[8], "
      "f32[8], f32[8]) epsilon=0.1 momentum=0.5 other_epsilon=0.1",
      0.1, 2, 1e-2 },
    { 0 }
};

extern const fac_op fac_op_batch_norm_pair_relu;
const fac_op fac_op_batch_norm_pair_relu = {
    .name = "batch_norm_pair_relu",
    .doc = "batch_norm_pair and relu, with bits of what relu lets pass",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(fac_norm_pair),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
