#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
/* the angle of the point (b, a), from -pi to pi; NumPy broadcasting, one dtype. */
fac_value *fac_atan2(fac_value *a, fac_value *b);
#endif

MAP2(ATAN2(x, y))

/* da = b / (a^2 + b^2),  db = -a / (a^2 + b^2), 0 where both are 0, as in torch */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *a = n->in[0], *b = n->in[1], *square = fac_add(fac_mul(a, a), fac_mul(b, b));
    square = fac_where(fac_equal(square, fac_grad_number(a, 0)), fac_grad_number(a, 1), square);
    if (fac_needs(n, 0)) fac_grad_weighted(n, 0, dy[0], fac_div(b, square), dx);
    if (fac_needs(n, 1)) fac_grad_weighted(n, 1, dy[0], fac_neg(fac_div(a, square)), dx);
}

static const fac_onnx onnx[] = { { 0 } };
static const fac_case cases[] = {
    { "atan2(f32[2,30], f32[30])", -4, 4, 2e-6 }, { "atan2(f32[4,1], f32[])", -4, 4, 2e-6 },
    { "atan2(f64[5], f64[5])", -4, 4, 1e-11 },    { "atan2(f16[9], f16[9])", -4, 4, 4e-3 },
    { "atan2(bf16[9], bf16[])", -4, 4, 2e-2 },    { "atan2(f32[0,3], f32[3])", 0, 0, 0 },
    { "atan2(f32[], f32[])", -4, 4, 2e-6 },       { 0 }
};

const fac_op fac_op_atan2 = {
    MAP_OP("atan2", "angle of the point (y, x)", fac_ports_xy, fac_infer_broadcast),
    .is = FAC_OP_INPLACE,
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_atan2(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_atan2, NULL, 2, (fac_value *[]){ a, b });
}
