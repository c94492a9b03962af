#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_cos(fac_value *x); /* cosine, radians */
#endif

MAP1(COS(x))

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_neg(fac_mul(dy[0], fac_sin(n->in[0])));
}

static const fac_onnx onnx[] = { { "", "Cos", 7, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "cos(f32[2,37])", -10, 10, 1e-6 },
                                  { "cos(f64[5])", -10, 10, 1e-12 },
                                  { "cos(f16[9])", -10, 10, 2e-3 },
                                  { "cos(bf16[9])", -10, 10, 1e-2 },
                                  { "cos(f32[0,3])", 0, 0, 0 },
                                  { "cos(f32[])", -10, 10, 1e-6 },
                                  { 0 } };

const fac_op fac_op_cos = {
    MAP1_OP("cos", "cosine"),
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_SMOOTH, .slope = 1 },
};
fac_value *fac_cos(fac_value *x) { return fac_emit(&fac_op_cos, NULL, 1, &x); }
