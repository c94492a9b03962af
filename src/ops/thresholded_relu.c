#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
/* x where x > threshold, else 0 */
fac_value *fac_thresholded_relu(fac_value *x, double threshold);
#endif

typedef struct attrs {
    double threshold;
} attrs;
static const fac_attr table[] = { { "threshold", FAC_A_REAL, offsetof(attrs, threshold), 0, 0, 0, 0,
                                    NULL, "the largest x that gives 0" },
                                  { 0 } };

MAP1_P1(x > P(0) ? x : (T)0)

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_grad_where(fac_grad_above(n->in[0], ((const attrs *)n->attrs)->threshold), dy[0]);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    out[0] = fac_thresholded_relu(in[0], fac_onnx_real(n, "alpha", 1));
}
static const fac_onnx_attr names[] = { { "alpha", "threshold" }, { 0 } };
static const fac_onnx onnx[] = { { "", "ThresholdedRelu", 1, 0, names, load, 0 }, { 0 } };
static const fac_case cases[] = { { "thresholded_relu(f32[2,37]) threshold=1", -4, 4, 1e-6 },
                                  { "thresholded_relu(f64[5]) threshold=1", -4, 4, 1e-12 },
                                  { "thresholded_relu(f16[9]) threshold=1", -4, 4, 2e-3 },
                                  { "thresholded_relu(bf16[9]) threshold=1", -4, 4, 1e-2 },
                                  { "thresholded_relu(f32[0,3]) threshold=1", 0, 0, 0 },
                                  { "thresholded_relu(f32[]) threshold=1", -4, 4, 1e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    fac_value *x = n->in[0], *least = fac_number_as(x, ((const attrs *)n->attrs)->threshold);
    out[0] = fac_where(fac_greater(x, least), x, fac_number_as(x, 0));
}

static int steps(const fac_node *n, double at[]) {
    at[0] = ((const attrs *)n->attrs)->threshold;
    return 1;
}

const fac_op fac_op_thresholded_relu = {
    MAP1_OP("thresholded_relu", "x where x > threshold, else 0"),
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .save = fac_onnx_plain,
    .grad = grad,
    .define = define,
    .steps = steps,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_thresholded_relu(fac_value *x, double threshold) {
    return fac_emit(&fac_op_thresholded_relu, &(attrs){ threshold }, 1, &x);
}
