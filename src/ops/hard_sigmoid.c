#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
/* min(max(slope x + offset, 0), 1); PyTorch: 1/6, 1/2; ONNX: 0.2, 0.5 */
fac_value *fac_hard_sigmoid(fac_value *x, double slope, double offset);
#endif

typedef struct attrs {
    double slope, offset;
} attrs;
static const fac_attr table[] = { { "slope", FAC_A_REAL, offsetof(attrs, slope), 0, 0, 0, 0, NULL,
                                    "1/6 in PyTorch, 0.2 in ONNX" },
                                  { "offset", FAC_A_REAL, offsetof(attrs, offset), 0, 0, 0, 0, NULL,
                                    "value at 0" },
                                  { 0 } };

MAP1_P2(MIN(MAX(P(0) * x + P(1), (T)0), (T)1))

/* 0 at both corners, as in torch. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *between = fac_and(fac_grad_above(n->out[0], 0), fac_grad_below(n->out[0], 1));
    dx[0] = fac_grad_where(between, fac_grad_times(dy[0], ((const attrs *)n->attrs)->slope));
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    out[0] =
        fac_hard_sigmoid(in[0], fac_onnx_real(n, "alpha", 0.2f), fac_onnx_real(n, "beta", 0.5));
}
static const fac_onnx_attr names[] = { { "alpha", "slope" }, { "beta", "offset" }, { 0 } };
static const fac_onnx onnx[] = { { "", "HardSigmoid", 1, 0, names, load, 0 }, { 0 } };
static const fac_case cases[] = { { "hard_sigmoid(f32[2,37]) slope=0.2 offset=0.5", -4, 4, 1e-6 },
                                  { "hard_sigmoid(f64[5]) slope=0.2 offset=0.5", -4, 4, 1e-12 },
                                  { "hard_sigmoid(f16[9]) slope=0.2 offset=0.5", -4, 4, 2e-3 },
                                  { "hard_sigmoid(bf16[9]) slope=0.2 offset=0.5", -4, 4, 1e-2 },
                                  { "hard_sigmoid(f32[0,3]) slope=0.2 offset=0.5", 0, 0, 0 },
                                  { "hard_sigmoid(f32[]) slope=0.2 offset=0.5", -4, 4, 1e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0];
    fac_value *line = fac_add(fac_mul(x, fac_number_as(x, a->slope)), fac_number_as(x, a->offset));
    out[0] = fac_clip(line, fac_number_as(x, 0), fac_number_as(x, 1));
}

static int steps(const fac_node *n, double at[]) {
    const attrs *a = n->attrs;
    if (!(a->slope > 0)) return 0;
    at[0] = -a->offset / a->slope;
    at[1] = (1 - a->offset) / a->slope;
    return 2;
}

const fac_op fac_op_hard_sigmoid = {
    MAP1_OP("hard_sigmoid", "min(max(slope x + offset, 0), 1)"),
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .save = fac_onnx_plain,
    .grad = grad,
    .define = define,
    .steps = steps,
    .torch = "Hardsigmoid",
    .rounding = { .rule = FAC_ROUND_SMOOTH, .slope = 1 },
};
fac_value *fac_hard_sigmoid(fac_value *x, double slope, double offset) {
    return fac_emit(&fac_op_hard_sigmoid, &(attrs){ slope, offset }, 1, &x);
}
