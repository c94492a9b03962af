#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_erf(fac_value *x); /* 2 / sqrt(pi) times the integral of e^-t^2 from 0 to x */
#endif

MAP1(ERF(x))

/* 2 / sqrt(pi) e^(-x^2) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0];
    dx[0] = fac_mul(dy[0], fac_grad_times(fac_exp(fac_neg(fac_mul(x, x))), 1.12837916709551257390));
}

static const fac_onnx onnx[] = { { "", "Erf", 9, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "erf(f32[2,37])", -4, 4, 1e-6 },
                                  { "erf(f64[5])", -4, 4, 1e-12 },
                                  { "erf(f16[9])", -4, 4, 2e-3 },
                                  { "erf(bf16[9])", -4, 4, 1e-2 },
                                  { "erf(f32[0,3])", 0, 0, 0 },
                                  { "erf(f32[])", -4, 4, 1e-6 },
                                  { 0 } };

const fac_op fac_op_erf = {
    MAP1_OP("erf", "error function"),
    .grad = grad,
    .steps = fac_steps_flat,
    .mixed = FAC_MIXED_SENSITIVE,
    .rounding = { .rule = FAC_ROUND_SMOOTH, .slope = 1.13 },
};
fac_value *fac_erf(fac_value *x) { return fac_emit(&fac_op_erf, NULL, 1, &x); }
