#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_asinh(fac_value *x); /* inverse hyperbolic sine */
#endif

MAP1(ASINH(x))

/* 1 / sqrt(x^2 + 1) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0];
    dx[0] = fac_div(dy[0], fac_sqrt(fac_grad_shifted(fac_mul(x, x), 1)));
}

static const fac_onnx onnx[] = { { "", "Asinh", 9, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "asinh(f32[2,37])", -9, 9, 1e-6 },
                                  { "asinh(f64[5])", -9, 9, 1e-12 },
                                  { "asinh(f16[9])", -9, 9, 2e-3 },
                                  { "asinh(bf16[9])", -9, 9, 1e-2 },
                                  { "asinh(f32[0,3])", 0, 0, 0 },
                                  { "asinh(f32[])", -9, 9, 1e-6 },
                                  { 0 } };

const fac_op fac_op_asinh = {
    MAP1_OP("asinh", "inverse hyperbolic sine"),
    .grad = grad,
    .mixed = FAC_MIXED_SENSITIVE,
    .rounding = { .rule = FAC_ROUND_SMOOTH, .slope = 1 },
};
fac_value *fac_asinh(fac_value *x) { return fac_emit(&fac_op_asinh, NULL, 1, &x); }
