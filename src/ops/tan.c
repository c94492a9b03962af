#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_tan(fac_value *x); /* tangent, radians */
#endif

MAP1(TAN(x))

/* 1 + y^2 */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], fac_grad_shifted(fac_mul(n->out[0], n->out[0]), 1));
}

static const fac_onnx onnx[] = { { "", "Tan", 7, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "tan(f32[2,37])", -1.5, 1.5, 1e-6 },
                                  { "tan(f64[5])", -1.5, 1.5, 1e-12 },
                                  { "tan(f16[9])", -1.5, 1.5, 2e-3 },
                                  { "tan(bf16[9])", -1.5, 1.5, 1e-2 },
                                  { "tan(f32[0,3])", 0, 0, 0 },
                                  { "tan(f32[])", -1.5, 1.5, 1e-6 },
                                  { 0 } };

const fac_op fac_op_tan = {
    MAP1_OP("tan", "tangent"),
    .grad = grad,
    .mixed = FAC_MIXED_SENSITIVE,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_tan(fac_value *x) { return fac_emit(&fac_op_tan, NULL, 1, &x); }
