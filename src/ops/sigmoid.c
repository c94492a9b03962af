#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_sigmoid(fac_value *x); /* 1 / (1 + e^-x) */
#endif

MAP1(SIGMOID(x))

/* y (1 - y) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], fac_mul(n->out[0], fac_grad_rest(n->out[0])));
}

static const fac_onnx onnx[] = { { "", "Sigmoid", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "sigmoid(f32[2,37])", -9, 9, 1e-6 },
                                  { "sigmoid(f64[5])", -9, 9, 1e-12 },
                                  { "sigmoid(f16[9])", -9, 9, 2e-3 },
                                  { "sigmoid(bf16[9])", -9, 9, 1e-2 },
                                  { "sigmoid(f32[0,3])", 0, 0, 0 },
                                  { "sigmoid(f32[])", -9, 9, 1e-6 },
                                  { 0 } };

const fac_op fac_op_sigmoid = {
    MAP1_OP("sigmoid", "1 / (1 + exp(-x))"),
    .grad = grad,
    .steps = fac_steps_flat,
    .torch = "Sigmoid",
    .rounding = { .rule = FAC_ROUND_SMOOTH, .slope = 0.25 },
};
fac_value *fac_sigmoid(fac_value *x) { return fac_emit(&fac_op_sigmoid, NULL, 1, &x); }
