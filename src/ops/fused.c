/* Elementwise ops as one node: what its body says.  Made by src/passes/fusion/chains.c and
 * updates.c; has no prototype. */
#include "ops/bodies.h"

static const fac_port in[] = { { "x", FAC_FLOATS | FAC_INTS | FAC_BOOLS, FAC_VARIADIC }, { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS | FAC_INTS | FAC_BOOLS, FAC_VARIADIC }, { 0 } };

static const fac_case cases[] = {
    { "fused(f32[2,3], f32[3]) {t0 = add(x0, x1); t1 = exp(t0); t2 = mul(t1, x0); t2}", -2, 2,
      1e-6 },
    { "fused(f32[7]) {relu neg}", -2, 2, 0 },
    { "fused(f32[2,5], f32[2,5], f32[]) {t0 = mul(x1, x2); t1 = add(x0, t0); t2 = mul(t1, t1); t2, "
      "t1}",
      -2, 2, 1e-6 },
    { 0 }
};

extern const fac_op fac_op_fused;
const fac_op fac_op_fused = {
    .name = "fused",
    .doc = "elementwise ops, computed in one pass",
    .in = in,
    .out = out,
    .is = FAC_OP_BODIES | FAC_OP_INPLACE,
    .infer = fac_bodies_infer,
    .expand = fac_bodies_expand,
    .cost = fac_bodies_cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
