/* The derivative of SiLU, as an operator: one function of x instead of five steps. */
#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
/* s + x s (1 - s), s = 1 / (1 + e^-x): what silu rises by */
fac_value *fac_silu_slope(fac_value *x);
#endif

MAP1(SIGMOID(x) * (1 + x * (1 - SIGMOID(x))))

/* s (1 - s) (2 + x (1 - 2 s)) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0], *s = fac_sigmoid(x),
              *bend = fac_mul(x, fac_grad_rest(fac_grad_times(s, 2)));
    dx[0] = fac_mul(dy[0], fac_mul(fac_mul(s, fac_grad_rest(s)), fac_grad_shifted(bend, 2)));
}

static void define(const fac_node *n, fac_value *out[]) {
    fac_value *x = n->in[0], *one = fac_number_as(x, 1), *s = fac_sigmoid(x);
    out[0] = fac_mul(s, fac_add(fac_mul(x, fac_sub(one, s)), one));
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    const char *one = fac_onnx_number(w, n->in[0]->type.dtype, 1),
               *s = fac_onnx_unary(w, "Sigmoid", x, NULL);
    const char *bend = fac_onnx_binary(w, "Mul", x, fac_onnx_binary(w, "Sub", one, s, NULL), NULL);
    fac_onnx_binary(w, "Mul", s, fac_onnx_binary(w, "Add", bend, one, NULL), y);
    return true;
}

static const fac_onnx onnx[] = { { 0 } };
static const fac_case cases[] = { { "silu_slope(f32[2,37])", -9, 9, 1e-6 },
                                  { "silu_slope(f64[5])", -9, 9, 1e-12 },
                                  { "silu_slope(f16[9])", -9, 9, 2e-3 },
                                  { "silu_slope(bf16[9])", -9, 9, 1e-2 },
                                  { "silu_slope(f32[0,3])", 0, 0, 0 },
                                  { "silu_slope(f32[])", -9, 9, 1e-6 },
                                  { 0 } };

const fac_op fac_op_silu_slope = {
    MAP1_OP("silu_slope", "the derivative of silu"),
    .define = define,
    .save = save,
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_SMOOTH, .slope = 0.5 },
};
fac_value *fac_silu_slope(fac_value *x) { return fac_emit(&fac_op_silu_slope, NULL, 1, &x); }
