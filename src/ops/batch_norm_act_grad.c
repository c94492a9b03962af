/* The gradient of batch normalization with an activation after it, relu or relu6, in one pass over
 * memory less.  Made by src/passes/norm/norm_epilogue.c; has no prototype. */
#include <math.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/batch_norm_ref.h"
#include "ops/cost.h"
#include "ops/map_grad.h"

/* batch_norm_grad(x, dy but 0 where y <= lo or y >= hi, scale); y, the result of the activation,
 * has the shape of x. */
typedef struct attrs {
    double epsilon, lo, hi;
} attrs;
static const fac_attr table[] = { { "epsilon", FAC_A_REAL, offsetof(attrs, epsilon), 0, 0, 0, 0,
                                    NULL, "added to the variance" },
                                  { "lo", FAC_A_REAL, offsetof(attrs, lo), 0, 0, 0, 0, NULL,
                                    "nothing passes where y is at or below it" },
                                  { "hi", FAC_A_REAL, offsetof(attrs, hi), 0, 0, 0, 0, NULL,
                                    "nothing passes where y is at or above it" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "dy", FAC_FLOATS, 0 },
                               { "scale", FAC_FLOATS, 0 },
                               { "y", FAC_FLOATS, 0 },
                               { 0 } };
static const fac_port out[] = { { "dx", FAC_FLOATS, 0 },
                                { "dscale", FAC_FLOATS, FAC_OPTIONAL },
                                { "dbias", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type, *scale = &n->in[2]->type;
    for (int i = 1; i < 4; i += 2) {
        const fac_type *t = &n->in[i]->type;
        if (x->dims.n < 1 || t->dtype != x->dtype || !fac_dims_equal(&t->dims, &x->dims))
            return fac_fail(n, FAC_E_SHAPE, "x and %s differ", in[i].name);
    }
    if (scale->dims.n != 1 || scale->dims.d[0] != (x->dims.n > 1 ? x->dims.d[1] : 1))
        return fac_fail(n, FAC_E_SHAPE, "scale must have one number for each channel");
    n->out[0]->type = *x;
    n->out[1]->type = n->out[2]->type = *scale;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const attrs *a = r->attrs;
    (void)err;
    fac_batch_norm_grad_ref(r, a->epsilon, r->in[3].f, a->lo, a->hi);
    return FAC_OK;
}

static void expand(const fac_node *n, fac_value *to[]) {
    const attrs *a = n->attrs;
    fac_value *dy = n->in[1];
    if (a->hi < INFINITY) dy = fac_grad_short_of(n->in[3], a->hi, dy);
    if (a->lo > -INFINITY) dy = fac_grad_past(n->in[3], a->lo, dy);
    to[0] = fac_batch_norm_grad(n->in[0], dy, n->in[2], a->epsilon);
    to[1] = fac_value_other(to[0], 1);
    to[2] = fac_value_other(to[0], 2);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 12, to); }

static const fac_case cases[] = {
    { "batch_norm_act_grad(f32[2,3,4,5], f32[2,3,4,5], f32[3], f32[2,3,4,5]) epsilon=1e-5 hi=1", -2,
      2, 1e-5 },
    { "batch_norm_act_grad(f32[6,7], f32[6,7], f32[7], f32[6,7]) epsilon=0.01 lo=-1 hi=9", -2, 2,
      1e-5 },
    { 0 }
};

extern const fac_op fac_op_batch_norm_act_grad;
const fac_op fac_op_batch_norm_act_grad = {
    .name = "batch_norm_act_grad",
    .doc = "the gradient of batch normalization and an activation",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
