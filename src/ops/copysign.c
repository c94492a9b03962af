#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
/* |a| with the sign of b, which -0 and NaN have, too; NumPy broadcasting, one dtype. */
fac_value *fac_copysign(fac_value *a, fac_value *b);
#endif

MAP2(COPYSIGN(x, y))

/* da = the sign of a times that of b, 0 where a is 0, as in torch; db = 0 */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    if (!fac_needs(n, 0)) return;
    fac_value *b = fac_copysign(fac_grad_number(n->in[1], 1), n->in[1]);
    fac_grad_weighted(n, 0, dy[0], fac_mul(fac_sign(n->in[0]), b), dx);
}

static const fac_onnx onnx[] = { { 0 } };
static const fac_case cases[] = {
    { "copysign(f32[2,30], f32[30])", -4, 4, 0 }, { "copysign(f32[4,1], f32[])", -4, 4, 0 },
    { "copysign(f64[5], f64[5])", -4, 4, 0 },     { "copysign(f16[9], f16[9])", -4, 4, 0 },
    { "copysign(bf16[9], bf16[])", -4, 4, 0 },    { "copysign(f32[0,3], f32[3])", 0, 0, 0 },
    { "copysign(f32[], f32[])", -4, 4, 0 },       { 0 }
};

const fac_op fac_op_copysign = {
    MAP_OP("copysign", "|x| with the sign of y", fac_ports_xy, fac_infer_broadcast),
    .is = FAC_OP_INPLACE,
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_copysign(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_copysign, NULL, 2, (fac_value *[]){ a, b });
}
