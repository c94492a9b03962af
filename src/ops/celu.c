#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
/* x, or alpha (e^(x/alpha) - 1) where x < 0; usual alpha: 1 */
fac_value *fac_celu(fac_value *x, double alpha);
#endif

typedef struct attrs {
    double alpha;
} attrs;
static const fac_attr table[] = { { "alpha", FAC_A_REAL, offsetof(attrs, alpha), 0, 0, 0, 0, NULL,
                                    "minus the limit for x to -inf; not 0" },
                                  { 0 } };

MAP1_P1(x < (T)0 ? P(0) * EXPM1(x / P(0)) : x)

/* e^(x / alpha) = y / alpha + 1 below 0 */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    fac_value *below = fac_mul(dy[0], fac_grad_shifted(fac_grad_times(n->out[0], 1 / a->alpha), 1));
    dx[0] = fac_where(fac_grad_below(n->in[0], 0), below, dy[0]);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    out[0] = fac_celu(in[0], fac_onnx_real(n, "alpha", 1));
}
static const fac_onnx_attr names[] = { { "alpha", "alpha" }, { 0 } };
static const fac_onnx onnx[] = { { "", "Celu", 12, 0, names, load, 0 }, { 0 } };
/* ONNX has it for f32 only; of others it is alpha elu(x / alpha). */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_dtype dtype = n->in[0]->type.dtype;
    if (dtype == FAC_F32) return fac_onnx_plain(w, n);
    const char *alpha = fac_onnx_number(w, dtype, ((const attrs *)n->attrs)->alpha);
    const char *y = fac_onnx_unary(
        w, "Elu", fac_onnx_binary(w, "Div", fac_onnx_name(w, n->in[0]), alpha, NULL), NULL);
    fac_onnx_binary(w, "Mul", y, alpha, fac_onnx_name(w, n->out[0]));
    return true;
}

static const fac_case cases[] = { { "celu(f32[2,37]) alpha=2", -4, 4, 1e-6 },
                                  { "celu(f64[5]) alpha=2", -4, 4, 1e-12 },
                                  { "celu(f16[9]) alpha=2", -4, 4, 2e-3 },
                                  { "celu(bf16[9]) alpha=2", -4, 4, 1e-2 },
                                  { "celu(f32[0,3]) alpha=2", 0, 0, 0 },
                                  { "celu(f32[]) alpha=2", -4, 4, 1e-6 },
                                  { 0 } };

/* alpha elu(x / alpha), as files hold it where ONNX lacks the type */
static void define(const fac_node *n, fac_value *out[]) {
    fac_value *x = n->in[0], *alpha = fac_number_as(x, ((const attrs *)n->attrs)->alpha);
    out[0] = fac_mul(fac_elu(fac_div(x, alpha), 1), alpha);
}

const fac_op fac_op_celu = {
    MAP1_OP("celu", "x, or alpha (e^(x/alpha) - 1) where x < 0"),
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .save = save,
    .grad = grad,
    .define = define,
    .steps = fac_steps_zero,
    .rounding = { .rule = FAC_ROUND_MONOTONE },
};
fac_value *fac_celu(fac_value *x, double alpha) {
    return fac_emit(&fac_op_celu, &(attrs){ alpha }, 1, &x);
}
