/* The derivative of GELU by tanh, as an operator: one function of x instead of fourteen steps. */
#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
/* s + x s (1 - s) w, s = 1 / (1 + e^-u), u = sqrt(8 / pi) (x + 0.044715 x^3), w = du / dx: what
 * gelu_tanh rises by */
fac_value *fac_gelu_tanh_slope(fac_value *x);
#endif

static const double C = 1.59576912160573071176,
                    C3 = 0.07135481627260025; /* sqrt(8 / pi), and 0.044715 of it */

/* With e = e^-|u| <= 1, which stays exact where 1 - s would cancel:  s is 1 or e, s (1 - s) is e /
 * (1 + e), both over 1 + e.  x^2 comes last: where it is infinite x alone was enough for e to be 0.
 */
MAP1(((x > 0 ? 1 : EXP(-ABS(x) * ((T)1.59576912160573071176 + (T)0.07135481627260025 * x * x))) +
      x * EXP(-ABS(x) * ((T)1.59576912160573071176 + (T)0.07135481627260025 * x * x)) *
          (1 / (1 + EXP(-ABS(x) * ((T)1.59576912160573071176 + (T)0.07135481627260025 * x * x)))) *
          ((T)1.59576912160573071176 + (T)0.21406444881780075 * x * x)) *
     (1 / (1 + EXP(-ABS(x) * ((T)1.59576912160573071176 + (T)0.07135481627260025 * x * x)))))

/* s (1 - s) (2 w + x w' + x (1 - 2 s) w^2),  x w' = 6 C3 x^2 */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0], *square = fac_mul(x, x);
    fac_value *s = fac_sigmoid(fac_mul(x, fac_grad_shifted(fac_grad_times(square, C3), C)));
    fac_value *w = fac_grad_shifted(fac_grad_times(square, 3 * C3), C);
    fac_value *bend = fac_mul(fac_mul(x, fac_grad_rest(fac_grad_times(s, 2))), fac_mul(w, w));
    fac_value *sum = fac_add(bend, fac_grad_shifted(fac_grad_times(square, 12 * C3), 2 * C));
    dx[0] = fac_mul(dy[0], fac_mul(fac_mul(s, fac_grad_rest(s)), sum));
}

/* 1 - s is the sigmoid of -u: no cancellation there either. */
static void define(const fac_node *n, fac_value *out[]) {
    fac_value *x = n->in[0], *square = fac_mul(x, x), *c = fac_number_as(x, C);
    fac_value *u = fac_mul(x, fac_add(fac_mul(square, fac_number_as(x, C3)), c));
    fac_value *du = fac_add(fac_mul(square, fac_number_as(x, 3 * C3)), c);
    fac_value *s = fac_sigmoid(u), *rest = fac_sigmoid(fac_neg(u));
    out[0] = fac_add(s, fac_mul(fac_mul(fac_mul(x, s), rest), du));
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_dtype t = n->in[0]->type.dtype;
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    const char *square = fac_onnx_binary(w, "Mul", x, x, NULL), *c = fac_onnx_number(w, t, C);
    const char *u = fac_onnx_binary(
        w, "Add", fac_onnx_binary(w, "Mul", square, fac_onnx_number(w, t, C3), NULL), c, NULL);
    const char *du = fac_onnx_binary(
        w, "Add", fac_onnx_binary(w, "Mul", square, fac_onnx_number(w, t, 3 * C3), NULL), c, NULL);
    u = fac_onnx_binary(w, "Mul", x, u, NULL);
    const char *s = fac_onnx_unary(w, "Sigmoid", u, NULL);
    const char *rest = fac_onnx_unary(w, "Sigmoid", fac_onnx_unary(w, "Neg", u, NULL), NULL);
    const char *bell = fac_onnx_binary(w, "Mul", fac_onnx_binary(w, "Mul", x, s, NULL), rest, NULL);
    fac_onnx_binary(w, "Add", s, fac_onnx_binary(w, "Mul", bell, du, NULL), y);
    return true;
}

static const fac_onnx onnx[] = { { 0 } };
static const fac_case cases[] = {
    { "gelu_tanh_slope(f32[2,37])", -6, 6, 2e-6 },     { "gelu_tanh_slope(f64[5])", -5, 5, 1e-12 },
    { "gelu_tanh_slope(f16[9])", -5, 5, 4e-3 },        { "gelu_tanh_slope(bf16[9])", -5, 5, 2e-2 },
    { "gelu_tanh_slope(f32[0,3])", 0, 0, 0 },          { "gelu_tanh_slope(f32[])", -5, 5, 2e-6 },
    { "gelu_tanh_slope(f32[40])", -1e12, 1e12, 2e-6 }, { 0 }
};

const fac_op fac_op_gelu_tanh_slope = {
    MAP1_OP("gelu_tanh_slope", "the derivative of gelu_tanh"),
    .define = define,
    .save = save,
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_SMOOTH, .slope = 0.8 },
};
fac_value *fac_gelu_tanh_slope(fac_value *x) {
    return fac_emit(&fac_op_gelu_tanh_slope, NULL, 1, &x);
}
