#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_softsign(fac_value *x);                          /* x / (1 + |x|) */
#endif

MAP1(x / ((T)1 + ABS(x)))

static const fac_onnx onnx[] = { { "", "Softsign", 6, 0, NULL, NULL }, { 0 } };
static const fac_case cases[] = {
    { "softsign(f32[2,37])", -9, 9, 1e-6 }, { "softsign(f64[5])", -9, 9, 1e-12 }, { "softsign(f16[9])", -9, 9, 2e-3 },
    { "softsign(bf16[9])", -9, 9, 1e-2 }, { "softsign(f32[0,3])", 0, 0, 0 }, { "softsign(f32[])", -9, 9, 1e-6 }, { 0 }
};

const fac_op fac_op_softsign = { MAP1_OP("softsign", "x / (1 + |x|)") };
fac_value *fac_softsign(fac_value *x) { return fac_emit(&fac_op_softsign, NULL, 1, &x); }
