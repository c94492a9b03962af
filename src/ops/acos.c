#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_acos(fac_value *x); /* inverse cosine; NaN outside -1..1 */
#endif

MAP1(ACOS(x))

/* -1 / sqrt(1 - x^2) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0];
    dx[0] = fac_neg(fac_div(dy[0], fac_sqrt(fac_grad_rest(fac_mul(x, x)))));
}

static const fac_onnx onnx[] = { { "", "Acos", 7, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "acos(f32[2,37])", -1, 1, 1e-6 },
                                  { "acos(f64[5])", -1, 1, 1e-12 },
                                  { "acos(f16[9])", -1, 1, 2e-3 },
                                  { "acos(bf16[9])", -1, 1, 1e-2 },
                                  { "acos(f32[0,3])", 0, 0, 0 },
                                  { "acos(f32[])", -1, 1, 1e-6 },
                                  { 0 } };

const fac_op fac_op_acos = {
    MAP1_OP("acos", "inverse cosine"),
    .grad = grad,
    .mixed = FAC_MIXED_SENSITIVE,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_acos(fac_value *x) { return fac_emit(&fac_op_acos, NULL, 1, &x); }
