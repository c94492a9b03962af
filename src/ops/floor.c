#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_floor(fac_value *x); /* the next integer below */
#endif

MAP1(FLOOR(x))

static const fac_onnx onnx[] = { { "", "Floor", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "floor(f32[2,37])", -9, 9, 0 },
                                  { "floor(f64[5])", -9, 9, 1e-12 },
                                  { "floor(f16[9])", -9, 9, 0 },
                                  { "floor(bf16[9])", -9, 9, 0 },
                                  { "floor(f32[0,3])", 0, 0, 0 },
                                  { "floor(f32[])", -9, 9, 0 },
                                  { 0 } };

const fac_op fac_op_floor = {
    MAP_OP("floor", "the next integer below", fac_ports_x, fac_infer_same),
    .is = FAC_OP_INPLACE,
    .grad = fac_grad_flat,
    .steps = fac_steps_whole,
    .rounding = { .rule = FAC_ROUND_WHOLE },
};
fac_value *fac_floor(fac_value *x) { return fac_emit(&fac_op_floor, NULL, 1, &x); }
