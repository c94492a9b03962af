/* Products and convolutions of bytes, as ONNX and ONNX Runtime spell them. */
#include "ops/fusions_quant.h"
#include "ops/window.h"

const fac_onnx_attr fac_names_quant_conv[] = { { "kernel_shape", NULL },
                                               { "strides", "stride" },
                                               { "pads", "pad" },
                                               { "dilations", "dilation" },
                                               { "group", "groups" },
                                               { "auto_pad", NULL },
                                               { 0 } };
const fac_onnx_attr fac_names_qgemm[] = {
    { "alpha", NULL }, { "transA", NULL }, { "transB", NULL }, { 0 }
};
const fac_onnx_attr fac_names_qattention[] = { { "num_heads", NULL },
                                               { "unidirectional", NULL },
                                               { "scale", NULL },
                                               { "mask_filter_value", NULL },
                                               { "do_rotary", NULL },
                                               { "past_present_share_buffer", NULL },
                                               { 0 } };

const fac_onnx_attr fac_names_lstm[] = {
    { "hidden_size", NULL },      { "direction", NULL },       { "activations", NULL },
    { "activation_alpha", NULL }, { "activation_beta", NULL }, { "clip", NULL },
    { "input_forget", NULL },     { "layout", NULL },          { 0 }
};

/* ---- convolutions ---- */

/* The window of a convolution with weights of these dims, of which kernel_shape must be a part.
 * NULL, or the poison value after an error of the graph. */
static fac_value *load_window(const fac_onnx_node *n, fac_graph *g, const fac_dims *w,
                              fac_window_onnx *v, int64_t *groups) {
    fac_value *bad = fac_window_load(n, g, w->n - 2, v);
    if (bad) return bad;
    *groups = fac_onnx_int(n, "group", 1);
    if (*groups < 1)
        return fac_fail_graph(g, FAC_E_FORMAT, "%s: group is %lld", n->type, (long long)*groups);
    for (int k = 0; k < w->n - 2; k++)
        if (v->kernel[0] && w->d[2 + k] >= 0 && v->kernel[k] != w->d[2 + k])
            return fac_fail_graph(g, FAC_E_FORMAT, "%s: kernel_shape[%d] is %lld, w has %lld",
                                  n->type, k, (long long)v->kernel[k], (long long)w->d[2 + k]);
    return NULL;
}

/* A line is an image with one row. */
static fac_value *lines(fac_value *in[], int x, int w, const fac_window_onnx *v, int64_t groups,
                        fac_quant_conv *make) {
    const fac_dims row = fac_shape(2);
    const fac_conv2d_opts o = { { 1, v->stride[0] },
                                { 0, v->pad[0], 0, v->pad[1] },
                                { 1, v->dilation[0] },
                                groups,
                                v->auto_pad };
    in[x] = fac_unsqueeze(in[x], row);
    in[w] = fac_unsqueeze(in[w], row);
    return fac_squeeze(make(in, &o), row);
}

fac_value *fac_load_quant_conv(const fac_onnx_node *n, fac_graph *g, fac_value *in[], int x, int w,
                               fac_quant_conv *make) {
    fac_window_onnx v;
    int64_t groups;
    const fac_dims *d = &in[w]->type.dims;
    const int rank = d->n - 2;
    if (rank < 1 || rank > 2)
        return fac_fail_graph(g, FAC_E_UNSUPPORTED, "%s: a weight of %d dims, expected 3 to 5",
                              n->type, d->n);
    fac_value *bad = load_window(n, g, d, &v, &groups);
    if (bad) return bad;
    if (rank == 1) return lines(in, x, w, &v, groups, make);
    const fac_conv2d_opts o = { { v.stride[0], v.stride[1] },
                                { v.pad[0], v.pad[1], v.pad[2], v.pad[3] },
                                { v.dilation[0], v.dilation[1] },
                                groups,
                                v.auto_pad };
    return make(in, &o);
}

/* v as f64 without its zero point; each: one zero point for each row of v. */
static fac_value *centred(fac_value *v, fac_value *zero, bool each) {
    v = fac_cast(v, FAC_F64);
    if (!zero) return v;
    zero = fac_cast(zero, FAC_F64);
    if (each && zero->type.dims.n == 1) zero = fac_reshape(zero, fac_shape(-1, 1, 1, 1, 1));
    return fac_sub(v, zero);
}

