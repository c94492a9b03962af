/* Means of whole planes of bytes. */
#include "ops/cost.h"
#include "ops/fusions_quant.h"
#include "ops/quant.h"

#if FAC_INTERFACE
/* y[n,c,1...] = sat(rne((sum of x[n,c,...] - n x_zero) f32(x_scale / (y_scale n))) + y_zero), sums
 * in i32, n elements in a plane.  x and y bytes, scales f32, each one number. */
fac_value *fac_qlinear_global_avg_pool(fac_value *x, fac_value *x_scale, fac_value *x_zero,
                                       fac_value *y_scale, fac_value *y_zero);
#endif

enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO, PORTS };
static const fac_port in[] = { { "x", FAC_INTS, 0 },      { "x_scale", FAC_FLOATS, 0 },
                               { "x_zero", FAC_INTS, 0 }, { "y_scale", FAC_FLOATS, 0 },
                               { "y_zero", FAC_INTS, 0 }, { 0 } };
static const fac_port out[] = { { "y", FAC_INTS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    fac_dims d = n->in[X]->type.dims;
    const fac_dtype t = n->in[X]->type.dtype;
    if (d.n < 2) return fac_fail(n, FAC_E_SHAPE, "x must have at least 2 dims");
    if (n->in[X_ZERO]->type.dtype != t)
        return fac_fail(n, FAC_E_DTYPE, "x and x_zero must have one dtype");
    for (int k = X_SCALE; k < PORTS; k++) {
        if (!fac_quant_scalar(n, k, in[k].name)) return false;
        if ((k == X_SCALE || k == Y_SCALE) && n->in[k]->type.dtype != FAC_F32)
            return fac_fail(n, FAC_E_DTYPE, "scales must be f32");
    }
    for (int k = 2; k < d.n; k++) d.d[k] = 1;
    n->out[0]->type = (fac_type){ n->in[Y_ZERO]->type.dtype, d };
    return fac_quant_bytes(n, X, "x") && fac_quant_bytes(n, Y_ZERO, "y_zero");
}

static int64_t plane_of(const fac_dims *d) {
    int64_t n = 1;
    for (int k = 2; k < d->n; k++) {
        if (d->d[k] < 0) return -1;
        n *= d->d[k];
    }
    return n;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const int64_t *x = r->in[X].i, n = plane_of(&r->in[X].type.dims);
    const int64_t planes = fac_dims_count(&r->out[0].type.dims);
    const float m = (float)r->in[X_SCALE].f[0] / ((float)r->in[Y_SCALE].f[0] * (float)n);
    double least, most;
    fac_quant_range(r->out[0].type.dtype, &least, &most);
    for (int64_t p = 0; p < planes; p++, x += n) {
        int64_t sum = -n * r->in[X_ZERO].i[0];
        for (int64_t k = 0; k < n; k++) sum += x[k];
        r->out[0].i[p] =
            (int64_t)fac_quant_put((float)sum * m, (double)r->in[Y_ZERO].i[0], least, most);
    }
    return FAC_OK;
}

static int64_t expands(const fac_node *n) { return plane_of(&n->in[X]->type.dims) > 0 ? 10 : 0; }

static void expand(const fac_node *n, fac_value *y[]) {
    fac_value *const *x = n->in;
    fac_dims axes = { .n = x[X]->type.dims.n - 2 };
    for (int k = 0; k < axes.n; k++) axes.d[k] = 2 + k;
    fac_value *count = fac_number(n->graph, FAC_F32, (double)plane_of(&x[X]->type.dims));
    fac_value *q = fac_sub(fac_cast(x[X], FAC_I32), fac_cast(x[X_ZERO], FAC_I32));
    fac_value *m = fac_div(x[X_SCALE], fac_mul(x[Y_SCALE], count));
    if (m->type.dims.n) m = fac_reshape(m, (fac_dims){ 0 });
    fac_value *zero = x[Y_ZERO];
    if (zero->type.dims.n) zero = fac_reshape(zero, (fac_dims){ 0 });
    y[0] = fac_requantize(axes.n ? fac_sum(q, axes, true) : q, m, zero);
}

static void cost(const fac_node *n, fac_cost *c) { fac_cost_each(n, 1, c); }

static const fac_onnx onnx[] = { { "com.microsoft", "QLinearGlobalAveragePool", 1, 0,
                                   fac_names_channels_last, fac_load_qlinear_global, 5 },
                                 { 0 } };
static const fac_case cases[] = {
    { "qlinear_global_avg_pool(u8[2,3,5,4], f32{0.1}, u8{128}, f32{0.3}, u8{9})", 0, 255, 0 },
    { "qlinear_global_avg_pool(i8[1,7,9], f32{0.1}, i8{-3}, f32{0.05}, i8{0})", -128, 127, 0 },
    { "qlinear_global_avg_pool(u8[0,3,4], f32{0.1}, u8{1}, f32{0.3}, u8{9})", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_qlinear_global_avg_pool;
const fac_op fac_op_qlinear_global_avg_pool = {
    .name = "qlinear_global_avg_pool",
    .doc = "means of whole planes of bytes",
    .in = in,
    .out = out,
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .expands = expands,
    .cost = cost,
    .onnx = onnx,
    .cases = cases,
    .is = FAC_OP_NO_GRAD | FAC_OP_TYPED,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_qlinear_global_avg_pool(fac_value *x, fac_value *x_scale, fac_value *x_zero,
                                       fac_value *y_scale, fac_value *y_zero) {
    return fac_emit(&fac_op_qlinear_global_avg_pool, NULL, PORTS,
                    (fac_value *[]){ x, x_scale, x_zero, y_scale, y_zero });
}
