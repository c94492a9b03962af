#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_asin(fac_value *x); /* inverse sine; NaN outside -1..1 */
#endif

MAP1(ASIN(x))

/* 1 / sqrt(1 - x^2) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0];
    dx[0] = fac_div(dy[0], fac_sqrt(fac_grad_rest(fac_mul(x, x))));
}

static const fac_onnx onnx[] = { { "", "Asin", 7, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "asin(f32[2,37])", -1, 1, 1e-6 },
                                  { "asin(f64[5])", -1, 1, 1e-12 },
                                  { "asin(f16[9])", -1, 1, 2e-3 },
                                  { "asin(bf16[9])", -1, 1, 1e-2 },
                                  { "asin(f32[0,3])", 0, 0, 0 },
                                  { "asin(f32[])", -1, 1, 1e-6 },
                                  { 0 } };

const fac_op fac_op_asin = {
    MAP1_OP("asin", "inverse sine"),
    .grad = grad,
    .mixed = FAC_MIXED_SENSITIVE,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_asin(fac_value *x) { return fac_emit(&fac_op_asin, NULL, 1, &x); }
