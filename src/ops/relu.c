#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_relu(fac_value *x); /* max(x, 0); NaN stays */
#endif

MAP1_NUM(x > (T)0 || ISNAN(x) ? x : (T)0)

/* 0 at 0, 1 at NaN, as in torch. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_grad_past(n->out[0], 0, dy[0]);
}

static const fac_onnx onnx[] = { { "", "Relu", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = {
    { "relu(f32[2,37])", -4, 4, 0 }, { "relu(f64[5])", -4, 4, 1e-12 }, { "relu(f16[9])", -4, 4, 0 },
    { "relu(bf16[9])", -4, 4, 0 },   { "relu(f32[0,3])", 0, 0, 0 },    { "relu(f32[])", -4, 4, 0 },
    { "relu(i32[9])", -9, 9, 0 },    { "relu(i8[9])", -128, 127, 0 },  { 0 }
};

const fac_op fac_op_relu = {
    MAP_OP("relu", "max(x, 0)", fac_ports_num_x, fac_infer_same),
    .is = FAC_OP_INPLACE | FAC_OP_PICKS,
    .grad = grad,
    .steps = fac_steps_zero,
    .layer = FAC_CLASS_RELU,
    .torch = "ReLU",
    .rounding = { .rule = FAC_ROUND_KEEPS },
};
fac_value *fac_relu(fac_value *x) { return fac_emit(&fac_op_relu, NULL, 1, &x); }
