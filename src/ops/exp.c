#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_exp(fac_value *x); /* e^x */
#endif

MAP1(EXP(x))

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], n->out[0]);
}

static const fac_onnx onnx[] = { { "", "Exp", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "exp(f32[2,37])", -10, 10, 1e-6 },
                                  { "exp(f64[5])", -10, 10, 1e-12 },
                                  { "exp(f16[9])", -10, 10, 2e-3 },
                                  { "exp(bf16[9])", -10, 10, 1e-2 },
                                  { "exp(f32[0,3])", 0, 0, 0 },
                                  { "exp(f32[])", -10, 10, 1e-6 },
                                  { 0 } };

const fac_op fac_op_exp = {
    MAP_OP("exp", "e^x", fac_ports_x, fac_infer_same),
    .is = FAC_OP_INPLACE | FAC_OP_GROWS,
    .grad = grad,
    .mixed = FAC_MIXED_SENSITIVE,
    .rounding = { .rule = FAC_ROUND_MONOTONE },
};
fac_value *fac_exp(fac_value *x) { return fac_emit(&fac_op_exp, NULL, 1, &x); }
