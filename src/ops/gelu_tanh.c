#include "ops/map.h"

#if FAC_INTERFACE
/* x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): the usual approximation of GELU */
fac_value *fac_gelu_tanh(fac_value *x);
#endif

MAP1((T)0.5 * x * ((T)1 + TANH((T)0.79788456080286535588 * (x + (T)0.044715 * x * x * x))))

static const fac_onnx onnx[] = { { 0 } };
static const fac_case cases[] = {
    { "gelu_tanh(f32[2,37])", -5, 5, 2e-6 }, { "gelu_tanh(f64[5])", -5, 5, 1e-12 }, { "gelu_tanh(f16[9])", -5, 5, 2e-3 },
    { "gelu_tanh(bf16[9])", -5, 5, 1e-2 }, { "gelu_tanh(f32[0,3])", 0, 0, 0 }, { "gelu_tanh(f32[])", -5, 5, 2e-6 }, { 0 }
};

const fac_op fac_op_gelu_tanh = { MAP1_OP("gelu_tanh", "x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))") };
fac_value *fac_gelu_tanh(fac_value *x) { return fac_emit(&fac_op_gelu_tanh, NULL, 1, &x); }
