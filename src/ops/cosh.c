#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_cosh(fac_value *x); /* hyperbolic cosine */
#endif

MAP1(COSH(x))

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], fac_sinh(n->in[0]));
}

static const fac_onnx onnx[] = { { "", "Cosh", 9, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "cosh(f32[2,37])", -5, 5, 1e-6 },
                                  { "cosh(f64[5])", -5, 5, 1e-12 },
                                  { "cosh(f16[9])", -5, 5, 2e-3 },
                                  { "cosh(bf16[9])", -5, 5, 1e-2 },
                                  { "cosh(f32[0,3])", 0, 0, 0 },
                                  { "cosh(f32[])", -5, 5, 1e-6 },
                                  { 0 } };

const fac_op fac_op_cosh = {
    MAP_OP("cosh", "hyperbolic cosine", fac_ports_x, fac_infer_same),
    .is = FAC_OP_INPLACE | FAC_OP_GROWS,
    .grad = grad,
    .mixed = FAC_MIXED_SENSITIVE,
    .rounding = { .rule = FAC_ROUND_COSH },
};
fac_value *fac_cosh(fac_value *x) { return fac_emit(&fac_op_cosh, NULL, 1, &x); }
