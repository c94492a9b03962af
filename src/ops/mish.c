#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
fac_value *fac_mish(fac_value *x); /* x tanh(ln(1 + e^x)) */
#endif

MAP1(x *TANH((x > (T)0 ? x : (T)0) + LOG1P(EXP(-ABS(x)))))

/* t + x (1 - t^2) sigmoid(x),  t = tanh(softplus(x)) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0], *t = fac_tanh(fac_softplus(x)),
              *slope = fac_mul(fac_grad_rest(fac_mul(t, t)), fac_sigmoid(x));
    dx[0] = fac_mul(dy[0], fac_add(t, fac_mul(x, slope)));
}

static const fac_onnx onnx[] = { { "", "Mish", 18, 0, NULL, NULL, 0 }, { 0 } };
/* Before opset 18: x tanh(softplus(x)). */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    if (w->opset >= 18) return fac_onnx_plain(w, n);
    return fac_onnx_binary(w, "Mul", x,
                           fac_onnx_unary(w, "Tanh", fac_onnx_unary(w, "Softplus", x, NULL), NULL),
                           y) != NULL;
}

static const fac_case cases[] = { { "mish(f32[2,37])", -9, 9, 2e-6 },
                                  { "mish(f64[5])", -9, 9, 1e-12 },
                                  { "mish(f16[9])", -9, 9, 2e-3 },
                                  { "mish(bf16[9])", -9, 9, 1e-2 },
                                  { "mish(f32[0,3])", 0, 0, 0 },
                                  { "mish(f32[])", -9, 9, 2e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    out[0] = fac_mul(n->in[0], fac_tanh(fac_softplus(n->in[0])));
}

const fac_op fac_op_mish = {
    MAP1_OP("mish", "x tanh(softplus(x))"),
    .save = save,
    .grad = grad,
    .define = define,
    .steps = fac_steps_flat,
    .rounding = { FAC_ROUND_SMOOTH, 1.1, true },
};
fac_value *fac_mish(fac_value *x) { return fac_emit(&fac_op_mish, NULL, 1, &x); }
