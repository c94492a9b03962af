#include "ops/define.h"
#include "ops/fusions.h"
#include "ops/map.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
/* x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): the usual approximation of GELU */
fac_value *fac_gelu_tanh(fac_value *x);
#endif

/* (1 + tanh u) / 2 = 1 / (1 + e^-2u) */
MAP1(x *SIGMOID((T)1.59576912160573071176 * (x + (T)0.044715 * x * x * x)))

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], fac_gelu_tanh_slope(n->in[0]));
}

static const fac_onnx onnx[] = { { "com.microsoft", "FastGelu", 1, 0, NULL, fac_load_fast_gelu, 1 },
                                 { 0 } };
/* Before opset 20 by its formula. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_dtype t = n->in[0]->type.dtype;
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    if (w->opset >= 20) {
        fac_onnx_unary(w, "Gelu", x, y);
        fac_onnx_put_text(w, "approximate", "tanh");
        return true;
    }
    const char *square = fac_onnx_binary(w, "Mul", x, x, NULL);
    const char *cube = fac_onnx_binary(w, "Mul", square, x, NULL);
    cube = fac_onnx_binary(w, "Mul", cube, fac_onnx_number(w, t, 0.044715), NULL);
    const char *sum = fac_onnx_binary(w, "Add", x, cube, NULL);
    const char *u =
        fac_onnx_binary(w, "Mul", sum, fac_onnx_number(w, t, 0.79788456080286535588), NULL);
    const char *both = fac_onnx_binary(w, "Add", fac_onnx_unary(w, "Tanh", u, NULL),
                                       fac_onnx_number(w, t, 1), NULL);
    both = fac_onnx_binary(w, "Mul", x, both, NULL);
    fac_onnx_binary(w, "Mul", both, fac_onnx_number(w, t, 0.5), y);
    return true;
}

static const fac_case cases[] = { { "gelu_tanh(f32[2,37])", -5, 5, 2e-6 },
                                  { "gelu_tanh(f64[5])", -5, 5, 1e-12 },
                                  { "gelu_tanh(f16[9])", -5, 5, 2e-3 },
                                  { "gelu_tanh(bf16[9])", -5, 5, 1e-2 },
                                  { "gelu_tanh(f32[0,3])", 0, 0, 0 },
                                  { "gelu_tanh(f32[])", -5, 5, 2e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    fac_value *x = n->in[0], *cube = fac_mul(fac_mul(x, x), x);
    fac_value *sum = fac_add(x, fac_mul(cube, fac_number_as(x, 0.044715)));
    fac_value *inside = fac_mul(sum, fac_number_as(x, 0.79788456080286535588));
    fac_value *twice = fac_add(fac_tanh(inside), fac_number_as(x, 1));
    out[0] = fac_mul(fac_mul(x, twice), fac_number_as(x, 0.5));
}

const fac_op fac_op_gelu_tanh = {
    MAP1_OP("gelu_tanh", "x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))"),
    .save = save,
    .grad = grad,
    .define = define,
    .steps = fac_steps_flat,
    .layer = FAC_CLASS_ACTIVATION,
    .torch = "GELU",
    .rounding = { FAC_ROUND_SMOOTH, 1.13, true },
};
fac_value *fac_gelu_tanh(fac_value *x) { return fac_emit(&fac_op_gelu_tanh, NULL, 1, &x); }
