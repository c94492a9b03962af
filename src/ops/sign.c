#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_sign(fac_value *x); /* -1, 0 (without a sign) or 1; NaN stays */
#endif

/* clang-format off */
MAP1_NUM(x > (T)0    ? (T)1
         : x == (T)0 ? (T)0
         : ISNAN(x)  ? x
                     : (T)-1)
/* clang-format on */

static const fac_onnx onnx[] = { { "", "Sign", 9, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = {
    { "sign(f32[2,37])", -4, 4, 0 }, { "sign(f64[5])", -4, 4, 1e-12 }, { "sign(f16[9])", -4, 4, 0 },
    { "sign(bf16[9])", -4, 4, 0 },   { "sign(f32[0,3])", 0, 0, 0 },    { "sign(f32[])", -4, 4, 0 },
    { "sign(i64[9])", -9, 9, 0 },    { "sign(u8[9])", 0, 255, 0 },     { 0 }
};

const fac_op fac_op_sign = {
    MAP_OP("sign", "-1, 0 or 1", fac_ports_num_x, fac_infer_same),
    .is = FAC_OP_INPLACE | FAC_OP_PICKS,
    .grad = fac_grad_flat,
    .steps = fac_steps_zero,
    .rounding = { .rule = FAC_ROUND_WHOLE },
};
fac_value *fac_sign(fac_value *x) { return fac_emit(&fac_op_sign, NULL, 1, &x); }
