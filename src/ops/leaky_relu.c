#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
/* x, or slope x where x < 0; usual slope: 0.01 */
fac_value *fac_leaky_relu(fac_value *x, double slope);
#endif

typedef struct attrs {
    double slope;
} attrs;
static const fac_attr table[] = {
    { "slope", FAC_A_REAL, offsetof(attrs, slope), 0, 0, 0, 0, NULL, "factor of negative x" }, { 0 }
};

MAP1_P1(x < (T)0 ? P(0) * x : x)

/* The slope at 0 and NaN, as in torch. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_where(fac_grad_above(n->in[0], 0), dy[0],
                      fac_grad_times(dy[0], ((const attrs *)n->attrs)->slope));
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    out[0] = fac_leaky_relu(in[0], fac_onnx_real(n, "alpha", 0.01f));
}
static const fac_onnx_attr names[] = { { "alpha", "slope" }, { 0 } };
static const fac_onnx onnx[] = { { "", "LeakyRelu", 1, 0, names, load, 0 }, { 0 } };
static const fac_case cases[] = { { "leaky_relu(f32[2,37]) slope=0.01", -4, 4, 1e-6 },
                                  { "leaky_relu(f64[5]) slope=0.01", -4, 4, 1e-12 },
                                  { "leaky_relu(f16[9]) slope=0.01", -4, 4, 2e-3 },
                                  { "leaky_relu(bf16[9]) slope=0.01", -4, 4, 1e-2 },
                                  { "leaky_relu(f32[0,3]) slope=0.01", 0, 0, 0 },
                                  { "leaky_relu(f32[]) slope=0.01", -4, 4, 1e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    fac_value *x = n->in[0];
    fac_value *below = fac_mul(x, fac_number_as(x, ((const attrs *)n->attrs)->slope));
    out[0] = fac_where(fac_less(x, fac_number_as(x, 0)), below, x);
}

const fac_op fac_op_leaky_relu = {
    MAP1_OP("leaky_relu", "x, or slope x where x < 0"),
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .save = fac_onnx_plain,
    .grad = grad,
    .define = define,
    .steps = fac_steps_zero,
    .layer = FAC_CLASS_ACTIVATION,
    .torch = "LeakyReLU",
    .rounding = { .rule = FAC_ROUND_SMOOTH, .slope = 1 },
};
fac_value *fac_leaky_relu(fac_value *x, double slope) {
    return fac_emit(&fac_op_leaky_relu, &(attrs){ slope }, 1, &x);
}
