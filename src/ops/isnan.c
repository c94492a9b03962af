#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_isnan(fac_value *x); /* bool: is it NaN? */
#endif

MAP1(ISNAN(x))

static bool infer(fac_node *n) {
    n->out[0]->type = (fac_type){ FAC_BOOL, n->in[0]->type.dims };
    return true;
}
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)n, (void)g;
    const bool small = fac_dtype_is_stored(fac_value_type(in[0]).dtype);
    out[0] = fac_isnan(small ? fac_cast(in[0], FAC_F32) : in[0]);
}
static const fac_onnx onnx[] = { { "", "IsNaN", 9, 0, NULL, load, 0 }, { 0 } };
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
    .save = fac_onnx_plain,
    .steps = steps,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_isnan(fac_value *x) { return fac_emit(&fac_op_isnan, NULL, 1, &x); }
