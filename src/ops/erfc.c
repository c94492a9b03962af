#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
fac_value *fac_erfc(fac_value *x); /* 1 - erf x, exact where erf is nearly 1 */
#endif

MAP1(ERFC(x))

/* -2 / sqrt(pi) e^(-x^2) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0];
    fac_value *bell = fac_exp(fac_neg(fac_mul(x, x)));
    dx[0] = fac_mul(dy[0], fac_grad_times(bell, -1.12837916709551257390));
}

static const fac_onnx onnx[] = { { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    const fac_dtype t = fac_value_type(n->in[0]).dtype;
    fac_onnx_binary(w, "Sub", fac_onnx_number(w, t, 1), fac_onnx_unary(w, "Erf", x, NULL), y);
    return true;
}

static const fac_case cases[] = { { "erfc(f32[2,37])", -4, 4, 2e-6 },
                                  { "erfc(f64[5])", -4, 4, 1e-11 },
                                  { "erfc(f16[9])", -4, 4, 4e-3 },
                                  { "erfc(bf16[9])", -4, 4, 2e-2 },
                                  { "erfc(f32[0,3])", 0, 0, 0 },
                                  { "erfc(f32[])", -4, 4, 2e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    out[0] = fac_sub(fac_number_as(n->in[0], 1), fac_erf(n->in[0]));
}

const fac_op fac_op_erfc = {
    MAP1_OP("erfc", "complementary error function"),
    .grad = grad,
    .save = save,
    .define = define,
    .steps = fac_steps_flat,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_erfc(fac_value *x) { return fac_emit(&fac_op_erfc, NULL, 1, &x); }
