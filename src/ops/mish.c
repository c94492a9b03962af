#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_mish(fac_value *x);                              /* x tanh(ln(1 + e^x)) */
#endif

MAP1(x * TANH((x > (T)0 ? x : (T)0) + LOG1P(EXP(-ABS(x)))))

static const fac_onnx onnx[] = { { "", "Mish", 18, 0, NULL, NULL }, { 0 } };
static const fac_case cases[] = {
    { "mish(f32[2,37])", -9, 9, 2e-6 }, { "mish(f64[5])", -9, 9, 1e-12 }, { "mish(f16[9])", -9, 9, 2e-3 },
    { "mish(bf16[9])", -9, 9, 1e-2 }, { "mish(f32[0,3])", 0, 0, 0 }, { "mish(f32[])", -9, 9, 2e-6 }, { 0 }
};

const fac_op fac_op_mish = { MAP1_OP("mish", "x tanh(softplus(x))") };
fac_value *fac_mish(fac_value *x) { return fac_emit(&fac_op_mish, NULL, 1, &x); }
