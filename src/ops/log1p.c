#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
fac_value *fac_log1p(fac_value *x); /* ln(1 + x), exact near 0 */
#endif

MAP1(LOG1P(x))

/* 1 / (1 + x) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_div(dy[0], fac_grad_shifted(n->in[0], 1));
}

static const fac_onnx onnx[] = { { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    const fac_dtype t = fac_value_type(n->in[0]).dtype;
    fac_onnx_unary(w, "Log", fac_onnx_binary(w, "Add", x, fac_onnx_number(w, t, 1), NULL), y);
    return true;
}

static const fac_case cases[] = { { "log1p(f32[2,37])", -0.9, 9, 2e-6 },
                                  { "log1p(f64[5])", -0.9, 9, 1e-11 },
                                  { "log1p(f16[9])", -0.9, 9, 4e-3 },
                                  { "log1p(bf16[9])", -0.9, 9, 2e-2 },
                                  { "log1p(f32[0,3])", 0, 0, 0 },
                                  { "log1p(f32[])", -0.9, 9, 2e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    out[0] = fac_log(fac_add(n->in[0], fac_number_as(n->in[0], 1)));
}

const fac_op fac_op_log1p = {
    MAP1_OP("log1p", "ln(1 + x)"),          .grad = grad, .save = save, .define = define,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_log1p(fac_value *x) { return fac_emit(&fac_op_log1p, NULL, 1, &x); }
