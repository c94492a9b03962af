#include "ops/fusions.h"
#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_softplus(fac_value *x); /* ln(1 + e^x), without overflow */
#endif

MAP1((x > (T)0 ? x : (T)0) + LOG1P(EXP(-ABS(x))))

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], fac_sigmoid(n->in[0]));
}

static const fac_onnx onnx[] = { { "", "Softplus", 1, 0, NULL, NULL, 0 },
                                 { "", "ParametricSoftplus", 1, 0, fac_names_affine,
                                   fac_load_parametric_softplus, 0 },
                                 { 0 } };
static const fac_case cases[] = { { "softplus(f32[2,37])", -20, 20, 1e-6 },
                                  { "softplus(f64[5])", -20, 20, 1e-12 },
                                  { "softplus(f16[9])", -20, 20, 2e-3 },
                                  { "softplus(bf16[9])", -20, 20, 1e-2 },
                                  { "softplus(f32[0,3])", 0, 0, 0 },
                                  { "softplus(f32[])", -20, 20, 1e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    out[0] = fac_log(fac_add(fac_exp(n->in[0]), fac_number_as(n->in[0], 1)));
}

const fac_op fac_op_softplus = {
    MAP1_OP("softplus", "ln(1 + e^x)"),
    .grad = grad,
    .define = define,
    .steps = fac_steps_flat,
    .mixed = FAC_MIXED_SENSITIVE,
    .rounding = { .rule = FAC_ROUND_SMOOTH, .slope = 1 },
};
fac_value *fac_softplus(fac_value *x) { return fac_emit(&fac_op_softplus, NULL, 1, &x); }
