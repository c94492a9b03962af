#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_sin(fac_value *x); /* sine, radians */
#endif

MAP1(SIN(x))

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], fac_cos(n->in[0]));
}

static const fac_onnx onnx[] = { { "", "Sin", 7, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "sin(f32[2,37])", -10, 10, 1e-6 },
                                  { "sin(f64[5])", -10, 10, 1e-12 },
                                  { "sin(f16[9])", -10, 10, 2e-3 },
                                  { "sin(bf16[9])", -10, 10, 1e-2 },
                                  { "sin(f32[0,3])", 0, 0, 0 },
                                  { "sin(f32[])", -10, 10, 1e-6 },
                                  { 0 } };

const fac_op fac_op_sin = {
    MAP1_OP("sin", "sine"),
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_SMOOTH, .slope = 1 },
};
fac_value *fac_sin(fac_value *x) { return fac_emit(&fac_op_sin, NULL, 1, &x); }
