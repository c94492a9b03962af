/* ONNX's MeanVarianceNormalization. */
#include <math.h>
#include "ops/map_grad.h"

#if FAC_INTERFACE
/* (x - mean) / (sqrt(variance) + 1e-9), both over axes (none: 0, 2, 3) and of all their elements.
 * Floats. */
fac_value *fac_mean_variance_norm(fac_value *x, fac_dims axes);
#endif

typedef struct attrs {
    fac_dims axes;
} attrs;
static const fac_attr table[] = { { "axes", FAC_A_DIMS, offsetof(attrs, axes), 0, 0, 0, 0, NULL,
                                    "that are normalized over; none: 0, 2, 3" },
                                  { 0 } };

static fac_dims axes_of(const fac_node *n) {
    const attrs *a = n->attrs;
    return a->axes.n ? a->axes : fac_shape(0, 2, 3);
}

static bool infer(fac_node *n) {
    const fac_dims axes = axes_of(n);
    const int rank = n->in[0]->type.dims.n;
    bool seen[FAC_DIMS] = { false };
    for (int k = 0; k < axes.n; k++) {
        const int axis = fac_axis(axes.d[k], rank);
        if (axis < 0 || seen[axis])
            return fac_fail(n, FAC_E_ARGUMENT, "axis %lld of %d dims, or one stands twice",
                            (long long)axes.d[k], rank);
        seen[axis] = true;
    }
    n->out[0]->type = n->in[0]->type;
    return true;
}

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_dtype dtype = n->in[0]->type.dtype, wide = fac_grad_wide(dtype);
    fac_value *x = fac_grad_as(n->in[0], wide),
              *centred = fac_sub(x, fac_mean(x, axes_of(n), true));
    fac_value *variance = fac_mean(fac_mul(centred, centred), axes_of(n), true);
    out[0] = fac_grad_as(fac_div(centred, fac_grad_shifted(fac_sqrt(variance), 1e-9)), dtype);
}

/* Opset 1 had flags: of all channels of an image together or of each, and whether the variance
 * counts. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    const bool across = n->opset < 9 && fac_onnx_int(n, "across_channels", 0);
    const fac_dims old = across ? fac_shape(1, 2, 3) : fac_shape(2, 3);
    const fac_dims axes = n->opset < 9 ? old : fac_onnx_ints(n, "axes");
    if (n->opset < 9 && !fac_onnx_int(n, "normalize_variance", 1))
        y[0] = fac_sub(x[0], fac_mean(x[0], axes, true));
    else
        y[0] = fac_mean_variance_norm(x[0], axes);
}
static const fac_onnx_attr names[] = { { "axes", NULL }, { 0 } };
static const fac_onnx_attr old_names[] = { { "across_channels", NULL },
                                           { "normalize_variance", NULL },
                                           { 0 } };
static const fac_onnx onnx[] = { { "", "MeanVarianceNormalization", 9, 0, names, load, 0 },
                                 { "", "MeanVarianceNormalization", 1, 8, old_names, load, 0 },
                                 { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_dims axes = axes_of(n);
    if (w->opset < 9) return false;
    const char *x = fac_onnx_name(w, n->in[0]);
    fac_onnx_put(w, "MeanVarianceNormalization", 1, &x, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_ints(w, "axes", axes.n, axes.d);
    return true;
}

static const fac_case cases[] = { { "mean_variance_norm(f32[2,3,4,5])", -4, 4, 1e-5 },
                                  { "mean_variance_norm(f32[3,7]) axes=-1", -4, 4, 1e-5 },
                                  { "mean_variance_norm(f64[2,3,4]) axes=1,2", -4, 4, 1e-10 },
                                  { "mean_variance_norm(f16[2,16]) axes=1", -4, 4, 4e-3 },
                                  { "mean_variance_norm(f32[2,0,3]) axes=2", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_mean_variance_norm = {
    .name = "mean_variance_norm",
    .doc = "mean 0 and variance 1 over some axes",
    .in = fac_ports_x,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .expand = expand,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_mean_variance_norm(fac_value *x, fac_dims axes) {
    return fac_emit(&fac_op_mean_variance_norm, &(attrs){ axes }, 1, &x);
}
