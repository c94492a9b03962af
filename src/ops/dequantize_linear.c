/* Few bits to numbers. */
#include "ops/cost.h"
#include "ops/quant.h"

#if FAC_INTERFACE
/* y = (x - zero) scale in scale's dtype, or in `to`; x and zero integers or 8-bit floats of one
 * dtype.  Scales by tensor, axis and block as in fac_quantize_linear. */
typedef struct fac_dequantize_opts {
    int64_t axis, block; /* block 0: no blocks */
    fac_dtype to;        /* FAC_NONE: scale's  */
} fac_dequantize_opts;
fac_value *fac_dequantize_linear(fac_value *x, fac_value *scale, fac_value *zero,
                                 const fac_dequantize_opts *opts);
#endif

#define AT(field) offsetof(fac_dequantize_opts, field)
static const fac_attr table[] = {
    { "axis", FAC_A_INT, AT(axis), 0, 0, -FAC_DIMS, FAC_DIMS - 1, NULL, "the axis of scales" },
    { "block", FAC_A_INT, AT(block), 0, 0, 0, 1e9, NULL, "elements of a scale along the axis" },
    { "to", FAC_A_DTYPE, AT(to), 0, 0, 0, 0, NULL, "the dtype of y, scale's if there is none" },
    { 0 }
};
#undef AT
static const fac_port in[] = { { "x", FAC_NUMBERS | FAC_SMALL, 0 },
                               { "scale", FAC_FLOATS | FAC_SMALL, 0 },
                               { "zero", FAC_NUMBERS | FAC_SMALL, FAC_OPTIONAL },
                               { 0 } };

static bool infer(fac_node *n) {
    const fac_dequantize_opts *o = n->attrs;
    const fac_dtype x = n->in[0]->type.dtype, s = n->in[1]->type.dtype;
    fac_dtype to = fac_dtype_is_stored(s) ? FAC_F32 : s;
    if (o->to) to = o->to;
    if (fac_dtype_get(x)->kind == 'f' && !fac_dtype_is_stored(x))
        return fac_fail(n, FAC_E_DTYPE, "x must be integers or 8-bit floats");
    if (n->in[2] && n->in[2]->type.dtype != x)
        return fac_fail(n, FAC_E_DTYPE, "x and zero must have one dtype");
    if (fac_dtype_get(to)->kind != 'f' || fac_dtype_is_stored(to))
        return fac_fail(n, FAC_E_DTYPE, "to %s: expected floats", fac_dtype_get(to)->name);
    if (!fac_grid_fits(n, &n->in[0]->type.dims, n->in[1], n->in[2], o->axis, o->block))
        return false;
    n->out[0]->type = (fac_type){ to, n->in[0]->type.dims };
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_dequantize_opts *o = r->attrs;
    const fac_array *x = &r->in[0], *s = &r->in[1], *z = &r->in[2], *y = &r->out[0];
    const fac_grid g = fac_grid_of(&x->type.dims, &s->type.dims, o->axis, o->block);
    const int64_t n = fac_dims_count(&x->type.dims);
    for (int64_t e = 0; e < n; e++) {
        const int64_t k = fac_grid_at(&g, e);
        const float q = (float)fac_quant_get(x, e) - (float)fac_quant_get(z, k);
        y->f[e] = (float)(q * (float)s->f[k]);
    }
    return FAC_OK;
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_dequantize_opts *o = n->attrs;
    fac_value *x = n->in[0], *zero = n->in[2];
    fac_value *q = fac_cast(x, FAC_F32);
    fac_value *s = fac_grid_spread(fac_cast(n->in[1], FAC_F32), x, o->axis, o->block);
    if (zero) q = fac_sub(q, fac_grid_spread(fac_cast(zero, FAC_F32), x, o->axis, o->block));
    y[0] = fac_cast(fac_mul(q, s), n->out[0]->type.dtype);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    const fac_dequantize_opts o = { .axis = fac_onnx_int(n, "axis", 1),
                                    .block = fac_onnx_int(n, "block_size", 0),
                                    .to = fac_onnx_dtype(n, "output_dtype", FAC_NONE) };
    y[0] = fac_dequantize_linear(x[0], x[1], n->nin > 2 ? x[2] : NULL, &o);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_dequantize_opts *o = n->attrs;
    const fac_dtype x = n->in[0]->type.dtype;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]),
                          fac_onnx_name(w, n->in[2]) };
    const int bits = fac_dtype_get(x)->bits;
    const bool newer = fac_dtype_is_stored(x) || bits == 16 || o->block;
    const bool half = n->in[1]->type.dtype != FAC_F32;
    int since = half ? 19 : 10;
    if (newer) since = fac_quant_since(x);
    if (w->opset < (o->to ? 23 : since)) return false;
    fac_onnx_put(w, "DequantizeLinear", 3, ins, fac_onnx_name(w, n->out[0]));
    if (w->opset >= 13) fac_onnx_put_int(w, "axis", o->axis);
    if (o->block) fac_onnx_put_int(w, "block_size", o->block);
    if (o->to) fac_onnx_put_dtype(w, "output_dtype", o->to);
    return true;
}

static const fac_onnx_attr names[] = {
    { "axis", NULL }, { "block_size", NULL }, { "output_dtype", NULL }, { 0 }
};
static const fac_onnx_attr ms_names[] = { { "axis", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "DequantizeLinear", 10, 0, names, load, 2 },
                                 { "com.microsoft", "DequantizeLinear", 1, 0, ms_names, load, 2 },
                                 { 0 } };
static const fac_case cases[] = {
    { "dequantize_linear(u8[3,7], f32{0.1}, u8{128})", 0, 255, 0 },
    { "dequantize_linear(i8[2,3,5], f32{0.5, 1, 2}, i8{0, 1, -3}) axis=1", -128, 127, 0 },
    { "dequantize_linear(i32[33], f32{0.25})", -9999, 9999, 0 },
    { "dequantize_linear(i4[9], f32{2})", -8, 7, 0 },
    { "dequantize_linear(u4[4,6], f32[4,3]) axis=1 block=2", 0, 9, 0 },
    { "dequantize_linear(f8e4m3[9], f32{2})", -90, 90, 0 },
    { "dequantize_linear(i16[9], f16{0.5})", -90, 90, 0 },
    { "dequantize_linear(u8[0,3], f32{1})", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_dequantize_linear;
const fac_op fac_op_dequantize_linear = {
    .name = "dequantize_linear",
    .doc = "few bits to numbers: (x - zero) scale",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_dequantize_opts),
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_dequantize_linear(fac_value *x, fac_value *scale, fac_value *zero,
                                 const fac_dequantize_opts *opts) {
    return fac_emit(&fac_op_dequantize_linear, opts, 3, (fac_value *[]){ x, scale, zero });
}
