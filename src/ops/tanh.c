#include "ops/fusions.h"
#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_tanh(fac_value *x); /* (e^x - e^-x) / (e^x + e^-x) */
#endif

MAP1(TANH(x))

/* 1 - y^2 */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], fac_grad_rest(fac_mul(n->out[0], n->out[0])));
}

static const fac_onnx onnx[] = { { "", "Tanh", 1, 0, NULL, NULL, 0 },
                                 { "", "ScaledTanh", 1, 0, fac_names_affine, fac_load_scaled_tanh,
                                   0 },
                                 { 0 } };
static const fac_case cases[] = { { "tanh(f32[2,37])", -5, 5, 1e-6 },
                                  { "tanh(f64[5])", -5, 5, 1e-12 },
                                  { "tanh(f16[9])", -5, 5, 2e-3 },
                                  { "tanh(bf16[9])", -5, 5, 1e-2 },
                                  { "tanh(f32[0,3])", 0, 0, 0 },
                                  { "tanh(f32[])", -5, 5, 1e-6 },
                                  { 0 } };

const fac_op fac_op_tanh = {
    MAP1_OP("tanh", "hyperbolic tangent"),
    .grad = grad,
    .steps = fac_steps_flat,
    .torch = "Tanh",
    .rounding = { .rule = FAC_ROUND_SMOOTH, .slope = 1 },
};
fac_value *fac_tanh(fac_value *x) { return fac_emit(&fac_op_tanh, NULL, 1, &x); }
