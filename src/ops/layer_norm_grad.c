/* The gradient of layer_norm. */
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/norm.h"

#if FAC_INTERFACE
/* With hat = (x - mean) / sqrt(var + epsilon), mean and var over the dims axis.. of x (a negative
 * axis counts from the end), n numbers, and g = dy scale:
 *   dx = (g - mean g - hat mean(g hat)) / sqrt(var + epsilon),   dscale = sum dy hat,   dbias = sum
 *       dy
 * x, dy of one type   scale: the dims axis.. of x, may be NULL
 * Outputs 1 and 2 are dscale and dbias, summed over the dims before axis. */
fac_value *fac_layer_norm_grad(fac_value *x, fac_value *dy, fac_value *scale, int64_t axis,
                               double epsilon);
#endif

typedef struct attrs {
    int64_t axis;
    double epsilon;
} attrs;
static const fac_attr table[] = { { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS,
                                    FAC_DIMS - 1, NULL, "the first normalized dim" },
                                  { "epsilon", FAC_A_REAL, offsetof(attrs, epsilon), 0, 0, 0, 0,
                                    NULL, "added to the variance" },
                                  { 0 } };
static const fac_port in[] = {
    { "x", FAC_FLOATS, 0 }, { "dy", FAC_FLOATS, 0 }, { "scale", FAC_FLOATS, FAC_OPTIONAL }, { 0 }
};
static const fac_port out[] = { { "dx", FAC_FLOATS, 0 },
                                { "dscale", FAC_FLOATS, FAC_OPTIONAL },
                                { "dbias", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

static bool infer(fac_node *n) { return fac_norm_grad_infer(n, ((const attrs *)n->attrs)->axis); }

static void expand(const fac_node *n, fac_value *to[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0], *dy = n->in[1], *scale = n->in[2];
    const int axis = fac_axis(a->axis, x->type.dims.n);
    fac_dims over = { 0 }, before = { 0 };
    for (int k = 0; k < x->type.dims.n; k++) {
        fac_dims *d = k < axis ? &before : &over;
        d->d[d->n++] = k;
    }
    const fac_standard s = fac_grad_standard(x, over, a->epsilon);
    to[0] = fac_grad_unstandard(&s, scale ? fac_mul(dy, scale) : dy);
    to[1] = fac_mul(dy, s.hat);
    to[2] = dy;
    for (int k = 1; k < 3 && before.n; k++) to[k] = fac_sum(to[k], before, false);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 14, to); }

static const fac_case cases[] = {
    { "layer_norm_grad(f32[2,3,8], f32[2,3,8], f32[8]) axis=-1 epsilon=1e-5", -2, 2, 2e-5 },
    { "layer_norm_grad(f32[4,3,7], f32[4,3,7], f32[3,7]) axis=1 epsilon=1e-3", -2, 2, 2e-5 },
    { "layer_norm_grad(f32[5,33], f32[5,33], -) axis=1 epsilon=1e-5", -2, 2, 2e-5 },
    { "layer_norm_grad(f32[6,5], f32[6,5], f32[6,5]) axis=0 epsilon=0.01", -2, 2, 2e-5 },
    { "layer_norm_grad(f32[0,8], f32[0,8], f32[8]) axis=-1 epsilon=1e-5", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_layer_norm_grad;
const fac_op fac_op_layer_norm_grad = {
    .name = "layer_norm_grad",
    .doc = "the gradient of layer_norm",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_layer_norm_grad(fac_value *x, fac_value *dy, fac_value *scale, int64_t axis,
                               double epsilon) {
    return fac_emit(&fac_op_layer_norm_grad, &(attrs){ axis, epsilon }, 3,
                    (fac_value *[]){ x, dy, scale });
}
