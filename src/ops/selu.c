#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
/* gamma x, or gamma alpha (e^x - 1) where x <= 0; alpha 1.6732632, gamma 1.0507010 (Klambauer et
 * al. 2017) */
fac_value *fac_selu(fac_value *x, double alpha, double gamma);
#endif

typedef struct attrs {
    double alpha, gamma;
} attrs;
static const fac_attr table[] = {
    { "alpha", FAC_A_REAL, offsetof(attrs, alpha), 0, 0, 0, 0, NULL, "1.6732632 in the paper" },
    { "gamma", FAC_A_REAL, offsetof(attrs, gamma), 0, 0, 0, 0, NULL, "1.0507010 in the paper" },
    { 0 }
};

MAP1_P2(x > (T)0 ? P(1) * x : P(1) * P(0) * EXPM1(x))

/* gamma alpha e^x = y + gamma alpha below 0 and at it; NaN counts as above, as in torch */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    fac_value *below = fac_mul(dy[0], fac_grad_shifted(n->out[0], a->gamma * a->alpha));
    fac_value *x = n->in[0], *low = fac_less_or_equal(x, fac_grad_number(x, 0));
    dx[0] = fac_where(low, below, fac_grad_times(dy[0], a->gamma));
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    const bool old = n->opset < 6; /* whose defaults have five digits */
    const double alpha = old ? 1.6732 : 1.67326319217681884765625;
    const double gamma = old ? 1.0507 : 1.05070102214813232421875;
    out[0] = fac_selu(in[0], fac_onnx_real(n, "alpha", alpha), fac_onnx_real(n, "gamma", gamma));
}
static const fac_onnx_attr names[] = { { "alpha", NULL }, { "gamma", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Selu", 1, 0, names, load, 0 }, { 0 } };
static const fac_case cases[] = { { "selu(f32[2,37]) alpha=1.6732632 gamma=1.0507010", -4, 4,
                                    1e-6 },
                                  { "selu(f64[5]) alpha=1.6732632 gamma=1.0507010", -4, 4, 1e-12 },
                                  { "selu(f16[9]) alpha=1.6732632 gamma=1.0507010", -4, 4, 2e-3 },
                                  { "selu(bf16[9]) alpha=1.6732632 gamma=1.0507010", -4, 4, 1e-2 },
                                  { "selu(f32[0,3]) alpha=1.6732632 gamma=1.0507010", 0, 0, 0 },
                                  { "selu(f32[]) alpha=1.6732632 gamma=1.0507010", -4, 4, 1e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0], *one = fac_number_as(x, 1);
    fac_value *below = fac_mul(fac_sub(fac_exp(x), one), fac_number_as(x, a->alpha));
    fac_value *y = fac_where(fac_greater(x, fac_number_as(x, 0)), x, below);
    out[0] = fac_mul(y, fac_number_as(x, a->gamma));
}

const fac_op fac_op_selu = {
    MAP1_OP("selu", "gamma x, or gamma alpha (e^x - 1) where x <= 0"),
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .save = fac_onnx_plain,
    .grad = grad,
    .define = define,
    .steps = fac_steps_zero,
    .rounding = { .rule = FAC_ROUND_MONOTONE },
};
fac_value *fac_selu(fac_value *x, double alpha, double gamma) {
    return fac_emit(&fac_op_selu, &(attrs){ alpha, gamma }, 1, &x);
}
