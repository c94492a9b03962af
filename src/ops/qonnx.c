/* QONNX: quantizers of any number of bits, whose numbers stay floats (Pappalardo et al. 2022, the
 * definitions of its package).  BipolarQuant is read in binarize.c.
 *
 *   Quant, IntQuant   y = (r(clip(x / scale + zero, least, most)) - zero) scale
 *   MultiThreshold    y = out_scale (how many thresholds t[c] have x[c] >= t) + out_bias
 *   Trunc             y = (r(rne(x / scale + zero) 2^(out_bits - in_bits)) - zero) scale */
#include <math.h>
#include <string.h>
#include "ops/constant.h"
#include "ops/define.h"
#include "ops/known.h"
#include "ops/qonnx.h"

#define QONNX FAC_QONNX
#define FINN "finn.custom_op.general"
#define BREVITAS "onnx.brevitas" /* of older files */
enum { UNROLLED = 16 };

/* ---- rounding ---- */

/* x rounded as the attribute says; the poison value after an error. */
static fac_value *rounded(const fac_onnx_node *n, fac_value *x, const char *usual) {
    const char *mode = fac_onnx_text(n, "rounding_mode", usual);
    if (!strcmp(mode, "ROUND") || !strcmp(mode, "HALF_EVEN")) return fac_round(x);
    if (!strcmp(mode, "CEIL")) return fac_ceil(x);
    if (!strcmp(mode, "FLOOR")) return fac_floor(x);
    if (!strcmp(mode, "ROUND_TO_ZERO") || !strcmp(mode, "DOWN")) return fac_trunc(x);
    if (!strcmp(mode, "UP")) return fac_mul(fac_sign(x), fac_ceil(fac_abs(x)));
    fac_value *half = fac_number_as(x, 0.5);
    if (!strcmp(mode, "HALF_UP")) return fac_mul(fac_sign(x), fac_floor(fac_add(fac_abs(x), half)));
    if (!strcmp(mode, "HALF_DOWN"))
        return fac_mul(fac_sign(x), fac_ceil(fac_sub(fac_abs(x), half)));
    return fac_fail_graph(fac_value_graph(x), FAC_E_UNSUPPORTED, "%s: rounding_mode \"%s\"",
                          n->type, mode);
}

/* ---- Quant ---- */

/* The largest and least integers of so many bits, which may be computed. */
static fac_value *most_of(fac_value *bits, bool sign, bool narrow) {
    fac_value *two = fac_number_as(bits, 2),
              *all = fac_pow(two, sign ? fac_sub(bits, fac_number_as(bits, 1)) : bits);
    return fac_sub(all, fac_number_as(bits, !sign && narrow ? 2 : 1));
}
static fac_value *least_of(fac_value *bits, bool sign, bool narrow) {
    if (!sign) return fac_number_as(bits, 0);
    fac_value *all = fac_pow(fac_number_as(bits, 2), fac_sub(bits, fac_number_as(bits, 1)));
    return fac_sub(fac_number_as(bits, narrow ? 1 : 0), all);
}

static fac_value *clipped(fac_value *q, fac_value *bits, bool sign, bool narrow) {
    return fac_max(fac_min(q, most_of(bits, sign, narrow)), least_of(bits, sign, narrow));
}

/* Bits are an initializer, as a rule. */
static bool is_one(const fac_value *bits) {
    float x = 0;
    int64_t whole = 0;
    if (!bits->tensor || fac_dims_count(&bits->type.dims) != 1) return false;
    if (bits->type.dtype == FAC_F32)
        return !fac_tensor_read(bits->tensor, &x, sizeof x, NULL) && x == 1;
    if (bits->type.dtype != FAC_I64) return false;
    return !fac_tensor_read(bits->tensor, &whole, sizeof whole, NULL) && whole == 1;
}

/* QKeras writes zero points and bits as integers. */
static fac_value *like(const fac_value *x, fac_value *v) {
    return v->type.dtype == x->type.dtype ? v : fac_cast(v, x->type.dtype);
}

static void load_quant(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                       fac_value *y[]) {
    fac_value *x = in[0], *scale = like(x, in[1]), *zero = like(x, in[2]), *bits = like(x, in[3]);
    const bool sign = fac_onnx_int(n, "signed", 1) != 0, narrow = fac_onnx_int(n, "narrow", 0) != 0;
    (void)g;
    fac_value *q = fac_add(fac_div(x, scale), zero);
    if (sign && is_one(in[3]))
        q = fac_binarize(q); /* as the package has it */
    else
        q = rounded(n, clipped(q, bits, sign, narrow), "ROUND");
    y[0] = fac_mul(fac_sub(q, zero), scale);
}

fac_value *fac_qonnx_quant(fac_value *x, fac_value *scale, fac_value *zero, fac_value *bits,
                           bool is_signed, bool narrow) {
    fac_value *q = fac_add(fac_div(x, scale), zero);
    if (is_signed && is_one(bits))
        q = fac_binarize(q); /* as the package has it */
    else
        q = fac_round(clipped(q, bits, is_signed, narrow));
    return fac_mul(fac_sub(q, zero), scale);
}

/* ---- Trunc ---- */

