#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_acosh(fac_value *x); /* inverse hyperbolic cosine; NaN below 1 */
#endif

MAP1(ACOSH(x))

/* 1 / sqrt(x^2 - 1) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0];
    dx[0] = fac_div(dy[0], fac_sqrt(fac_grad_shifted(fac_mul(x, x), -1)));
}

static const fac_onnx onnx[] = { { "", "Acosh", 9, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "acosh(f32[2,37])", 1, 9, 1e-6 },
                                  { "acosh(f64[5])", 1, 9, 1e-12 },
                                  { "acosh(f16[9])", 1, 9, 2e-3 },
                                  { "acosh(bf16[9])", 1, 9, 1e-2 },
                                  { "acosh(f32[0,3])", 0, 0, 0 },
                                  { "acosh(f32[])", 1, 9, 1e-6 },
                                  { 0 } };

const fac_op fac_op_acosh = {
    MAP1_OP("acosh", "inverse hyperbolic cosine"),
    .grad = grad,
    .mixed = FAC_MIXED_SENSITIVE,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_acosh(fac_value *x) { return fac_emit(&fac_op_acosh, NULL, 1, &x); }
