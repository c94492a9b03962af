#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_erfinv(fac_value *x); /* the x whose erf is this; +-inf for +-1, NaN beyond */
#endif

MAP1(ERFINV(x))

/* sqrt(pi) / 2 e^(y^2) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *y = n->out[0];
    dx[0] = fac_mul(dy[0], fac_grad_times(fac_exp(fac_mul(y, y)), 0.88622692545275801365));
}

static const fac_onnx onnx[] = { { 0 } };
static const fac_case cases[] = { { "erfinv(f32[2,37])", -0.9, 0.9, 2e-6 },
                                  { "erfinv(f64[5])", -0.9, 0.9, 1e-11 },
                                  { "erfinv(f16[9])", -0.9, 0.9, 4e-3 },
                                  { "erfinv(bf16[9])", -0.9, 0.9, 2e-2 },
                                  { "erfinv(f32[0,3])", 0, 0, 0 },
                                  { "erfinv(f32[])", -0.9, 0.9, 2e-6 },
                                  { 0 } };

const fac_op fac_op_erfinv = {
    MAP1_OP("erfinv", "inverse of the error function"),
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_erfinv(fac_value *x) { return fac_emit(&fac_op_erfinv, NULL, 1, &x); }
