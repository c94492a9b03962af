/* Products of bytes, element by element. */
#include "ops/fusions_quant.h"
#include "ops/quant.h"
#include "ops/quant_pair.h"

#if FAC_INTERFACE
/* y = sat(rne((a - a_zero) (b - b_zero) f32(a_scale b_scale / y_scale)) + y_zero), in f32; operands
 * as in fac_qlinear_add. */
fac_value *fac_qlinear_mul(fac_value *a, fac_value *b, const fac_qlinear_scales *scales);
#endif

static double one(const fac_pair *p, double a, double b) {
    const float m = p->a_scale * p->b_scale / p->y_scale;
    return (float)((a - p->a_zero) * (b - p->b_zero)) * m;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return fac_quant_pair_ref(r, one, 1);
}

static void expand(const fac_node *n, fac_value *y[]) {
    fac_value *x[FAC_PAIR_PORTS];
    fac_quant_pair_scalars(n, x);
    fac_value *m = fac_mul(x[FAC_PAIR_A_SCALE], x[FAC_PAIR_B_SCALE]);
    m = fac_div(m, x[FAC_PAIR_Y_SCALE]);
    fac_value *a = fac_sub(fac_cast(n->in[FAC_PAIR_A], FAC_F32), x[FAC_PAIR_A_ZERO]);
    fac_value *b = fac_sub(fac_cast(n->in[FAC_PAIR_B], FAC_F32), x[FAC_PAIR_B_ZERO]);
    fac_value *q = fac_round(fac_mul(fac_mul(a, b), m));
    y[0] = fac_quant_narrow(fac_add(q, x[FAC_PAIR_Y_ZERO]), n->out[0]->type.dtype);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    y[0] = fac_quant_pair_load(n, g, x, fac_qlinear_mul);
}
static const fac_onnx onnx[] = { { "com.microsoft", "QLinearMul", 1, 0, NULL, load, 7 }, { 0 } };
static const fac_case cases[] = {
    { "qlinear_mul(u8[3,7], f32{0.1}, u8{128}, u8[3,7], f32{0.2}, u8{3}, f32{0.3}, u8{9})", 0, 255,
      0 },
    { "qlinear_mul(i8[2,3,5], f32{0.1}, i8{-3}, i8[3,1], f32{0.25}, i8{0}, f32{0.5}, i8{-9})", -128,
      127, 0 },
    { "qlinear_mul(u8[0,3], f32{0.1}, u8{1}, u8[3], f32{0.2}, u8{3}, f32{0.3}, u8{9})", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_qlinear_mul;
const fac_op fac_op_qlinear_mul = {
    .name = "qlinear_mul",
    .doc = "products of bytes that stand for numbers",
    .in = fac_quant_pair_in,
    .out = fac_quant_pair_out,
    .infer = fac_quant_pair_infer,
    .ref = ref,
    .expand = expand,
    .onnx = onnx,
    .cases = cases,
    .is = FAC_OP_NO_GRAD | FAC_OP_TYPED,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_qlinear_mul(fac_value *a, fac_value *b, const fac_qlinear_scales *s) {
    return fac_quant_pair_emit(&fac_op_qlinear_mul, a, b, s);
}
