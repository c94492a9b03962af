/* Operators that ONNX had before it was stable, or gave up, as the ops that they are made of: files
 * of 2017 to 2019, Core ML and Caffe2 converters. */
#include "ops/constant.h"
#include "ops/fusions.h"
#include "ops/grad.h"

const fac_onnx_attr fac_names_affine[] = { { "alpha", NULL }, { "beta", NULL }, { 0 } };
const fac_onnx_attr fac_names_image_scaler[] = { { "scale", NULL }, { "bias", NULL }, { 0 } };
const fac_onnx_attr fac_names_crop[] = { { "border", NULL }, { "scale", NULL }, { 0 } };
const fac_onnx_attr fac_names_scale[] = { { "scale", NULL }, { 0 } };

static fac_value *plus(fac_value *v, double b) {
    return b == 0 ? v : fac_add(v, fac_number(v->graph, v->type.dtype, b));
}

/* alpha x + beta */
void fac_load_affine(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    y[0] = plus(fac_grad_times(x[0], fac_onnx_real(n, "alpha", 1)), fac_onnx_real(n, "beta", 0));
}

void fac_load_scale(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    y[0] = fac_mul(x[0], fac_number(x[0]->graph, x[0]->type.dtype, fac_onnx_real(n, "scale", 1)));
}

/* alpha tanh(beta x) */
void fac_load_scaled_tanh(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                          fac_value *y[]) {
    (void)g;
    const double alpha = fac_onnx_real(n, "alpha", 1), beta = fac_onnx_real(n, "beta", 1);
    y[0] = fac_grad_times(fac_tanh(fac_grad_times(x[0], beta)), alpha);
}

/* alpha ln(1 + e^(beta x)) */
void fac_load_parametric_softplus(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                                  fac_value *y[]) {
    (void)g;
    const double alpha = fac_onnx_real(n, "alpha", 1), beta = fac_onnx_real(n, "beta", 1);
    y[0] = fac_grad_times(fac_softplus(fac_grad_times(x[0], beta)), alpha);
}

/* scale x + bias of each channel. */
void fac_load_image_scaler(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                           fac_value *y[]) {
    enum { MOST = 4096 };
    double bias[MOST];
    const int count = fac_onnx_reals(n, "bias", bias, MOST);
    const fac_dims *d = &x[0]->type.dims;
    y[0] = fac_grad_times(x[0], fac_onnx_real(n, "scale", 1));
    if (count <= 0) return;
    if (d->n < 3 || count > MOST || (d->d[1] >= 0 && count != 1 && count != d->d[1]))
        y[0] = fac_fail_graph(g, FAC_E_FORMAT,
                              "ImageScaler: %d biases do not fit the channels of x", count);
    else {
        fac_dims along = { .n = d->n - 1, .d = { count } };
        for (int k = 1; k < along.n; k++) along.d[k] = 1;
        y[0] = fac_add(y[0], fac_constant(g, x[0]->type.dtype, along, bias));
    }
}

/* N,C,H,W without a border: left, top, right, bottom; with scale, of height and width, right and
 * bottom follow from it. */
void fac_load_crop(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    int64_t border[4] = { 0 }, size[2] = { 0 };
    const int borders = fac_onnx_ints_long(n, "border", border, 4),
              sizes = fac_onnx_ints_long(n, "scale", size, 2);
    if (x[0]->type.dims.n != 4 || borders != 4 || (sizes >= 0 && sizes != 2)) {
        y[0] = fac_fail_graph(g, FAC_E_FORMAT,
                              "Crop: x must be N,C,H,W, border have four numbers and scale two");
        return;
    }
    for (int k = 0; k < 4; k++)
        if (border[k] < 0 || (sizes == 2 && size[k % 2] < 1)) {
            y[0] = fac_fail_graph(g, FAC_E_FORMAT, "Crop: a negative border, or a size below 1");
            return;
        }
    const int64_t bottom = border[3] ? -border[3] : INT64_MAX,
                  right = border[2] ? -border[2] : INT64_MAX;
    fac_value *rows = fac_slice(x[0], 2, border[1], sizes == 2 ? border[1] + size[0] : bottom, 1);
    y[0] = fac_slice(rows, 3, border[0], sizes == 2 ? border[0] + size[1] : right, 1);
}
