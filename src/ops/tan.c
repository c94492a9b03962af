#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_tan(fac_value *x);                               /* tangent, radians */
#endif

MAP1(TAN(x))

static const fac_onnx onnx[] = { { "", "Tan", 7, 0, NULL, NULL }, { 0 } };
static const fac_case cases[] = {
    { "tan(f32[2,37])", -1.5, 1.5, 1e-6 }, { "tan(f64[5])", -1.5, 1.5, 1e-12 }, { "tan(f16[9])", -1.5, 1.5, 2e-3 },
    { "tan(bf16[9])", -1.5, 1.5, 1e-2 }, { "tan(f32[0,3])", 0, 0, 0 }, { "tan(f32[])", -1.5, 1.5, 1e-6 }, { 0 }
};

const fac_op fac_op_tan = { MAP1_OP("tan", "tangent") };
fac_value *fac_tan(fac_value *x) { return fac_emit(&fac_op_tan, NULL, 1, &x); }
