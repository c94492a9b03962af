#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_reciprocal(fac_value *x); /* 1 / x */
#endif

MAP1((T)1 / x)

/* -1 / x^2 = -y^2 */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_neg(fac_mul(dy[0], fac_mul(n->out[0], n->out[0])));
}

static const fac_onnx onnx[] = { { "", "Reciprocal", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "reciprocal(f32[2,37])", 0.1, 4, 1e-6 },
                                  { "reciprocal(f64[5])", 0.1, 4, 1e-12 },
                                  { "reciprocal(f16[9])", 0.1, 4, 2e-3 },
                                  { "reciprocal(bf16[9])", 0.1, 4, 1e-2 },
                                  { "reciprocal(f32[0,3])", 0, 0, 0 },
                                  { "reciprocal(f32[])", 0.1, 4, 1e-6 },
                                  { 0 } };

const fac_op fac_op_reciprocal = {
    MAP_OP("reciprocal", "1 / x", fac_ports_x, fac_infer_same),
    .is = FAC_OP_INPLACE | FAC_OP_INVERSE,
    .grad = grad,
    .mixed = FAC_MIXED_SENSITIVE,
    .rounding = { .rule = FAC_ROUND_RECIPROCAL },
};
fac_value *fac_reciprocal(fac_value *x) { return fac_emit(&fac_op_reciprocal, NULL, 1, &x); }