/* In f64 a sum of products of bytes is exact, whatever its order is. */
fac_value *fac_load_quant_volume(const fac_onnx_node *n, fac_graph *g, fac_value *x,
                                 fac_value *x_zero, fac_value *w, fac_value *w_zero, fac_value *b) {
    fac_window_onnx v;
    int64_t groups;
    fac_value *bad = load_window(n, g, &w->type.dims, &v, &groups);
    if (bad) return bad;
    const fac_conv3d_opts o = { { v.stride[0], v.stride[1], v.stride[2] },
                                { v.pad[0], v.pad[1], v.pad[2], v.pad[3], v.pad[4], v.pad[5] },
                                { v.dilation[0], v.dilation[1], v.dilation[2] },
                                groups,
                                v.auto_pad };
    fac_value *sum = fac_conv3d(centred(x, x_zero, false), centred(w, w_zero, true), NULL, &o);
    if (b) sum = fac_add(sum, fac_cast(fac_reshape(b, fac_shape(-1, 1, 1, 1)), FAC_F64));
    return fac_cast(sum, FAC_I32);
}

/* ---- products ---- */

static fac_value *scalar(fac_value *v) {
    return v && v->type.dims.n == 1 && v->type.dims.d[0] == 1 ? fac_reshape(v, (fac_dims){ 0 }) : v;
}

static fac_value *swapped(fac_value *x, bool swap) {
    return swap ? fac_transpose(x, fac_shape(1, 0)) : x;
}

/* f32(a b) (a_scale b_scale) + bias */
static fac_value *to_float(fac_value *acc, fac_value *a_scale, fac_value *b_scale,
                           fac_value *bias) {
    fac_value *y =
        fac_mul(fac_cast(acc, a_scale->type.dtype), fac_mul(scalar(a_scale), scalar(b_scale)));
    return bias ? fac_add(y, bias) : y;
}

/* a, a_scale, a_zero, b, b_scale, b_zero, c i32, y_scale, y_zero: without the last two y is f32. */
void fac_load_qgemm(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const double alpha = fac_onnx_real(n, "alpha", 1);
    fac_value *a = swapped(x[0], fac_onnx_int(n, "transA", 0) != 0);
    fac_value *b = swapped(x[3], fac_onnx_int(n, "transB", 0) != 0);
    fac_value *c = fac_onnx_in(n, x, 6), *y_scale = fac_onnx_in(n, x, 7);
    fac_value *a_scale = x[1];
    if (alpha != 1) a_scale = fac_mul(a_scale, fac_number(g, a_scale->type.dtype, alpha));
    const bool row = !c || c->type.dims.n == 1 || (c->type.dims.n == 2 && c->type.dims.d[0] == 1);
    if (y_scale && row) {
        if (c && c->type.dims.n == 2) c = fac_squeeze(c, fac_shape(0));
        const fac_qlinear_scales s = {
            a_scale, fac_zero_or(g, x[2], a->type.dtype),
            x[4],    fac_zero_or(g, x[5], b->type.dtype),
            y_scale, fac_zero_or(g, fac_onnx_in(n, x, 8), a->type.dtype)
        };
        y[0] = fac_qlinear_matmul(a, b, c, &s);
        return;
    }
    fac_value *acc = fac_matmul_integer(a, b, x[2], x[5]);
    if (c) acc = fac_add(acc, c);
    if (!y_scale) {
        y[0] = to_float(acc, a_scale, x[4], NULL);
        return;
    }
    fac_value *m = fac_div(fac_mul(scalar(a_scale), scalar(x[4])), scalar(y_scale));
    y[0] = fac_requantize(acc, m, scalar(fac_zero_or(g, fac_onnx_in(n, x, 8), a->type.dtype)));
}

/* a, b, a_scale, b_scale, a_zero, b_zero, bias */
void fac_load_integer_to_float(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                               fac_value *y[]) {
    (void)g;
    fac_value *acc = fac_matmul_integer(x[0], x[1], fac_onnx_in(n, x, 4), fac_onnx_in(n, x, 5));
    y[0] = to_float(acc, x[2], x[3], fac_onnx_in(n, x, 6));
}

/* a in f32, b, b_scale, b_zero, bias */
void fac_load_dynamic_matmul(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                             fac_value *y[]) {
    (void)g;
    fac_value *q = fac_dynamic_quantize_linear(x[0]);
    fac_value *acc = fac_matmul_integer(q, x[1], fac_value_other(q, 2), fac_onnx_in(n, x, 3));
    y[0] = to_float(acc, fac_value_other(q, 1), x[2], fac_onnx_in(n, x, 4));
}

/* x, weight, bias f32, x_scale, weight_scale, mask, x_zero, weight_zero, past */
void fac_load_qattention(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                         fac_value *y[]) {
    fac_value *acc = fac_matmul_integer(x[0], x[1], fac_onnx_in(n, x, 6), fac_onnx_in(n, x, 7));
    fac_value *qkv = to_float(acc, x[3], x[4], x[2]);
    fac_attend(n, g, qkv, fac_onnx_in(n, x, 5), fac_onnx_in(n, x, 8), NULL, y);
}
