#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
fac_value *fac_expm1(fac_value *x); /* e^x - 1, exact near 0 */
#endif

MAP1(EXPM1(x))

/* y + 1 */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], fac_grad_shifted(n->out[0], 1));
}

static const fac_onnx onnx[] = { { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    const fac_dtype t = fac_value_type(n->in[0]).dtype;
    fac_onnx_binary(w, "Sub", fac_onnx_unary(w, "Exp", x, NULL), fac_onnx_number(w, t, 1), y);
    return true;
}

static const fac_case cases[] = { { "expm1(f32[2,37])", -4, 4, 2e-6 },
                                  { "expm1(f64[5])", -4, 4, 1e-11 },
                                  { "expm1(f16[9])", -4, 4, 4e-3 },
                                  { "expm1(bf16[9])", -4, 4, 2e-2 },
                                  { "expm1(f32[0,3])", 0, 0, 0 },
                                  { "expm1(f32[])", -4, 4, 2e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    out[0] = fac_sub(fac_exp(n->in[0]), fac_number_as(n->in[0], 1));
}

const fac_op fac_op_expm1 = {
    MAP1_OP("expm1", "e^x - 1"),
    .grad = grad,
    .save = save,
    .define = define,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_expm1(fac_value *x) { return fac_emit(&fac_op_expm1, NULL, 1, &x); }
