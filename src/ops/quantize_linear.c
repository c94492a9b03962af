/* Numbers to few bits. */
#include <stdio.h>
#include "ops/cost.h"
#include "ops/fusions_quant.h"
#include "ops/quant.h"
#include "op_list.h"
#include "tensor/dtype.h"

#if FAC_INTERFACE
/* y = sat(rne(x / scale) + zero), x floats or i32, zero and y integers of 2 to 16 bits; to 8-bit
 * floats sat(x / scale + zero).  One scale for all, one for each index of `axis` (scale has one
 * dim), or one for each `block` of them (scale has x's dims, along the axis fewer). zero NULL: 0; y
 * has zero's dtype, else `to`, else u8. */
typedef struct fac_quantize_opts {
    int64_t axis, block; /* block 0: no blocks */
    fac_dtype to;
    bool unsaturated;    /* 8-bit floats: what is too large becomes infinity or NaN  */
    fac_dtype precision; /* of the division; FAC_NONE: scale's dtype, f32 of an i32 x */
} fac_quantize_opts;
fac_value *fac_quantize_linear(fac_value *x, fac_value *scale, fac_value *zero,
                               const fac_quantize_opts *opts);
#endif

#define AT(field) offsetof(fac_quantize_opts, field)
static const fac_attr table[] = {
    { "axis", FAC_A_INT, AT(axis), 0, 0, -FAC_DIMS, FAC_DIMS - 1, NULL, "the axis of scales" },
    { "block", FAC_A_INT, AT(block), 0, 0, 0, 1e9, NULL, "elements of a scale along the axis" },
    { "to", FAC_A_DTYPE, AT(to), 0, 0, 0, 0, NULL, "the dtype of y, if there is no zero" },
    { "unsaturated", FAC_A_FLAG, AT(unsaturated), 0, 0, 0, 0, NULL, "8-bit floats overflow" },
    { "precision", FAC_A_DTYPE, AT(precision), 0, 0, 0, 0, NULL, "of the division" },
    { 0 }
};
#undef AT
static const fac_port in[] = { { "x", FAC_NUMBERS, 0 },
                               { "scale", FAC_FLOATS | FAC_SMALL, 0 },
                               { "zero", FAC_NUMBERS | FAC_SMALL, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_NUMBERS | FAC_SMALL, 0 }, { 0 } };

static fac_dtype type_of(const fac_node *n) {
    const fac_dtype to = ((const fac_quantize_opts *)n->attrs)->to;
    if (n->in[2]) return n->in[2]->type.dtype;
    return to ? to : FAC_U8;
}

static bool infer(fac_node *n) {
    const fac_quantize_opts *o = n->attrs;
    const fac_dtype x = n->in[0]->type.dtype, y = type_of(n);
    if (fac_dtype_get(x)->kind != 'f' && x != FAC_I32)
        return fac_fail(n, FAC_E_DTYPE, "x must be floats or i32");
    const fac_dtype_info *t = fac_dtype_get(y);
    if (t->kind == 'f' ? !fac_dtype_is_stored(y) : t->bits > 16)
        return fac_fail(n, FAC_E_DTYPE, "to %s: expected integers of 2 to 16 bits or 8-bit floats",
                        t->name);
    if (n->in[2] && o->to && o->to != y)
        return fac_fail(n, FAC_E_DTYPE, "zero is %s, but the result is asked to be %s", t->name,
                        fac_dtype_get(o->to)->name);
    if (!fac_grid_fits(n, &n->in[0]->type.dims, n->in[1], n->in[2], o->axis, o->block))
        return false;
    n->out[0]->type = (fac_type){ y, n->in[0]->type.dims };
    return true;
}

/* The division is made in this dtype. */
static fac_dtype precision(const fac_quantize_opts *o, fac_dtype scale) {
    if (o->precision) return o->precision;
    return fac_dtype_is_stored(scale) ? FAC_F32 : scale;
}

static double overflown(double x, fac_dtype to) {
    double most = 61440;
    if (to == FAC_F8E4M3) most = 464;
    if (to == FAC_F8E4M3UZ) most = 248;
    return fabs(x) >= most ? copysign(INFINITY, x) : x;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_quantize_opts *o = r->attrs;
    const fac_array *x = &r->in[0], *s = &r->in[1], *z = &r->in[2], *y = &r->out[0];
    const fac_grid g = fac_grid_of(&x->type.dims, &s->type.dims, o->axis, o->block);
    const fac_dtype t = precision(o, s->type.dtype);
    const int64_t n = fac_dims_count(&x->type.dims);
    double least = 0, most = 0;
    if (y->i) fac_quant_range(y->type.dtype, &least, &most);
    for (int64_t e = 0; e < n; e++) {
        const int64_t k = fac_grid_at(&g, e);
        const double value = fac_quant_round(t, fac_quant_get(x, e));
        const double q = fac_quant_round(t, value / fac_quant_round(t, s->f[k]));
        if (y->i)
            y->i[e] = (int64_t)fac_quant_put((float)q, fac_quant_get(z, k), least, most);
        else
            y->f[e] = o->unsaturated ? overflown(q, y->type.dtype) : q + fac_quant_get(z, k);
    }
    return FAC_OK;
}

