#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_log(fac_value *x); /* ln x; -inf for 0, NaN below */
#endif

MAP1(LOG(x))

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_div(dy[0], n->in[0]);
}

static const fac_onnx onnx[] = { { "", "Log", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "log(f32[2,37])", 0.01, 100, 1e-6 },
                                  { "log(f64[5])", 0.01, 100, 1e-12 },
                                  { "log(f16[9])", 0.01, 100, 2e-3 },
                                  { "log(bf16[9])", 0.01, 100, 1e-2 },
                                  { "log(f32[0,3])", 0, 0, 0 },
                                  { "log(f32[])", 0.01, 100, 1e-6 },
                                  { 0 } };

const fac_op fac_op_log = {
    MAP1_OP("log", "natural logarithm"),
    .grad = grad,
    .mixed = FAC_MIXED_SENSITIVE,
    .rounding = { .rule = FAC_ROUND_MONOTONE },
};
fac_value *fac_log(fac_value *x) { return fac_emit(&fac_op_log, NULL, 1, &x); }
