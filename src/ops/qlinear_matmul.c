/* The product of bytes to bytes. */
#include "base/error.h"
#include "base/memory.h"
#include "ops/fusions_quant.h"
#include "ops/quant.h"
#include "ops/quant_product.h"

#if FAC_INTERFACE
/* y = sat(rne(f32(acc + b[j]) m[i,j]) + y_zero),  m = f32(a_scale[i] b_scale[j]) / y_scale,
 * acc = fac_matmul_integer(a, b, a_zero, b_zero).  scales->x_* belong to a, w_* to b: one number,
 * or one for each row of a or column of b.  bias i32 for each column, or NULL.  Scales f32; f16 and
 * bf16 round as those do.  y has y_zero's dtype. */
fac_value *fac_qlinear_matmul(fac_value *a, fac_value *b, fac_value *bias,
                              const fac_qlinear_scales *scales);
#endif

enum { A, B, BIAS, A_SCALE, A_ZERO, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };
static const fac_port in[] = { { "a", FAC_INTS, 0 },
                               { "b", FAC_INTS, 0 },
                               { "bias", FAC_INTS, FAC_OPTIONAL },
                               { "a_scale", FAC_FLOATS, 0 },
                               { "a_zero", FAC_INTS, 0 },
                               { "b_scale", FAC_FLOATS, 0 },
                               { "b_zero", FAC_INTS, 0 },
                               { "y_scale", FAC_FLOATS, 0 },
                               { "y_zero", FAC_INTS, 0 },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_INTS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    if (!fac_quant_bytes(n, Y_ZERO, "y_zero")) return false;
    if (!fac_quant_product_infer(n, n->in[Y_ZERO]->type.dtype)) return false;
    const fac_dims *b = &n->in[B]->type.dims;
    if (n->in[BIAS] && n->in[BIAS]->type.dtype != FAC_I32)
        return fac_fail(n, FAC_E_DTYPE, "bias must be i32");
    return fac_quant_each(n, BIAS, b->n > 1 ? b->d[b->n - 1] : 1, "bias") &&
           fac_quant_product_each(n, A_SCALE, 0, "a_scale") &&
           fac_quant_product_each(n, A_ZERO, 0, "a_zero") &&
           fac_quant_product_each(n, B_SCALE, 1, "b_scale") &&
           fac_quant_product_each(n, B_ZERO, 1, "b_zero") &&
           fac_quant_product_each(n, Y_SCALE, 0, "y_scale") &&
           fac_quant_product_each(n, Y_ZERO, 0, "y_zero");
}

/* Of element e of y. */
static double number_at(const fac_array *v, const fac_dims *y, int side, int64_t e) {
    return fac_quant_get(v, fac_quant_product_at(&v->type.dims, y, side, e));
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_array *x = r->in;
    fac_array *y = &r->out[0];
    const fac_dims *d = &y->type.dims;
    const fac_dtype t = x[A_SCALE].type.dtype;
    const int64_t n = fac_dims_count(d);
    double least, most;
    fac_quant_range(y->type.dtype, &least, &most);
    FAC_TRY(fac_quant_product_sums(r, A_ZERO, B_ZERO, y->i, err));
    for (int64_t e = 0; e < n; e++) {
        const double s =
            fac_quant_round(t, number_at(&x[A_SCALE], d, 0, e) * number_at(&x[B_SCALE], d, 1, e));
        const double m = fac_quant_round(t, s / number_at(&x[Y_SCALE], d, 0, e));
        const bool one = fac_dims_count(&x[BIAS].type.dims) <= 1;
        const int64_t column = one ? 0 : e % d->d[d->n - 1];
        const int64_t bias = x[BIAS].i ? x[BIAS].i[column] : 0;
        const float acc = (float)(int32_t)(y->i[e] + bias);
        y->i[e] =
            (int64_t)fac_quant_put(acc * (float)m, number_at(&x[Y_ZERO], d, 0, e), least, most);
    }
    return FAC_OK;
}

static void expand(const fac_node *n, fac_value *y[]) {
    fac_value *const *x = n->in;
    fac_value *acc = fac_matmul_integer(x[A], x[B], x[A_ZERO], x[B_ZERO]);
    fac_value *s = fac_mul(fac_quant_product_spread(x[A_SCALE], x[A], 0),
                           fac_quant_product_spread(x[B_SCALE], x[B], 1));
    fac_value *m = fac_div(s, fac_quant_product_spread(x[Y_SCALE], x[A], 0));
    if (x[BIAS]) acc = fac_add(acc, x[BIAS]);
    y[0] = fac_requantize(acc, fac_cast(m, FAC_F32), fac_quant_product_spread(x[Y_ZERO], x[A], 0));
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    static const int order[] = { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };
    const char *ins[8];
    if (w->opset < 10 || n->in[BIAS]) return false;
    for (int k = 0; k < 8; k++) ins[k] = fac_onnx_name(w, n->in[order[k]]);
    fac_onnx_put(w, "QLinearMatMul", 8, ins, fac_onnx_name(w, n->out[0]));
    return true;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)n, (void)g;
    const fac_qlinear_scales s = { x[1], x[2], x[4], x[5], x[6], x[7] };
    y[0] = fac_qlinear_matmul(x[0], x[3], NULL, &s);
}

static const fac_onnx onnx[] = { { "", "QLinearMatMul", 10, 0, NULL, load, 8 },
                                 { "com.microsoft", "QGemm", 1, 0, fac_names_qgemm, fac_load_qgemm,
                                   6 },
                                 { 0 } };
#define SCALES ", f32{0.02}, u8{7}, f32{0.01}, i8{0}, f32{0.5}, u8{9})"
static const fac_case cases[] = {
    { "qlinear_matmul(u8[5,7], i8[7,3], i32[3]" SCALES, -99, 99, 0 },
    { "qlinear_matmul(u8[2,1,4,6], i8[3,6,5], -" SCALES, -99, 99, 0 },
    { "qlinear_matmul(i8[4,9], i8[9,3], -, f32{0.02}, i8{-3}, f32{0.01, 0.1, 0.02}, "
      "i8{1, 0, -2}, f32{0.5}, i8{-9})",
      -99, 99, 0 },
    { "qlinear_matmul(u8[65,129], i8[129,33], i32[33]" SCALES, -99, 99, 0 },
    { "qlinear_matmul(u8[0,3], i8[3,3], -" SCALES, 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_qlinear_matmul;
const fac_op fac_op_qlinear_matmul = {
    .name = "qlinear_matmul",
    .doc = "the product of bytes to bytes",
    .in = in,
    .out = out,
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = fac_quant_product_cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .is = FAC_OP_NO_GRAD | FAC_OP_TYPED,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_qlinear_matmul(fac_value *a, fac_value *b, fac_value *bias,
                              const fac_qlinear_scales *s) {
    return fac_emit(&fac_op_qlinear_matmul, NULL, 9,
                    (fac_value *[]){ a, b, bias, s->x_scale, s->x_zero, s->w_scale, s->w_zero,
                                     s->y_scale, s->y_zero });
}
