/* Independent nodes as one node, so that they are one step with one parallel region: the updates of
 * all parameters, say.  No node of the body reads another's result.  Made by
 * src/passes/training/updates.c; has no prototype. */
#include "ops/bodies.h"

static const fac_port in[] = { { "x", FAC_ANY, FAC_VARIADIC }, { 0 } };
static const fac_port out[] = { { "y", FAC_ANY, FAC_VARIADIC }, { 0 } };

static const fac_case cases[] = {
    { "group(f32[2,3], f32[5], f32[]) {t0 = mul(x0, x2); t1 = add(x1, x2); t0, t1}", -2, 2, 1e-6 },
    { "group(f32[4], f32[4], f32[0]) {t0, t1 = fused(x0, x1) {t0 = add(x0, x1); t1 = mul(t0, x0); "
      "t0, t1}; "
      "t2 = relu(x2); t1, t0, t2}",
      -2, 2, 1e-6 },
    { 0 }
};

extern const fac_op fac_op_group;
const fac_op fac_op_group = {
    .name = "group",
    .doc = "independent nodes, computed in one step",
    .in = in,
    .out = out,
    .is = FAC_OP_BODIES | FAC_OP_INPLACE,
    .infer = fac_bodies_infer,
    .expand = fac_bodies_expand,
    .cost = fac_bodies_cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
