/* Operators on bytes that ONNX Runtime computes in floats, between two changes of scale. */
#include "ops/fusions_quant.h"
#include "ops/pool.h"
#include "ops/quant.h"
#include "ops/shape.h"

const fac_onnx_attr fac_names_leaky[] = { { "alpha", NULL }, { 0 } };
const fac_onnx_attr fac_names_qsoftmax[] = { { "axis", NULL }, { "opset", NULL }, { 0 } };
const fac_onnx_attr fac_names_concat[] = { { "axis", NULL }, { 0 } };
const fac_onnx_attr fac_names_channels_last[] = { { "channels_last", NULL }, { 0 } };
const fac_onnx_attr fac_names_qpool[] = {
    { "auto_pad", NULL },     { "ceil_mode", NULL },     { "count_include_pad", NULL },
    { "kernel_shape", NULL }, { "pads", NULL },          { "strides", NULL },
    { "dilations", NULL },    { "channels_last", NULL }, { 0 }
};

static fac_value *numbers(fac_value *q, fac_value *scale, fac_value *zero) {
    return fac_dequantize_linear(q, scale, zero, NULL);
}

/* The last two operands of a node whose first three are x and its scale: of y. */
static fac_value *bytes(fac_value *x, fac_value *scale, fac_value *zero, fac_dtype t) {
    return fac_quantize_linear(x, scale, zero, &(fac_quantize_opts){ .to = zero ? FAC_NONE : t });
}

static fac_value *opened(fac_value *const x[]) { return numbers(x[0], x[1], x[2]); }
static fac_value *closed(const fac_onnx_node *n, fac_value *const x[], fac_value *y) {
    return bytes(y, x[3], fac_onnx_in(n, x, 4), x[0]->type.dtype);
}

void fac_load_qlinear_sigmoid(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                              fac_value *y[]) {
    (void)g;
    y[0] = closed(n, x, fac_sigmoid(opened(x)));
}

void fac_load_qlinear_leaky_relu(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                                 fac_value *y[]) {
    (void)g;
    y[0] = closed(n, x, fac_leaky_relu(opened(x), fac_onnx_real(n, "alpha", 0.01)));
}

void fac_load_qlinear_softmax(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                              fac_value *y[]) {
    fac_value *v = opened(x);
    const int64_t opset = fac_onnx_int(n, "opset", 13), axis = fac_onnx_int(n, "axis", -1);
    const int k = fac_axis(axis, v->type.dims.n);
    if (k < 0)
        v = fac_fail_graph(g, FAC_E_FORMAT, "QLinearSoftmax: axis %lld", (long long)axis);
    else if (opset >= 13 || k == v->type.dims.n - 1)
        v = fac_softmax(v, k);
    else
        v = fac_reshape_like(fac_softmax(fac_flatten(v, k), 1), v);
    y[0] = closed(n, x, v);
}

/* Channels last as channels first, and back. */
static fac_value *transposed(fac_value *x, bool back) {
    fac_dims order = { .n = x->type.dims.n };
    const int by = back ? 1 : order.n - 2; /* all dims but the first go round by so many places */
    for (int k = 1; k < order.n; k++) order.d[k] = 1 + (k - 1 + by) % (order.n - 1);
    return fac_transpose(x, order);
}

/* As ONNX Runtime's average pools do: the zero point is added before rounding, which decides where
 * a mean lies in the middle of two numbers to the even one. */
static fac_value *pooled_bytes(const fac_onnx_node *n, fac_value *const x[], fac_value *y) {
    const fac_dtype t = x[0]->type.dtype;
    fac_value *zero = fac_onnx_in(n, x, 4);
    double least, most;
    fac_quant_range(t, &least, &most);
    y = fac_div(y, x[3]);
    if (zero) y = fac_add(y, fac_cast(zero, y->type.dtype));
    return fac_cast(fac_clip(fac_round(y), fac_number_as(y, least), fac_number_as(y, most)), t);
}

void fac_load_qlinear_avg_pool(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                               fac_value *y[]) {
    const bool last = fac_onnx_int(n, "channels_last", 0) != 0;
    fac_value *v = opened(x);
    if (last) v = transposed(v, false);
    fac_pool_load(n, g, &v, y);
    y[0] = pooled_bytes(n, x, last ? transposed(y[0], true) : y[0]);
}

void fac_load_qlinear_global(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                             fac_value *y[]) {
    const bool last = fac_onnx_int(n, "channels_last", 0) != 0;
    const fac_dtype t = x[0]->type.dtype;
    fac_value *v = last ? transposed(x[0], false) : x[0];
    y[0] = fac_qlinear_global_avg_pool(v, x[1], fac_zero_or(g, x[2], t), x[3],
                                       fac_zero_or(g, fac_onnx_in(n, x, 4), t));
    if (last) y[0] = transposed(y[0], true);
}

/* y's scale and zero point, then three operands for each part. */
void fac_load_qlinear_concat(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                             fac_value *y[]) {
    fac_value *part[FAC_ONNX_ROOM];
    const int parts = (n->nin - 2) / 3;
    if (n->nin < 5 || (n->nin - 2) % 3 || parts > FAC_ONNX_ROOM) {
        y[0] = fac_fail_graph(g, FAC_E_FORMAT,
                              "QLinearConcat: %d inputs, expected 2 and 3 for each "
                              "part",
                              n->nin);
        return;
    }
    for (int k = 2; k < n->nin; k++)
        if (!x[k]) {
            y[0] = fac_fail_graph(g, FAC_E_FORMAT,
                                  "QLinearConcat lacks input %d: each part needs three", k + 1);
            return;
        }
    for (int k = 0; k < parts; k++) {
        fac_value *const *of = x + 2 + 3 * k;
        const bool same = of[1] == x[0] && of[2] == x[1];
        part[k] = same ? of[0] : bytes(numbers(of[0], of[1], of[2]), x[0], x[1], of[0]->type.dtype);
    }
    y[0] = fac_concat(part, parts, (int)fac_onnx_int(n, "axis", 0));
}

/* condition; x, scale, zero; y, scale, zero; those of the result. */
void fac_load_qlinear_where(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                            fac_value *y[]) {
    (void)n, (void)g;
    fac_value *v = fac_where(x[0], numbers(x[1], x[2], x[3]), numbers(x[4], x[5], x[6]));
    y[0] = bytes(v, x[7], x[8], x[1]->type.dtype);
}
