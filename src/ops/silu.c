#include "ops/define.h"
#include "ops/fusions.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
fac_value *fac_silu(fac_value *x); /* x / (1 + e^-x), also called swish */
#endif

MAP1(x *SIGMOID(x))

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], fac_silu_slope(n->in[0]));
}

/* Swish with a factor: x sigmoid(alpha x). */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    double alpha = fac_onnx_real(n, "alpha", 1);
    fac_value *x = in[0];
    out[0] =
        alpha == 1
            ? fac_silu(x)
            : fac_mul(x, fac_sigmoid(fac_mul(x, fac_number(g, fac_value_type(x).dtype, alpha))));
}
static const fac_onnx_attr names[] = { { "alpha", NULL }, { 0 } };
/* A gate's: swish of one input times the other. */
static void load_gated(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                       fac_value *out[]) {
    fac_value *gate;
    load(n, g, in, &gate);
    out[0] = fac_mul(gate, in[1]);
}
static const fac_onnx onnx[] = { { "", "Swish", 24, 0, names, load, 0 },
                                 { "", "SwiGLU", 28, 0, names, load_gated, 2 },
                                 { "com.microsoft", "QuickGelu", 1, 0, fac_names_quick_gelu,
                                   fac_load_quick_gelu, 0 },
                                 { 0 } };
/* Before opset 24: x sigmoid(x). */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    if (w->opset >= 24) return fac_onnx_unary(w, "Swish", x, y) != NULL;
    return fac_onnx_binary(w, "Mul", x, fac_onnx_unary(w, "Sigmoid", x, NULL), y) != NULL;
}

static const fac_case cases[] = { { "silu(f32[2,37])", -9, 9, 1e-6 },
                                  { "silu(f64[5])", -9, 9, 1e-12 },
                                  { "silu(f16[9])", -9, 9, 2e-3 },
                                  { "silu(bf16[9])", -9, 9, 2e-2 },
                                  { "silu(f32[0,3])", 0, 0, 0 },
                                  { "silu(f32[])", -9, 9, 1e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    out[0] = fac_mul(n->in[0], fac_sigmoid(n->in[0]));
}

const fac_op fac_op_silu = {
    MAP1_OP("silu", "x / (1 + exp(-x)): SiLU, swish"),
    .save = save,
    .grad = grad,
    .define = define,
    .steps = fac_steps_flat,
    .torch = "SiLU",
    .rounding = { FAC_ROUND_SMOOTH, 1.1, true },
};
fac_value *fac_silu(fac_value *x) { return fac_emit(&fac_op_silu, NULL, 1, &x); }