/* Of 8-bit floats. */
static fac_value *narrowed(const fac_node *n, fac_value *x) {
    const fac_quantize_opts *o = n->attrs;
    char attrs[64];
    snprintf(attrs, sizeof attrs, "to=%s%s", fac_dtype_get(n->out[0]->type.dtype)->name,
             o->unsaturated ? " unsaturated" : "");
    return fac_apply(n->graph, &fac_op_cast, attrs, 1, &x);
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_quantize_opts *o = n->attrs;
    fac_graph *g = n->graph;
    fac_value *x = n->in[0], *zero = n->in[2];
    const fac_dtype to = n->out[0]->type.dtype, t = precision(o, n->in[1]->type.dtype);
    const bool floats = fac_dtype_get(to)->kind == 'f';
    double least, most;
    fac_quant_range(to, &least, &most);
    fac_value *s = fac_grid_spread(fac_cast(n->in[1], t), x, o->axis, o->block);
    fac_value *q = fac_cast(fac_div(fac_cast(x, t), s), FAC_F32);
    if (!floats) q = fac_round(q);
    if (zero) q = fac_add(q, fac_grid_spread(fac_cast(zero, FAC_F32), x, o->axis, o->block));
    if (!floats) q = fac_clip(q, fac_number(g, FAC_F32, least), fac_number(g, FAC_F32, most));
    y[0] = floats ? narrowed(n, q) : fac_cast(q, to);
}

/* Opset 23 says in which type the division is made; before, ONNX Runtime makes it in f32. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    const fac_dtype scale = x[1]->type.dtype;
    const bool half = fac_dtype_is_half(scale);
    const fac_dtype usual = n->opset < 23 && half ? FAC_F32 : FAC_NONE;
    const fac_quantize_opts o = { .axis = fac_onnx_int(n, "axis", 1),
                                  .block = fac_onnx_int(n, "block_size", 0),
                                  .to = fac_onnx_dtype(n, "output_dtype", FAC_NONE),
                                  .unsaturated = !fac_onnx_int(n, "saturate", 1),
                                  .precision = fac_onnx_dtype(n, "precision", usual) };
    y[0] = fac_quantize_linear(x[0], x[1], n->nin > 2 ? x[2] : NULL, &o);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_quantize_opts *o = n->attrs;
    const fac_dtype to = n->out[0]->type.dtype;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]),
                          fac_onnx_name(w, n->in[2]) };
    const int bits = fac_dtype_get(to)->bits;
    const bool newer = fac_dtype_is_stored(to) || bits == 16 || o->block || o->to;
    int since = newer ? fac_quant_since(to) : 10;
    if (o->precision) since = 23;
    if (w->opset < since) return false;
    fac_onnx_put(w, "QuantizeLinear", 3, ins, fac_onnx_name(w, n->out[0]));
    if (w->opset >= 13) fac_onnx_put_int(w, "axis", o->axis);
    if (o->block) fac_onnx_put_int(w, "block_size", o->block);
    if (!n->in[2] && o->to) fac_onnx_put_dtype(w, "output_dtype", o->to);
    if (o->unsaturated) fac_onnx_put_int(w, "saturate", 0);
    if (o->precision) fac_onnx_put_dtype(w, "precision", o->precision);
    return true;
}

static const fac_onnx_attr names[] = { { "axis", NULL },         { "block_size", NULL },
                                       { "output_dtype", NULL }, { "saturate", NULL },
                                       { "precision", NULL },    { 0 } };
static const fac_onnx_attr ms_names[] = { { "axis", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "QuantizeLinear", 10, 0, names, load, 2 },
                                 { "com.microsoft", "QuantizeLinear", 1, 0, ms_names, load, 2 },
                                 FAC_QLINEAR_SPELLINGS,
                                 { 0 } };
static const fac_case cases[] = {
    { "quantize_linear(f32[3,7], f32{0.1}, u8{128})", -9, 9, 0 },
    { "quantize_linear(f32[2,3,5], f32{0.5, 1, 2}, i8{0, 1, -3}) axis=1", -99, 99, 0 },
    { "quantize_linear(f32[33], f32{0.25})", -9, 99, 0 },
    { "quantize_linear(f32[9], f32{2}) to=i4", -30, 30, 0 },
    { "quantize_linear(f32[9], f32{1}) to=u2", -3, 9, 0 },
    { "quantize_linear(f32[4,6], f32[4,3]) axis=1 block=2", 1, 9, 0 },
    { "quantize_linear(f32[9], f32{1}) to=f8e4m3", -900, 900, 0 },
    { "quantize_linear(f16[9], f16{0.5}, u8{3})", -9, 90, 0 },
    { "quantize_linear(i32[5], f32{3}, i8{1})", -900, 900, 0 },
    { "quantize_linear(f32[0,3], f32{1}, u8{0})", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_quantize_linear;
const fac_op fac_op_quantize_linear = {
    .name = "quantize_linear",
    .doc = "numbers to few bits: x / scale + zero, rounded",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(fac_quantize_opts),
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_quantize_linear(fac_value *x, fac_value *scale, fac_value *zero,
                               const fac_quantize_opts *opts) {
    return fac_emit(&fac_op_quantize_linear, opts, 3, (fac_value *[]){ x, scale, zero });
}
