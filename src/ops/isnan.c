#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_isnan(fac_value *x); /* bool: is it NaN? */
#endif

MAP1(ISNAN(x))

static bool infer(fac_node *n) {
    n->out[0]->type = (fac_type){ FAC_BOOL, n->in[0]->type.dims };
    return true;
}
static const fac_onnx onnx[] = { { "", "IsNaN", 9, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "isnan(f32[2,37])", -4, 4, 0 }, { "isnan(f64[5])", -4, 4, 0 },
                                  { "isnan(f16[9])", -4, 4, 0 },    { "isnan(f32[0])", 0, 0, 0 },
                                  { "isnan(f32[])", -4, 4, 0 },     { 0 } };

static int steps(const fac_node *n, double at[]) {
    (void)n;
    at[0] = NAN;
    return 1;
}

const fac_op fac_op_isnan = {
    MAP_OP("isnan", "is x NaN?", fac_ports_x, infer),
    .is = FAC_OP_NO_GRAD,
    .steps = steps,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_isnan(fac_value *x) { return fac_emit(&fac_op_isnan, NULL, 1, &x); }
