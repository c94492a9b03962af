/* The derivative of GELU, as an operator: one function of x instead of ten steps. */
#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
/* F(x) + x f(x), with the normal distribution F and its density f(x) = e^(-x^2 / 2) / sqrt(2 pi):
 * what gelu rises by */
fac_value *fac_gelu_slope(fac_value *x);
#endif

MAP1(GELU_SLOPE(x))

static const double DENSITY = 0.39894228040143267794; /* 1 / sqrt(2 pi) */
static const double HALVED = 0.70710678118654752440;  /* 1 / sqrt 2 */

/* f(x) (2 - x^2) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *square = fac_mul(n->in[0], n->in[0]), *bell = fac_exp(fac_grad_times(square, -0.5));
    dx[0] = fac_mul(dy[0],
                    fac_mul(bell, fac_grad_times(fac_grad_shifted(fac_neg(square), 2), DENSITY)));
}

static void define(const fac_node *n, fac_value *out[]) {
    fac_value *x = n->in[0], *half = fac_number_as(x, 0.5);
    fac_value *below = fac_erf(fac_mul(x, fac_number_as(x, HALVED)));
    below = fac_mul(fac_add(below, fac_number_as(x, 1)), half);
    fac_value *bell = fac_exp(fac_neg(fac_mul(fac_mul(x, x), half)));
    out[0] = fac_add(below, fac_mul(x, fac_mul(bell, fac_number_as(x, DENSITY))));
}

/* (1 + erf(x / sqrt 2)) / 2 + x f(x) */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_dtype t = n->in[0]->type.dtype;
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]),
               *half = fac_onnx_number(w, t, 0.5);
    const char *below = fac_onnx_unary(
        w, "Erf", fac_onnx_binary(w, "Mul", x, fac_onnx_number(w, t, HALVED), NULL), NULL);
    below = fac_onnx_binary(
        w, "Mul", fac_onnx_binary(w, "Add", below, fac_onnx_number(w, t, 1), NULL), half, NULL);
    const char *bell = fac_onnx_binary(w, "Mul", fac_onnx_binary(w, "Mul", x, x, NULL), half, NULL);
    bell = fac_onnx_unary(w, "Exp", fac_onnx_unary(w, "Neg", bell, NULL), NULL);
    bell = fac_onnx_binary(w, "Mul", bell, fac_onnx_number(w, t, DENSITY), NULL);
    fac_onnx_binary(w, "Add", below, fac_onnx_binary(w, "Mul", x, bell, NULL), y);
    return true;
}

static const fac_onnx onnx[] = { { 0 } };
static const fac_case cases[] = { { "gelu_slope(f32[2,37])", -6, 6, 1e-6 },
                                  { "gelu_slope(f64[5])", -5, 5, 1e-12 },
                                  { "gelu_slope(f16[9])", -5, 5, 2e-3 },
                                  { "gelu_slope(bf16[9])", -5, 5, 1e-2 },
                                  { "gelu_slope(f32[0,3])", 0, 0, 0 },
                                  { "gelu_slope(f32[])", -5, 5, 1e-6 },
                                  { 0 } };

const fac_op fac_op_gelu_slope = {
    MAP1_OP("gelu_slope", "the derivative of gelu"),
    .define = define,
    .save = save,
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_SMOOTH, .slope = 0.8 },
};
fac_value *fac_gelu_slope(fac_value *x) { return fac_emit(&fac_op_gelu_slope, NULL, 1, &x); }
