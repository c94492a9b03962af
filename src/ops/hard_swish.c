#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_hard_swish(fac_value *x); /* x min(max(x / 6 + 1/2, 0), 1) */
#endif

MAP1(x *MIN(MAX(x / (T)6 + (T)0.5, (T)0), (T)1))

/* x / 3 + 1/2 between -3 and 3; NaN counts as above, as in torch */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0],
              *bend = fac_mul(dy[0], fac_grad_shifted(fac_grad_times(x, 1.0 / 3), 0.5));
    dx[0] = fac_grad_past(x, -3, fac_where(fac_grad_below(x, 3), bend, dy[0]));
}

static const fac_onnx onnx[] = { { "", "HardSwish", 14, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "hard_swish(f32[2,37])", -5, 5, 1e-6 },
                                  { "hard_swish(f64[5])", -5, 5, 1e-12 },
                                  { "hard_swish(f16[9])", -5, 5, 2e-3 },
                                  { "hard_swish(bf16[9])", -5, 5, 1e-2 },
                                  { "hard_swish(f32[0,3])", 0, 0, 0 },
                                  { "hard_swish(f32[])", -5, 5, 1e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    fac_value *x = n->in[0], *zero = fac_number_as(x, 0), *one = fac_number_as(x, 1);
    fac_value *line = fac_add(fac_div(x, fac_number_as(x, 6)), fac_number_as(x, 0.5));
    out[0] = fac_mul(x, fac_clip(line, zero, one));
}

static int steps(const fac_node *n, double at[]) {
    (void)n;
    at[0] = -3;
    at[1] = 3;
    return 2;
}

const fac_op fac_op_hard_swish = {
    MAP1_OP("hard_swish", "x min(max(x / 6 + 1/2, 0), 1)"),
    .grad = grad,
    .define = define,
    .steps = steps,
    .torch = "Hardswish",
    .rounding = { FAC_ROUND_SMOOTH, 1.5, true },
};
fac_value *fac_hard_swish(fac_value *x) { return fac_emit(&fac_op_hard_swish, NULL, 1, &x); }
