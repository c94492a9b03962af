#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_sqrt(fac_value *x); /* square root; NaN below 0 */
#endif

MAP1(SQRT(x))

/* 1 / (2 y) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_div(fac_grad_times(dy[0], 0.5), n->out[0]);
}

static const fac_onnx onnx[] = { { "", "Sqrt", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "sqrt(f32[2,37])", 0, 100, 1e-6 },
                                  { "sqrt(f64[5])", 0, 100, 1e-12 },
                                  { "sqrt(f16[9])", 0, 100, 2e-3 },
                                  { "sqrt(bf16[9])", 0, 100, 1e-2 },
                                  { "sqrt(f32[0,3])", 0, 0, 0 },
                                  { "sqrt(f32[])", 0, 100, 1e-6 },
                                  { 0 } };

const fac_op fac_op_sqrt = {
    MAP1_OP("sqrt", "square root"),
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_MONOTONE },
};
fac_value *fac_sqrt(fac_value *x) { return fac_emit(&fac_op_sqrt, NULL, 1, &x); }
