#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
/* x, or alpha (e^x - 1) where x < 0; usual alpha: 1 */
fac_value *fac_elu(fac_value *x, double alpha);
#endif

typedef struct attrs {
    double alpha;
} attrs;
static const fac_attr table[] = { { "alpha", FAC_A_REAL, offsetof(attrs, alpha), 0, 0, 0, 0, NULL,
                                    "minus the limit for x to -inf" },
                                  { 0 } };

MAP1_P1(x < (T)0 ? P(0) * EXPM1(x) : x)

/* alpha e^x = y + alpha below 0 and, as in torch, at it */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0];
    dx[0] = fac_where(fac_less_or_equal(x, fac_grad_number(x, 0)),
                      fac_mul(dy[0], fac_grad_shifted(n->out[0], a->alpha)), dy[0]);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    out[0] = fac_elu(in[0], fac_onnx_real(n, "alpha", 1));
}
static const fac_onnx_attr names[] = { { "alpha", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Elu", 1, 0, names, load, 0 }, { 0 } };
static const fac_case cases[] = { { "elu(f32[2,37]) alpha=1.5", -4, 4, 1e-6 },
                                  { "elu(f64[5]) alpha=1.5", -4, 4, 1e-12 },
                                  { "elu(f16[9]) alpha=1.5", -4, 4, 2e-3 },
                                  { "elu(bf16[9]) alpha=1.5", -4, 4, 1e-2 },
                                  { "elu(f32[0,3]) alpha=1.5", 0, 0, 0 },
                                  { "elu(f32[]) alpha=1.5", -4, 4, 1e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    fac_value *x = n->in[0], *one = fac_number_as(x, 1);
    fac_value *below =
        fac_mul(fac_sub(fac_exp(x), one), fac_number_as(x, ((const attrs *)n->attrs)->alpha));
    out[0] = fac_where(fac_less(x, fac_number_as(x, 0)), below, x);
}

const fac_op fac_op_elu = {
    MAP1_OP("elu", "x, or alpha (e^x - 1) where x < 0"),
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .save = fac_onnx_plain,
    .grad = grad,
    .define = define,
    .steps = fac_steps_zero,
    .layer = FAC_CLASS_ACTIVATION,
    .torch = "ELU",
    .rounding = { .rule = FAC_ROUND_MONOTONE },
};
fac_value *fac_elu(fac_value *x, double alpha) {
    return fac_emit(&fac_op_elu, &(attrs){ alpha }, 1, &x);
}
