#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_atanh(fac_value *x); /* inverse hyperbolic tangent; NaN outside -1..1 */
#endif

MAP1(ATANH(x))

/* 1 / (1 - x^2) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0];
    dx[0] = fac_div(dy[0], fac_grad_rest(fac_mul(x, x)));
}

static const fac_onnx onnx[] = { { "", "Atanh", 9, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "atanh(f32[2,37])", -0.9, 0.9, 1e-6 },
                                  { "atanh(f64[5])", -0.9, 0.9, 1e-12 },
                                  { "atanh(f16[9])", -0.9, 0.9, 2e-3 },
                                  { "atanh(bf16[9])", -0.9, 0.9, 1e-2 },
                                  { "atanh(f32[0,3])", 0, 0, 0 },
                                  { "atanh(f32[])", -0.9, 0.9, 1e-6 },
                                  { 0 } };

const fac_op fac_op_atanh = {
    MAP1_OP("atanh", "inverse hyperbolic tangent"),
    .grad = grad,
    .mixed = FAC_MIXED_SENSITIVE,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_atanh(fac_value *x) { return fac_emit(&fac_op_atanh, NULL, 1, &x); }
