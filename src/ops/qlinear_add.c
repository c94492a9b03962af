/* Sums of bytes. */
#include "ops/fusions_quant.h"
#include "ops/quant.h"
#include "ops/quant_pair.h"

#if FAC_INTERFACE
/* Of two operands, x and w, and the result of an op on bytes: x = (q - x_zero) x_scale. */
typedef struct fac_qlinear_scales {
    fac_value *x_scale, *x_zero, *w_scale, *w_zero, *y_scale, *y_zero;
} fac_qlinear_scales;
/* y = sat(rne(fma(a, ra, fma(b, rb, off)))), ra = a_scale / y_scale, rb = b_scale / y_scale,
 * off = y_zero - fma(ra, a_zero, rb b_zero), all in f32 with one rounding in each fma: (a - a_zero)
 * a_scale + (b - b_zero) b_scale in units of y, as ONNX Runtime adds.  a, b and y bytes that
 * broadcast, scales->x_* of a, w_* of b: one number each. */
fac_value *fac_qlinear_add(fac_value *a, fac_value *b, const fac_qlinear_scales *scales);
#endif

static double one(const fac_pair *p, double a, double b) {
    const float ra = p->a_scale / p->y_scale, rb = p->b_scale / p->y_scale;
    const float off = p->y_zero - fmaf(ra, p->a_zero, rb * p->b_zero);
    return fmaf((float)a, ra, fmaf((float)b, rb, off));
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return fac_quant_pair_ref(r, one, 0);
}

/* In f64, where products of these are exact: one rounding to f32 as fma has. */
static fac_value *fma_of(fac_value *a, fac_value *b, fac_value *c) {
    return fac_cast(
        fac_add(fac_mul(fac_cast(a, FAC_F64), fac_cast(b, FAC_F64)), fac_cast(c, FAC_F64)),
        FAC_F32);
}

static void expand(const fac_node *n, fac_value *y[]) {
    fac_value *x[FAC_PAIR_PORTS];
    fac_quant_pair_scalars(n, x);
    fac_value *ra = fac_div(x[FAC_PAIR_A_SCALE], x[FAC_PAIR_Y_SCALE]);
    fac_value *rb = fac_div(x[FAC_PAIR_B_SCALE], x[FAC_PAIR_Y_SCALE]);
    fac_value *zeros = fma_of(ra, x[FAC_PAIR_A_ZERO], fac_mul(rb, x[FAC_PAIR_B_ZERO]));
    fac_value *off = fac_sub(x[FAC_PAIR_Y_ZERO], zeros);
    fac_value *sum = fma_of(n->in[FAC_PAIR_A], ra, fma_of(n->in[FAC_PAIR_B], rb, off));
    y[0] = fac_quant_narrow(fac_round(sum), n->out[0]->type.dtype);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    y[0] = fac_quant_pair_load(n, g, x, fac_qlinear_add);
}
static const fac_onnx onnx[] = { { "com.microsoft", "QLinearAdd", 1, 0, NULL, load, 7 }, { 0 } };
static const fac_case cases[] = {
    { "qlinear_add(u8[3,7], f32{0.1}, u8{128}, u8[3,7], f32{0.2}, u8{3}, f32{0.3}, u8{9})", 0, 255,
      0 },
    { "qlinear_add(i8[2,3,5], f32{0.1}, i8{-3}, i8[3,1], f32{0.25}, i8{0}, f32{0.5}, i8{-9})", -128,
      127, 0 },
    { "qlinear_add(u8[0,3], f32{0.1}, u8{1}, u8[3], f32{0.2}, u8{3}, f32{0.3}, u8{9})", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_qlinear_add;
const fac_op fac_op_qlinear_add = {
    .name = "qlinear_add",
    .doc = "sums of bytes that stand for numbers",
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
fac_value *fac_qlinear_add(fac_value *a, fac_value *b, const fac_qlinear_scales *s) {
    return fac_quant_pair_emit(&fac_op_qlinear_add, a, b, s);
}