static void load_trunc(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                       fac_value *y[]) {
    fac_value *x = in[0], *scale = like(x, in[1]), *zero = like(x, in[2]);
    (void)g;
    fac_value *step = fac_pow(fac_number_as(x, 2), fac_sub(like(x, in[3]), like(x, in[4])));
    fac_value *q = fac_div(fac_round(fac_add(fac_div(x, scale), zero)), step);
    y[0] = fac_mul(fac_sub(rounded(n, q, "FLOOR"), zero), scale);
}

/* Since version 2: x, scale, zero, in_bits, out_scale, out_bits. */
static void load_trunc_scaled(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                              fac_value *y[]) {
    fac_value *x = in[0], *scale = like(x, in[1]), *zero = like(x, in[2]),
              *out_scale = like(x, in[4]);
    const bool sign = fac_onnx_int(n, "signed", 1) != 0, narrow = fac_onnx_int(n, "narrow", 0) != 0;
    (void)g;
    fac_value *step = fac_exp2(fac_round(fac_log2(fac_div(out_scale, scale))));
    fac_value *q = fac_div(fac_round(fac_add(fac_div(x, scale), zero)), step);
    q = rounded(n, clipped(q, like(x, in[5]), sign, narrow), "FLOOR");
    y[0] = fac_mul(fac_sub(q, fac_div(zero, step)), out_scale);
}

/* ---- MultiThreshold ---- */

/* Thresholds first..end - 1 of each channel so that they broadcast against x with a dim after
 * it. */
static fac_value *spread(fac_value *t, const fac_value *x, int axis) {
    const int64_t channels = t->type.dims.d[0], many = t->type.dims.d[1];
    fac_dims d = { .n = x->type.dims.n - axis + 1 };
    for (int k = 0; k < d.n; k++) d.d[k] = 1;
    d.d[0] = channels;
    d.d[d.n - 1] = many;
    return fac_reshape_sizes(t, d);
}

static fac_value *one_by_one(fac_value *x, fac_value *t, int axis) {
    fac_value *sum = NULL;
    for (int64_t k = 0; k < t->type.dims.d[1]; k++) {
        fac_value *wide = spread(fac_slice(t, 1, k, k + 1, 1), x, axis);
        fac_dims d = wide->type.dims;
        d.n--;
        fac_value *here =
            fac_cast(fac_greater_or_equal(x, fac_reshape_sizes(wide, d)), x->type.dtype);
        sum = sum ? fac_add(sum, here) : here;
    }
    return sum;
}

static fac_value *counted(fac_value *x, fac_value *t, int axis) {
    if (t->type.dims.d[1] <= UNROLLED) return one_by_one(x, t, axis);
    fac_value *wide = fac_unsqueeze(x, fac_shape(x->type.dims.n));
    fac_value *above = fac_cast(fac_greater_or_equal(wide, spread(t, x, axis)), x->type.dtype);
    return fac_sum(above, fac_shape(x->type.dims.n), false);
}

fac_value *fac_qonnx_thresholds(fac_value *x, fac_value *t, int axis, double scale, double bias) {
    return fac_add(fac_mul(counted(x, t, axis), fac_number_as(x, scale)), fac_number_as(x, bias));
}

static void load_thresholds(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                            fac_value *y[]) {
    fac_value *x = in[0], *t = in[1];
    const char *layout = fac_onnx_text(n, "data_layout", "");
    const int rank = x->type.dims.n, size = (int)strlen(layout);
    const int axis = size && layout[size - 1] == 'C' && size > 2 ? rank - 1 : 1;
    const fac_dims *d = &t->type.dims;
    if (d->n != 2 || d->d[0] < 1 || d->d[1] < 1 || rank < 2) {
        y[0] = fac_fail_graph(g, FAC_E_SHAPE,
                              "%s needs x of 2 dims or more and thresholds of "
                              "known sizes C,T",
                              n->type);
        return;
    }
    const double scale = fac_onnx_real(n, "out_scale", 1), bias = fac_onnx_real(n, "out_bias", 0);
    y[0] = fac_qonnx_thresholds(x, t, axis, scale, bias);
}

static const fac_onnx_attr quant_names[] = {
    { "signed", NULL }, { "narrow", NULL }, { "rounding_mode", NULL }, { 0 }
};
static const fac_onnx_attr trunc_names[] = { { "rounding_mode", NULL }, { 0 } };
static const fac_onnx_attr threshold_names[] = { { "out_dtype", NULL },
                                                 { "out_scale", NULL },
                                                 { "out_bias", NULL },
                                                 { "data_layout", NULL },
                                                 { 0 } };
const fac_onnx fac_reads_qonnx[] = {
    { QONNX, "Quant", 1, 0, quant_names, load_quant, 4 },
    { QONNX, "IntQuant", 1, 0, quant_names, load_quant, 4 },
    { FINN, "Quant", 1, 0, quant_names, load_quant, 4 },
    { QONNX, "Trunc", 1, 1, trunc_names, load_trunc, 5 },
    { QONNX, "Trunc", 2, 0, quant_names, load_trunc_scaled, 6 },
    { FINN, "Trunc", 1, 0, trunc_names, load_trunc, 5 },
    { QONNX, "MultiThreshold", 1, 0, threshold_names, load_thresholds, 2 },
    { FINN, "MultiThreshold", 1, 0, threshold_names, load_thresholds, 2 },
    { BREVITAS, "Quant", 1, 0, quant_names, load_quant, 4 },
    { BREVITAS, "Trunc", 1, 0, trunc_names, load_trunc, 5 },
    { 0 }
};
