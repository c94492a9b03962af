#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
fac_value *fac_log2(fac_value *x); /* logarithm to base 2 */
#endif

MAP1(LOG2(x))

/* 1 / (x ln 2) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_div(fac_grad_times(dy[0], 1.44269504088896340736), n->in[0]);
}

static const fac_onnx onnx[] = { { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    const fac_dtype t = fac_value_type(n->in[0]).dtype;
    fac_onnx_binary(w, "Mul", fac_onnx_unary(w, "Log", x, NULL),
                    fac_onnx_number(w, t, 1.44269504088896340736), y);
    return true;
}

static const fac_case cases[] = { { "log2(f32[2,37])", 0.01, 100, 2e-6 },
                                  { "log2(f64[5])", 0.01, 100, 1e-11 },
                                  { "log2(f16[9])", 0.01, 100, 4e-3 },
                                  { "log2(bf16[9])", 0.01, 100, 2e-2 },
                                  { "log2(f32[0,3])", 0, 0, 0 },
                                  { "log2(f32[])", 0.01, 100, 2e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    out[0] = fac_mul(fac_log(n->in[0]), fac_number_as(n->in[0], 1.44269504088896340736));
}

const fac_op fac_op_log2 = {
    MAP1_OP("log2", "logarithm to base 2"), .grad = grad, .save = save, .define = define,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_log2(fac_value *x) { return fac_emit(&fac_op_log2, NULL, 1, &x); }
