#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_softsign(fac_value *x); /* x / (1 + |x|) */
#endif

MAP1(x / ((T)1 + ABS(x)))

/* 1 / (1 + |x|)^2 */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *r = fac_reciprocal(fac_grad_shifted(fac_abs(n->in[0]), 1));
    dx[0] = fac_mul(dy[0], fac_mul(r, r));
}

static const fac_onnx onnx[] = { { "", "Softsign", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "softsign(f32[2,37])", -9, 9, 1e-6 },
                                  { "softsign(f64[5])", -9, 9, 1e-12 },
                                  { "softsign(f16[9])", -9, 9, 2e-3 },
                                  { "softsign(bf16[9])", -9, 9, 1e-2 },
                                  { "softsign(f32[0,3])", 0, 0, 0 },
                                  { "softsign(f32[])", -9, 9, 1e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    fac_value *x = n->in[0];
    out[0] = fac_div(x, fac_add(fac_abs(x), fac_number_as(x, 1)));
}

const fac_op fac_op_softsign = {
    MAP1_OP("softsign", "x / (1 + |x|)"),
    .grad = grad,
    .define = define,
    .steps = fac_steps_zero,
    .rounding = { .rule = FAC_ROUND_SMOOTH, .slope = 1 },
};
fac_value *fac_softsign(fac_value *x) { return fac_emit(&fac_op_softsign, NULL, 1, &x); }
