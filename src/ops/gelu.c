#include <string.h>
#include "ops/define.h"
#include "ops/fusions.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
fac_value *fac_gelu(fac_value *x); /* x / 2 (1 + erf(x / sqrt 2)) */
#endif

MAP1(GELU(x))

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], fac_gelu_slope(n->in[0]));
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const char *how = fac_onnx_text(n, "approximate", "none");
    if (!strcmp(how, "tanh"))
        out[0] = fac_gelu_tanh(in[0]);
    else if (!strcmp(how, "none"))
        out[0] = fac_gelu(in[0]);
    else
        out[0] = fac_fail_graph(g, FAC_E_FORMAT,
                                "Gelu: approximate is \"%s\", expected none or tanh", how);
}
static const fac_onnx_attr names[] = { { "approximate", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Gelu", 20, 0, names, load, 0 },
                                 { "com.microsoft", "Gelu", 1, 0, NULL, load, 0 },
                                 { "com.microsoft", "BiasGelu", 1, 0, NULL, fac_load_bias_gelu, 2 },
                                 { 0 } };
/* Before opset 20: x (1 + erf(x / sqrt 2)) / 2. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_dtype dtype = n->in[0]->type.dtype;
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    if (w->opset >= 20) return fac_onnx_unary(w, "Gelu", x, y) != NULL;
    const char *scaled =
        fac_onnx_binary(w, "Div", x, fac_onnx_number(w, dtype, 1.41421356237309504880), NULL);
    const char *both = fac_onnx_binary(w, "Add", fac_onnx_unary(w, "Erf", scaled, NULL),
                                       fac_onnx_number(w, dtype, 1), NULL);
    both = fac_onnx_binary(w, "Mul", x, both, NULL);
    fac_onnx_binary(w, "Mul", both, fac_onnx_number(w, dtype, 0.5), y);
    return true;
}

static const fac_case cases[] = {
    { "gelu(f32[2,37])", -5, 5, 1e-6 }, { "gelu(f64[5])", -5, 5, 1e-12 },
    { "gelu(f16[9])", -5, 5, 2e-3 },    { "gelu(f32[0,3])", 0, 0, 0 },
    { "gelu(f32[])", -5, 5, 1e-6 },     { 0 }
};

static void define(const fac_node *n, fac_value *out[]) {
    fac_value *x = n->in[0], *inside = fac_div(x, fac_number_as(x, 1.41421356237309504880));
    fac_value *twice = fac_add(fac_erf(inside), fac_number_as(x, 1));
    out[0] = fac_mul(fac_mul(x, twice), fac_number_as(x, 0.5));
}

const fac_op fac_op_gelu = {
    MAP1_OP("gelu", "x / 2 (1 + erf(x / sqrt 2))"),
    .save = save,
    .grad = grad,
    .define = define,
    .steps = fac_steps_flat,
    .layer = FAC_CLASS_ACTIVATION,
    .torch = "GELU",
    .rounding = { FAC_ROUND_SMOOTH, 1.13, true },
};
fac_value *fac_gelu(fac_value *x) { return fac_emit(&fac_op_gelu, NULL, 1, &x); }
