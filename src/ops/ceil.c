#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_ceil(fac_value *x); /* the next integer above */
#endif

MAP1(CEIL(x))

static const fac_onnx onnx[] = { { "", "Ceil", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "ceil(f32[2,37])", -9, 9, 0 },
                                  { "ceil(f64[5])", -9, 9, 1e-12 },
                                  { "ceil(f16[9])", -9, 9, 0 },
                                  { "ceil(bf16[9])", -9, 9, 0 },
                                  { "ceil(f32[0,3])", 0, 0, 0 },
                                  { "ceil(f32[])", -9, 9, 0 },
                                  { 0 } };

const fac_op fac_op_ceil = {
    MAP_OP("ceil", "the next integer above", fac_ports_x, fac_infer_same),
    .is = FAC_OP_INPLACE,
    .grad = fac_grad_flat,
    .steps = fac_steps_whole,
    .rounding = { .rule = FAC_ROUND_WHOLE },
};
fac_value *fac_ceil(fac_value *x) { return fac_emit(&fac_op_ceil, NULL, 1, &x); }
