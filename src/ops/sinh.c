#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_sinh(fac_value *x); /* hyperbolic sine */
#endif

MAP1(SINH(x))

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], fac_cosh(n->in[0]));
}

static const fac_onnx onnx[] = { { "", "Sinh", 9, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "sinh(f32[2,37])", -5, 5, 1e-6 },
                                  { "sinh(f64[5])", -5, 5, 1e-12 },
                                  { "sinh(f16[9])", -5, 5, 2e-3 },
                                  { "sinh(bf16[9])", -5, 5, 1e-2 },
                                  { "sinh(f32[0,3])", 0, 0, 0 },
                                  { "sinh(f32[])", -5, 5, 1e-6 },
                                  { 0 } };

const fac_op fac_op_sinh = {
    MAP_OP("sinh", "hyperbolic sine", fac_ports_x, fac_infer_same),
    .is = FAC_OP_INPLACE | FAC_OP_GROWS,
    .grad = grad,
    .mixed = FAC_MIXED_SENSITIVE,
    .rounding = { .rule = FAC_ROUND_MONOTONE },
};
fac_value *fac_sinh(fac_value *x) { return fac_emit(&fac_op_sinh, NULL, 1, &x); }
