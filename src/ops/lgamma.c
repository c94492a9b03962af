#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_lgamma(fac_value *x); /* ln |gamma(x)|; inf for 0, -1, -2... */
#endif

MAP1(LGAMMA(x))

/* digamma(x) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_mul(dy[0], fac_digamma(n->in[0]));
}

static const fac_onnx onnx[] = { { 0 } };
static const fac_case cases[] = { { "lgamma(f32[2,37])", 0.3, 9, 4e-6 },
                                  { "lgamma(f64[5])", 0.3, 9, 1e-11 },
                                  { "lgamma(f16[9])", 0.3, 9, 4e-3 },
                                  { "lgamma(bf16[9])", 0.3, 9, 2e-2 },
                                  { "lgamma(f32[0,3])", 0, 0, 0 },
                                  { "lgamma(f32[])", 0.3, 9, 4e-6 },
                                  { 0 } };

const fac_op fac_op_lgamma = {
    MAP1_OP("lgamma", "logarithm of the gamma function"),
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_lgamma(fac_value *x) { return fac_emit(&fac_op_lgamma, NULL, 1, &x); }
