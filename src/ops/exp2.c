#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
fac_value *fac_exp2(fac_value *x); /* 2^x */
#endif

MAP1(EXP2(x))

/* y ln 2 */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], fac_grad_times(n->out[0], 0.69314718055994530942));
}

static const fac_onnx onnx[] = { { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    const fac_dtype t = fac_value_type(n->in[0]).dtype;
    fac_onnx_binary(w, "Pow", fac_onnx_number(w, t, 2), x, y);
    return true;
}

static const fac_case cases[] = { { "exp2(f32[2,37])", -6, 6, 2e-6 },
                                  { "exp2(f64[5])", -6, 6, 1e-11 },
                                  { "exp2(f16[9])", -6, 6, 4e-3 },
                                  { "exp2(bf16[9])", -6, 6, 2e-2 },
                                  { "exp2(f32[0,3])", 0, 0, 0 },
                                  { "exp2(f32[])", -6, 6, 2e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    out[0] = fac_pow(fac_number_as(n->in[0], 2), n->in[0]);
}

const fac_op fac_op_exp2 = {
    MAP1_OP("exp2", "2 to the power x"),    .grad = grad, .save = save, .define = define,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_exp2(fac_value *x) { return fac_emit(&fac_op_exp2, NULL, 1, &x); }
