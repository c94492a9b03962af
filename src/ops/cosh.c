#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_cosh(fac_value *x);                              /* hyperbolic cosine */
#endif

MAP1(COSH(x))

static const fac_onnx onnx[] = { { "", "Cosh", 9, 0, NULL, NULL }, { 0 } };
static const fac_case cases[] = {
    { "cosh(f32[2,37])", -5, 5, 1e-6 }, { "cosh(f64[5])", -5, 5, 1e-12 }, { "cosh(f16[9])", -5, 5, 2e-3 },
    { "cosh(bf16[9])", -5, 5, 1e-2 }, { "cosh(f32[0,3])", 0, 0, 0 }, { "cosh(f32[])", -5, 5, 1e-6 }, { 0 }
};

const fac_op fac_op_cosh = { MAP1_OP("cosh", "hyperbolic cosine") };
fac_value *fac_cosh(fac_value *x) { return fac_emit(&fac_op_cosh, NULL, 1, &x); }
