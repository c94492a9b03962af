#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_atan(fac_value *x); /* inverse tangent */
#endif

MAP1(ATAN(x))

/* 1 / (1 + x^2) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0];
    dx[0] = fac_div(dy[0], fac_grad_shifted(fac_mul(x, x), 1));
}

static const fac_onnx onnx[] = { { "", "Atan", 7, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "atan(f32[2,37])", -9, 9, 1e-6 },
                                  { "atan(f64[5])", -9, 9, 1e-12 },
                                  { "atan(f16[9])", -9, 9, 2e-3 },
                                  { "atan(bf16[9])", -9, 9, 1e-2 },
                                  { "atan(f32[0,3])", 0, 0, 0 },
                                  { "atan(f32[])", -9, 9, 1e-6 },
                                  { 0 } };

const fac_op fac_op_atan = {
    MAP1_OP("atan", "inverse tangent"),
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_SMOOTH, .slope = 1 },
};
fac_value *fac_atan(fac_value *x) { return fac_emit(&fac_op_atan, NULL, 1, &x); }
