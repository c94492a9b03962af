/* Convolution of bytes to bytes. */
#include <limits.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/conv.h"
#include "ops/fusions_quant.h"
#include "ops/quant.h"

#if FAC_INTERFACE
/* y = sat(rne(f32(acc) m[k]) + y_zero),  m = f32(x_scale w_scale[k]) / y_scale,
 * acc = fac_conv_integer(x, w, b, x_zero, w_zero).  Scales are f32, zero points and y bytes;
 * x_scale, x_zero, y_scale, y_zero one number, w_scale, w_zero one or one for each of K.  b i32 K
 * or NULL, in units of x_scale w_scale[k].  y has y_zero's dtype. */
fac_value *fac_qlinear_conv(fac_value *x, fac_value *w, fac_value *b, const fac_qlinear_scales *s,
                            const fac_conv2d_opts *opts);
#endif

enum { X_SCALE = 3, X_ZERO, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO };
static const fac_port in[] = { { "x", FAC_INTS, 0 },
                               { "w", FAC_INTS, 0 },
                               { "b", FAC_INTS, FAC_OPTIONAL },
                               { "x_scale", FAC_FLOATS, 0 },
                               { "x_zero", FAC_INTS, 0 },
                               { "w_scale", FAC_FLOATS, 0 },
                               { "w_zero", FAC_INTS, 0 },
                               { "y_scale", FAC_FLOATS, 0 },
                               { "y_zero", FAC_INTS, 0 },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_INTS, 0 }, { 0 } };

bool fac_qlinear_conv_infer(fac_node *n) {
    const int64_t K = n->in[1]->type.dims.n ? n->in[1]->type.dims.d[0] : 0;
    for (int k = X_SCALE; k <= Y_ZERO; k += 2)
        if (n->in[k]->type.dtype != FAC_F32) return fac_fail(n, FAC_E_DTYPE, "scales must be f32");
    return fac_quant_bytes(n, Y_ZERO, "y_zero") &&
           fac_quant_conv_infer(n, n->in[Y_ZERO]->type.dtype) &&
           fac_quant_scalar(n, X_SCALE, "x_scale") && fac_quant_scalar(n, X_ZERO, "x_zero") &&
           fac_quant_scalar(n, Y_SCALE, "y_scale") && fac_quant_scalar(n, Y_ZERO, "y_zero") &&
           fac_quant_each(n, W_SCALE, K, "w_scale") && fac_quant_each(n, W_ZERO, K, "w_zero");
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    fac_array *y = &r->out[0];
    const fac_array *ws = &r->in[W_SCALE];
    const fac_dims *d = &y->type.dims;
    const int64_t n = fac_dims_count(d), plane = d->d[2] * d->d[3];
    const bool each = fac_dims_count(&ws->type.dims) > 1;
    double *sum = fac_alloc((size_t)n + 1, sizeof *sum), least, most;
    if (!sum)
        return fac_raise(err, FAC_E_NOMEM, "qlinear_conv: no memory for %lld sums", (long long)n);
    fac_quant_range(y->type.dtype, &least, &most);
    const fac_status status = fac_quant_conv_sums(r, X_ZERO, W_ZERO, sum, err);
    for (int64_t e = 0; e < n && !status; e++) {
        const int64_t k = each ? e / plane % d->d[1] : 0;
        const float m = (float)r->in[X_SCALE].f[0] * (float)ws->f[k] / (float)r->in[Y_SCALE].f[0];
        const float v = (float)(int32_t)(int64_t)sum[e] * m;
        y->i[e] = (int64_t)fac_quant_put(v, (double)r->in[Y_ZERO].i[0], least, most);
    }
    fac_release(sum);
    return status;
}

