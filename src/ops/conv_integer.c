/* Convolution of bytes with sums in i32. */
#include <limits.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/conv.h"
#include "ops/fusions_quant.h"
#include "ops/quant.h"

#if FAC_INTERFACE
/* y[n,k,p,q] = b[k] + sum over c,r,s of (x[n, c', ...] - x_zero) (w[k,c,r,s] - w_zero[k]) as
 * fac_conv2d, where padding is x_zero.  x, w i8 or u8, x_zero one number of x's dtype or NULL,
 * w_zero of w's dtype one, one for each k or NULL, b i32 K or NULL; y i32, which wraps. */
fac_value *fac_conv_integer(fac_value *x, fac_value *w, fac_value *b, fac_value *x_zero,
                            fac_value *w_zero, const fac_conv2d_opts *opts);
#endif

enum { X_ZERO = 3, W_ZERO };
static const fac_port in[] = { { "x", FAC_INTS, 0 },
                               { "w", FAC_INTS, 0 },
                               { "b", FAC_INTS, FAC_OPTIONAL },
                               { "x_zero", FAC_INTS, FAC_OPTIONAL },
                               { "w_zero", FAC_INTS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_INTS, 0 }, { 0 } };

static bool has_dtype_of(fac_node *n, int zero, int of, const char *name) {
    if (!n->in[zero] || n->in[zero]->type.dtype == n->in[of]->type.dtype) return true;
    return fac_fail(n, FAC_E_DTYPE, "%s must have the dtype of what it belongs to", name);
}

static bool infer(fac_node *n) {
    return fac_quant_conv_infer(n, FAC_I32) && has_dtype_of(n, X_ZERO, FAC_QCONV_X, "x_zero") &&
           has_dtype_of(n, W_ZERO, FAC_QCONV_W, "w_zero") &&
           fac_quant_scalar(n, X_ZERO, "x_zero") &&
           fac_quant_each(n, W_ZERO, n->in[FAC_QCONV_W]->type.dims.d[0], "w_zero");
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const int64_t n = fac_dims_count(&r->out[0].type.dims);
    double *y = fac_alloc((size_t)n + 1, sizeof *y);
    if (!y)
        return fac_raise(err, FAC_E_NOMEM, "conv_integer: no memory for %lld sums", (long long)n);
    const fac_status status = fac_quant_conv_sums(r, X_ZERO, W_ZERO, y, err);
    for (int64_t k = 0; k < n && !status; k++) r->out[0].i[k] = (int64_t)y[k];
    fac_release(y);
    return status;
}

/* ONNX has no bias here: it is added. */
static void save_bias(const fac_onnx_writer *w, const fac_node *n, const char *sum) {
    const int64_t axes[] = { 1, 2 };
    const char *spread[] = { fac_onnx_name(w, n->in[FAC_QCONV_B]), fac_onnx_list(w, 2, axes) };
    const char *b = fac_onnx_put(w, "Unsqueeze", 2, spread, NULL);
    fac_onnx_put(w, "Add", 2, (const char *[]){ sum, b }, fac_onnx_name(w, n->out[0]));
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]),
                          fac_onnx_name(w, n->in[X_ZERO]), fac_onnx_name(w, n->in[W_ZERO]) };
    const fac_dims *d = &n->in[1]->type.dims;
    const bool biased = n->in[FAC_QCONV_B] != NULL;
    if (w->opset < (biased ? 14 : 10)) return false; /* Add of bytes came later */
    const char *y =
        fac_onnx_put(w, "ConvInteger", 4, ins, biased ? NULL : fac_onnx_name(w, n->out[0]));
    if (fac_dims_count(d) >= 0) fac_onnx_put_ints(w, "kernel_shape", 2, d->d + 2);
    fac_window_save(w, n);
    if (biased) save_bias(w, n, y);
    return true;
}

static fac_value *make(fac_value *const x[], const fac_conv2d_opts *o) {
    return fac_conv_integer(x[0], x[1], NULL, x[2], x[3], o);
}
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    fac_value *ins[] = { x[0], x[1], fac_onnx_in(n, x, 2), fac_onnx_in(n, x, 3) };
    if (fac_value_type(x[1]).dims.n == 5)
        y[0] = fac_load_quant_volume(n, g, x[0], ins[2], x[1], ins[3], NULL);
    else
        y[0] = fac_load_quant_conv(n, g, ins, 0, 1, make);
}

static const fac_onnx onnx[] = { { "", "ConvInteger", 10, 0, fac_names_quant_conv, load, 2 },
                                 { 0 } };
static const fac_case cases[] = {
    { "conv_integer(u8[1,3,5,5], i8[4,3,3,3], -, u8[], i8[]) pad=1,1,1,1", -9, 9, 0 },
    { "conv_integer(u8[2,4,7,6], u8[6,2,3,2], i32[6], u8[], u8[6]) stride=2,1 groups=2", 0, 255,
      0 },
    { "conv_integer(i8[1,8,9,7], i8[8,1,3,3], -, i8[]) pad=1,1,1,1 groups=8", -128, 127, 0 },
    { "conv_integer(i8[1,5,4,4], u8[3,5,1,1])", -9, 9, 0 },
    { "conv_integer(u8[0,3,5,5], i8[4,3,3,3])", 0, 0, 0 },
    { 0 }
};

/* The bias by itself, as ONNX has it: sums of i32 wrap. */
static void define(const fac_node *n, fac_value *y[]) {
    if (!n->in[FAC_QCONV_B]) return;
    fac_value *sums =
        fac_conv_integer(n->in[0], n->in[1], NULL, n->in[X_ZERO], n->in[W_ZERO], n->attrs);
    y[0] = fac_add(sums, fac_unsqueeze(n->in[FAC_QCONV_B], fac_shape(1, 2)));
}

extern const fac_op fac_op_conv_integer;
const fac_op fac_op_conv_integer = {
    .name = "conv_integer",
    .doc = "convolution of bytes with sums in i32",
    .in = in,
    .out = out,
    .attrs = fac_conv2d_table,
    .attrs_size = sizeof(fac_conv2d_opts),
    .infer = infer,
    .ref = ref,
    .cost = fac_conv_cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .define = define,
    .is = FAC_OP_NO_GRAD,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_conv_integer(fac_value *x, fac_value *w, fac_value *b, fac_value *x_zero,
                            fac_value *w_zero, const fac_conv2d_opts *opts) {
    return fac_emit(&fac_op_conv_integer, opts, 5, (fac_value *[]){ x, w, b, x_zero, w_zero });
}
