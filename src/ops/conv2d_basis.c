/* A convolution of numbers that are quantized to levels of few bits,
    with weights that are planes of
 * bits.  Made by src/passes/low_bits.c; kernels multiply bits.  Has no prototype.
 *
 *     y = conv2d(quantize_basis(x, x_basis), unpack_basis(bits, w_basis)) scale + b
 *
 *   x N,C,H,W, or relu(x) of it   bits u8 M,K,B: see pack_basis   x_basis A,
     positive digits; absent:
 *   binarize(x)   w_basis M,K   scale, b K or absent.   Padding is the number 0,
     whatever the levels. */
#include <limits.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "op_list.h"
#include "ops/basis.h"
#include "ops/conv_basis.h"
#include "ops/pack_basis.h"

static const fac_port in[] = {
    { "x", FAC_FLOATS, 0 }, { "bits", FAC_INTS, 0 }, { "b", FAC_FLOATS, FAC_OPTIONAL },
    { "x_basis", FAC_FLOATS, FAC_OPTIONAL }, { "w_basis", FAC_FLOATS, 0 },
    { "scale", FAC_FLOATS, FAC_OPTIONAL }, { 0 } };

#define AT(field) offsetof(fac_conv_basis_attrs, field)
static const fac_attr table[] = {
    { "stride", FAC_A_INT, AT(conv.stride), 2, 1, 1, INT_MAX, NULL, "height, width" },
    { "pad", FAC_A_INT, AT(conv.pad), 4, 0, 0, INT_MAX, NULL, "top, left, bottom, right" },
    { "dilation", FAC_A_INT, AT(conv.dilation), 2, 1, 1, INT_MAX, NULL,
      "distance of kernel elements" },
    { "groups", FAC_A_INT, AT(conv.groups), 0, 1, 1, INT_MAX, NULL, "channels convolved apart" },
    { "auto_pad", FAC_A_ENUM, AT(conv.auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { "dims", FAC_A_DIMS, AT(dims), 0, 0, 0, 0, NULL, "of the weight" },
    { "relu", FAC_A_FLAG, AT(relu), 0, 0, 0, 0, NULL, "x below 0 is 0" }, { 0 } };
#undef AT

/* The node as a conv2d whose weight is this value. */
static fac_node as_conv(const fac_node *n, fac_value *w, fac_value *ins[3]) {
    const fac_conv_basis_attrs *a = n->attrs;
    fac_node conv = *n;
    *w = *n->in[FAC_CB_BITS];
    w->type = (fac_type){ n->in[FAC_CB_X]->type.dtype, a->dims };
    ins[0] = n->in[FAC_CB_X];
    ins[1] = w;
    ins[2] = n->in[FAC_CB_B];
    conv.op = &fac_op_conv2d;
    conv.in = ins;
    conv.nin = 3;
    conv.nports = 3;
    return conv;
}

static bool infer(fac_node *n) {
    fac_value w, *ins[3], *xb = n->in[FAC_CB_X_BASIS], *s = n->in[FAC_CB_SCALE];
    const fac_dims *d = &((const fac_conv_basis_attrs *)n->attrs)->dims;
    const fac_type *bits = &n->in[FAC_CB_BITS]->type, *wb = &n->in[FAC_CB_W_BASIS]->type;
    const int64_t row = fac_pack_row(d);
    if (d->n != 4 || row < 0 || d->d[0] < 0)
        return fac_fail(n, FAC_E_SHAPE, "dims must be four known sizes, those of the weight");
    if (bits->dtype != FAC_U8 || bits->dims.n != 3 || wb->dims.n != 2)
        return fac_fail(n, FAC_E_SHAPE, "expected bits u8 M,K,B and w_basis M,K");
    const fac_dims want = fac_shape(wb->dims.d[0], d->d[0], (row + 7) / 8);
    if (!fac_dims_equal(&want, &bits->dims) || wb->dims.d[1] != d->d[0] || wb->dims.d[0] < 1
        || wb->dims.d[0] > FAC_BASIS_BITS)
        return fac_fail(n, FAC_E_SHAPE, "bits and w_basis do not fit the weight");
    fac_node conv = as_conv(n, &w, ins);
    if (!fac_conv_infer(&conv)) return false;
    if (xb && (xb->type.dims.n != 1 || !fac_basis_fits(n, n->in[FAC_CB_X], xb, 0)))
        return fac_fail(n, FAC_E_SHAPE, "x_basis must have one dim");
    if (s && (s->type.dims.n != 1 || s->type.dims.d[0] != d->d[0]))
        return fac_fail(n, FAC_E_SHAPE, "scale must have one number for each output channel");
    return true;
}

static void spread(const fac_ref *r, double *to) {
    const fac_conv_basis_attrs *a = r->attrs;
    const fac_array *x = &r->in[FAC_CB_X], *basis = &r->in[FAC_CB_X_BASIS];
    const int64_t n = fac_dims_count(&x->type.dims);
    fac_basis b = { .bits = 0 };
    if (basis->f)
        fac_basis_of(basis->f, 1, (int)basis->type.dims.d[0], true, x->type.dtype != FAC_F64, &b);
    for (int64_t i = 0; i < n; i++) {
        double v = x->f[i];
        if (a->relu && v < 0) v = 0;
        if (b.bits) v = b.level[fac_basis_find(&b, v)];
        else v = v < 0 ? -1 : 1;
        to[i] = v;
    }
}

static void finish(const fac_ref *r) {
    const double *s = r->in[FAC_CB_SCALE].f, *b = r->in[FAC_CB_B].f;
    const fac_dims *d = &r->out[0].type.dims;
    const int64_t plane = d->d[2] * d->d[3], planes = d->d[0] * d->d[1];
    for (int64_t p = 0; p < planes; p++)
        for (int64_t i = 0; i < plane; i++) {
            double *y = &r->out[0].f[p * plane + i];
            if (s) *y *= s[p % d->d[1]];
            if (b) *y += b[p % d->d[1]];
        }
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_conv_basis_attrs *a = r->attrs;
    const fac_type w = { r->in[0].type.dtype, a->dims };
    const size_t pixels = (size_t)fac_dims_count(&r->in[0].type.dims);
    const size_t weights = (size_t)fac_dims_count(&a->dims);
    double *numbers = fac_alloc(pixels + weights + 1, sizeof *numbers);
    if (!numbers)
        return fac_raise(err, FAC_E_NOMEM, "conv2d_basis: no memory for what is quantized");
    fac_array of[3] = { r->in[0], { .type = w, .f = numbers + pixels }, { .f = NULL } };
    of[0].f = numbers;
    spread(r, numbers);
    fac_unpack(&r->in[FAC_CB_BITS], &r->in[FAC_CB_W_BASIS], &of[1]);
    fac_ref conv = { &a->conv, 3, 1, of, r->out };
    const fac_status status = fac_conv2d_ref(&conv, err);
    if (!status) finish(r);
    fac_release(numbers);
    return status;
}

static fac_value *channels(fac_value *v) { return fac_unsqueeze(v, fac_shape(1, 2)); }

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_conv_basis_attrs *a = n->attrs;
    const fac_basis_opts positive = { .positive = true };
    fac_value *xb = n->in[FAC_CB_X_BASIS], *s = n->in[FAC_CB_SCALE], *b = n->in[FAC_CB_B];
    fac_value *x = a->relu ? fac_relu(n->in[FAC_CB_X]) : n->in[FAC_CB_X];
    x = xb ? fac_quantize_basis(x, xb, &positive) : fac_binarize(x);
    fac_value *w = fac_unpack_basis(n->in[FAC_CB_BITS], n->in[FAC_CB_W_BASIS], a->dims);
    y[0] = fac_conv2d(x, w, s ? NULL : b, &a->conv);
    if (s) y[0] = fac_mul(y[0], channels(s));
    if (s && b) y[0] = fac_add(y[0], channels(b));
}

static void cost(const fac_node *n, fac_cost *to) {
    fac_value w, *ins[3];
    const fac_node conv = as_conv(n, &w, ins);
    fac_conv_macs(&conv, n->out[0], to);
}

static const fac_case cases[] = {
    { "conv2d_basis(f32[1,3,5,5], u8[1,4,4], -, f32{0.5}, f32[1,4]) pad=1,1,1,1 dims=4,3,3,3", -1,
      1,
      1e-5 },
    { "conv2d_basis(f32[2,33,7,6], u8[1,18,25], f32[18], f32{0.25, 0.5}, f32[1,18], f32[18]) "
      "stride=2,1 pad=1,1,2,0 dims=18,33,3,2", -1, 1, 1e-4 },
    { "conv2d_basis(f32[1,16,9,9], u8[1,32,18], f32[32], -, f32[1,32]) pad=1,1,1,1 "
      "dims=32,16,3,3", -1, 1, 1e-4 },
    { "conv2d_basis(f32[1,32,8,7], u8[2,16,18], -, f32{0.25, 0.5}, f32[2,16]) dilation=2,2 "
      "pad=2,2,2,2 groups=2 dims=16,16,3,3 relu", -1, 1, 1e-4 },
    { "conv2d_basis(f32[1,40,4,4], u8[3,9,5], -, f32{0.25, 0.5, 1}, f32[3,9]) dims=9,40,1,1", -1, 2,
      1e-4 },
    { "conv2d_basis(f64[1,3,5,5], u8[2,4,4], -, f64{0.5}, f64[2,4]) dims=4,3,3,3", -1, 1, 1e-12 },
    { "conv2d_basis(f32[0,3,5,5], u8[1,4,4], -, f32{0.5}, f32[1,4]) dims=4,3,3,3", 0, 0, 0 },
        { 0 } };

const fac_op fac_op_conv2d_basis = {
    .name = "conv2d_basis", .doc = "convolution of levels of few bits", .in = in,
    .out = fac_ports_y, .attrs = table, .attrs_size = sizeof(fac_conv_basis_attrs), .infer = infer,
    .ref = ref, .expand = expand, .cost = cost, .cases = cases, .is = FAC_OP_NO_GRAD,
    .layer = FAC_CLASS_CONV, .images = FAC_IMAGES_FIRST, .rounding = { .rule = FAC_ROUND_NONE },
};