static void expand(const fac_node *n, fac_value *y[]) {
    fac_value *const *x = n->in;
    fac_value *sum = fac_conv_integer(x[0], x[1], x[2], x[X_ZERO], x[W_ZERO], n->attrs);
    fac_value *m = fac_div(fac_mul(x[X_SCALE], x[W_SCALE]), x[Y_SCALE]);
    y[0] = fac_requantize(sum, fac_quant_channels(m), x[Y_ZERO]);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    static const int order[] = { 0, X_SCALE, X_ZERO, 1, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, 2 };
    const char *ins[9];
    const fac_dims *d = &n->in[1]->type.dims;
    if (w->opset < 10) return false;
    for (int k = 0; k < 9; k++) ins[k] = fac_onnx_name(w, n->in[order[k]]);
    for (int k = 1; k < 8; k++)
        if (n->in[order[k]] && (k == 1 || k == 2 || k == 6 || k == 7))
            ins[k] = fac_onnx_ranked(w, n->in[order[k]], 0);
    fac_onnx_put(w, "QLinearConv", n->in[2] ? 9 : 8, ins, fac_onnx_name(w, n->out[0]));
    if (fac_dims_count(d) >= 0) fac_onnx_put_ints(w, "kernel_shape", 2, d->d + 2);
    fac_window_save(w, n);
    return true;
}

extern const fac_op fac_op_qlinear_conv;
/* in: x, w, b, then scales and zero points in the order of the ports. */
static fac_value *make(fac_value *const x[], const fac_conv2d_opts *o) {
    return fac_emit(&fac_op_qlinear_conv, o, 9, x);
}
/* Of volumes. */
static fac_value *volume(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *b) {
    fac_value *m = fac_div(fac_mul(x[1], x[4]), x[6]);
    if (fac_value_type(m).dims.n == 1) m = fac_reshape(m, fac_shape(-1, 1, 1, 1));
    return fac_requantize(fac_load_quant_volume(n, g, x[0], x[2], x[3], x[5], b), m, x[7]);
}
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    fac_value *ins[] = { x[0], x[3], fac_onnx_in(n, x, 8), x[1], x[2], x[4], x[5], x[6], x[7] };
    if (fac_value_type(x[3]).dims.n == 5)
        y[0] = volume(n, g, x, ins[2]);
    else
        y[0] = fac_load_quant_conv(n, g, ins, 0, 1, make);
}

static const fac_onnx onnx[] = { { "", "QLinearConv", 10, 0, fac_names_quant_conv, load, 8 },
                                 { 0 } };
#define SCALES ", f32{0.02}, u8{7}, f32{0.01}, i8{0}, f32{0.5}, u8{9})"
static const fac_case cases[] = {
    { "qlinear_conv(u8[1,3,5,5], i8[4,3,3,3], i32[4]" SCALES " pad=1,1,1,1", -99, 99, 0 },
    { "qlinear_conv(u8[2,4,7,6], i8[6,2,3,2], -" SCALES " stride=2,1 groups=2", -99, 99, 0 },
    { "qlinear_conv(u8[1,8,9,7], i8[8,1,3,3], i32[8]" SCALES " pad=1,1,1,1 groups=8", -99, 99, 0 },
    { "qlinear_conv(i8[1,5,4,4], i8[3,5,1,1], -, f32{0.02}, i8{-3}, f32{0.01, 0.1, 0.02}, "
      "i8{1, 0, -2}, f32{0.5}, i8{-9})",
      -99, 99, 0 },
    { "qlinear_conv(u8[0,3,5,5], i8[4,3,3,3], -" SCALES, 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_qlinear_conv = {
    .name = "qlinear_conv",
    .doc = "convolution of bytes to bytes",
    .in = in,
    .out = out,
    .attrs = fac_conv2d_table,
    .attrs_size = sizeof(fac_conv2d_opts),
    .infer = fac_qlinear_conv_infer,
    .ref = ref,
    .expand = expand,
    .cost = fac_conv_cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .is = FAC_OP_NO_GRAD | FAC_OP_TYPED,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_qlinear_conv(fac_value *x, fac_value *w, fac_value *b, const fac_qlinear_scales *s,
                            const fac_conv2d_opts *opts) {
    return fac_emit(&fac_op_qlinear_conv, opts, 9,
                    (fac_value *[]){ x, w, b, s->x_scale, s->x_zero, s->w_scale, s->w_zero,
                                     s->y_scale, s->y_zero });
}
