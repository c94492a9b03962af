/* Numbers to u8 with the range that they have. */
#include "ops/quant.h"

#if FAC_INTERFACE
/* With least = min(0, min x), most = max(0, max x), x f32:
 *   scale = (most - least) / 255,  zero = sat(rne(-least / scale)),  y = sat(rne(x / scale) + zero)
 * y u8, as fac_value_other(y, 1) scale f32[], as (y, 2) zero u8[].  All zeros: scale 1, zero 0. */
fac_value *fac_dynamic_quantize_linear(fac_value *x);
#endif

static const fac_port out[] = {
    { "y", FAC_INTS, 0 }, { "scale", FAC_FLOATS, 0 }, { "zero", FAC_INTS, 0 }, { 0 }
};

static bool infer(fac_node *n) {
    if (n->in[0]->type.dtype != FAC_F32) return fac_fail(n, FAC_E_DTYPE, "x must be f32");
    n->out[0]->type = (fac_type){ FAC_U8, n->in[0]->type.dims };
    n->out[1]->type = (fac_type){ FAC_F32, { 0 } };
    n->out[2]->type = (fac_type){ FAC_U8, { 0 } };
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const double *x = r->in[0].f;
    const int64_t n = fac_dims_count(&r->in[0].type.dims);
    double least = 0, most = 0;
    for (int64_t k = 0; k < n; k++) {
        least = x[k] < least ? x[k] : least;
        most = x[k] > most ? x[k] : most;
    }
    float scale = ((float)most - (float)least) / 255.0f;
    if (scale == 0) scale = 1;
    const double zero = fac_quant_put((float)-least / scale, 0, 0, 255);
    for (int64_t k = 0; k < n; k++)
        r->out[0].i[k] = (int64_t)fac_quant_put((float)x[k] / scale, zero, 0, 255);
    r->out[1].f[0] = scale;
    r->out[2].i[0] = (int64_t)zero;
    return FAC_OK;
}

static void expand(const fac_node *n, fac_value *y[]) {
    fac_graph *g = n->graph;
    fac_value *x = n->in[0], *zero = fac_number(g, FAC_F32, 0);
    fac_value *top = fac_number(g, FAC_F32, 255), *one = fac_number(g, FAC_F32, 1);
    fac_value *least = fac_min(fac_reduce_min(x, (fac_dims){ 0 }, false), zero);
    fac_value *most = fac_max(fac_reduce_max(x, (fac_dims){ 0 }, false), zero);
    fac_value *s = fac_div(fac_sub(most, least), top);
    s = fac_where(fac_equal(s, zero), one, s);
    fac_value *z = fac_round(fac_div(fac_neg(least), s));
    z = fac_cast(fac_clip(z, zero, top), FAC_U8);
    y[0] = fac_quantize_linear(n->in[0], s, z, NULL);
    y[1] = s;
    y[2] = z;
}

static const fac_onnx onnx[] = { { "", "DynamicQuantizeLinear", 11, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "dynamic_quantize_linear(f32[3,7])", -9, 9, 1 },
                                  { "dynamic_quantize_linear(f32[33])", 1, 9, 1 },
                                  { "dynamic_quantize_linear(f32[])", -9, -1, 1 },
                                  { "dynamic_quantize_linear(f32[0,3])", 0, 0, 0 },
                                  { 0 } };

extern const fac_op fac_op_dynamic_quantize_linear;
const fac_op fac_op_dynamic_quantize_linear = {
    .name = "dynamic_quantize_linear",
    .doc = "numbers to u8 with the range that they have",
    .in = fac_ports_x,
    .out = out,
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .onnx = onnx,
    .cases = cases,
    .is = FAC_OP_NO_GRAD | FAC_OP_TYPED,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_dynamic_quantize_linear(fac_value *x) {
    return fac_emit(&fac_op_dynamic_quantize_linear, NULL, 1, &x);
}
