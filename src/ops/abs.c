#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_abs(fac_value *x); /* |x|; the smallest integer stays as it is */
#endif

MAP1_NUM(ABS(x))

/* 0 at 0 and NaN, as in torch. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], fac_grad_sign(n->in[0]));
}

static const fac_onnx onnx[] = { { "", "Abs", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "abs(f32[2,37])", -4, 4, 0 },   { "abs(f64[5])", -4, 4, 1e-12 },
                                  { "abs(f16[9])", -4, 4, 0 },      { "abs(bf16[9])", -4, 4, 0 },
                                  { "abs(f32[0,3])", 0, 0, 0 },     { "abs(f32[])", -4, 4, 0 },
                                  { "abs(i64[9])", -9, 9, 0 },      { "abs(u8[9])", 0, 255, 0 },
                                  { "abs(i8[300])", -128, 127, 0 }, { 0 } };

const fac_op fac_op_abs = {
    MAP_OP("abs", "|x|", fac_ports_num_x, fac_infer_same),
    .is = FAC_OP_INPLACE | FAC_OP_PICKS,
    .grad = grad,
    .steps = fac_steps_zero,
    .rounding = { .rule = FAC_ROUND_KEEPS },
};
fac_value *fac_abs(fac_value *x) { return fac_emit(&fac_op_abs, NULL, 1, &x); }
