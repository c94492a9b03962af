#include "ops/define.h"
#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_signbit(fac_value *x); /* bool: is the sign set? also of -0 and NaN */
#endif

MAP1(SIGNBIT(x))

static bool infer(fac_node *n) {
    n->out[0]->type = (fac_type){ FAC_BOOL, n->in[0]->type.dims };
    return true;
}
static const fac_onnx onnx[] = { { 0 } };
static const fac_case cases[] = {
    { "signbit(f32[2,37])", -4, 4, 0 }, { "signbit(f64[5])", -4, 4, 0 },
    { "signbit(f16[9])", -4, 4, 0 },    { "signbit(f32[0])", 0, 0, 0 },
    { "signbit(f32[])", -4, 4, 0 },     { 0 }
};

const fac_op fac_op_signbit = {
    MAP_OP("signbit", "is the sign of x set?", fac_ports_x, infer),
    .is = FAC_OP_NO_GRAD,
    .steps = fac_steps_zero,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_signbit(fac_value *x) { return fac_emit(&fac_op_signbit, NULL, 1, &x); }
