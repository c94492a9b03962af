#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_round(fac_value *x); /* the nearest integer, half to even */
#endif

MAP1(ROUND(x))

static const fac_onnx onnx[] = { { "", "Round", 11, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "round(f32[2,37])", -9, 9, 0 },
                                  { "round(f64[5])", -9, 9, 1e-12 },
                                  { "round(f16[9])", -9, 9, 0 },
                                  { "round(bf16[9])", -9, 9, 0 },
                                  { "round(f32[0,3])", 0, 0, 0 },
                                  { "round(f32[])", -9, 9, 0 },
                                  { 0 } };

const fac_op fac_op_round = {
    MAP_OP("round", "the nearest integer, half to even", fac_ports_x, fac_infer_same),
    .is = FAC_OP_INPLACE,
    .grad = fac_grad_flat,
    .steps = fac_steps_whole,
    .rounding = { .rule = FAC_ROUND_WHOLE },
};
fac_value *fac_round(fac_value *x) { return fac_emit(&fac_op_round, NULL, 1, &x); }
