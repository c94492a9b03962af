/* A convolution of numbers and weights that are quantized to levels of few bits.  Made by
 * src/passes/low_bits.c; kernels multiply planes of bits.  Has no prototype.
 *
 *     y = conv2d(quantize_basis(x, x_basis), quantize_basis(w, w_basis)) scale + b
 *
 * x_basis K, positive digits; absent: binarize(x).  w_basis M, or M,K for output channels.
 * Padding is the number 0, whatever the levels are. */
#include <limits.h>
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/basis.h"
#include "ops/conv.h"
#include "ops/conv_basis.h"
#include "op_list.h"

static const fac_port in[] = {
    { "x", FAC_FLOATS, 0 }, { "w", FAC_FLOATS, 0 }, { "b", FAC_FLOATS, FAC_OPTIONAL },
    { "x_basis", FAC_FLOATS, FAC_OPTIONAL }, { "w_basis", FAC_FLOATS, 0 },
    { "scale", FAC_FLOATS, FAC_OPTIONAL }, { 0 } };

static bool infer(fac_node *n) {
    fac_node conv = *n;
    conv.op = &fac_op_conv2d;
    conv.nin = 3;
    if (!fac_conv_infer(&conv)) return false;
    const fac_value *bases[] = { n->in[FAC_BASIS_X], n->in[FAC_BASIS_W] };
    for (int k = 0; k < 2; k++)
        if (bases[k] && !fac_basis_fits(n, n->in[k], bases[k], 0)) return false;
    if (bases[0] && bases[0]->type.dims.n != 1)
        return fac_fail(n, FAC_E_SHAPE, "x_basis must have one dim");
    const fac_value *s = n->in[FAC_BASIS_SCALE];
    const int64_t K = n->in[1]->type.dims.d[0];
    if (s && (s->type.dims.n != 1 || (s->type.dims.d[0] != K && K >= 0)))
        return fac_fail(n, FAC_E_SHAPE, "scale must have one number for each of %lld channels",
                        (long long)K);
    return true;
}

/* An operand with its numbers quantized, which the caller releases. */
static fac_array quantized(const fac_array *x, const fac_array *basis, bool positive) {
    fac_array y = *x;
    const int64_t n = fac_dims_count(&x->type.dims);
    y.f = fac_alloc((size_t)n + 1, sizeof *y.f);
    for (int64_t i = 0; i < n && y.f && !basis->f; i++) y.f[i] = x->f[i] < 0 ? -1 : 1;
    if (!y.f || !basis->f) return y;
    const fac_basis_grid g = fac_basis_grid_of(&x->type.dims, &basis->type.dims, 0);
    const int64_t each = g.channels > 1 ? g.inner : n / g.channels;
    for (int64_t c = 0; c < g.channels; c++) {
        fac_basis b;
        fac_basis_of(basis->f + c, g.channels, g.bits, positive, x->type.dtype != FAC_F64, &b);
        for (int64_t i = c * each; i < (c + 1) * each; i++)
            y.f[i] = b.level[fac_basis_find(&b, x->f[i])];
    }
    return y;
}

static void finish(const fac_ref *r) {
    const double *s = r->in[FAC_BASIS_SCALE].f, *b = r->in[2].f;
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
    fac_array of[3] = { quantized(&r->in[0], &r->in[FAC_BASIS_X], true),
                        quantized(&r->in[1], &r->in[FAC_BASIS_W], false), { .f = NULL } };
    fac_ref conv = { r->attrs, 3, 1, of, r->out };
    fac_status status = of[0].f && of[1].f ? FAC_OK : FAC_E_NOMEM;
    if (status) fac_raise(err, status, "conv2d_basis: no memory for what is quantized");
    if (!status) status = fac_conv2d_ref(&conv, err);
    if (!status) finish(r);
    fac_release(of[0].f);
    fac_release(of[1].f);
    return status;
}

static fac_value *channels(fac_value *v) { return fac_unsqueeze(v, fac_shape(1, 2)); }

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_basis_opts positive = { .positive = true };
    fac_value *xb = n->in[FAC_BASIS_X], *s = n->in[FAC_BASIS_SCALE], *b = n->in[2];
    fac_value *x = xb ? fac_quantize_basis(n->in[0], xb, &positive) : fac_binarize(n->in[0]);
    fac_value *w = fac_quantize_basis(n->in[1], n->in[FAC_BASIS_W], NULL);
    y[0] = fac_conv2d(x, w, s ? NULL : b, &((const fac_conv2d_basis_attrs *)n->attrs)->conv);
    if (!s) return;
    y[0] = fac_mul(y[0], channels(s));
    if (b) y[0] = fac_add(y[0], channels(b));
}

static void cost(const fac_node *n, fac_cost *to) { fac_conv_macs(n, n->out[0], to); }

static const fac_case cases[] = {
    { "conv2d_basis(f32[1,3,5,5], f32[4,3,3,3], -, f32{0.5}, f32[1,4]) pad=1,1,1,1", -1, 1, 1e-5 },
    { "conv2d_basis(f32[2,33,7,6], f32[18,33,3,2], f32[18], f32{0.25, 0.5}, f32[1,18], f32[18]) "
      "stride=2,1 pad=1,1,2,0", -1, 1, 1e-4 },
    { "conv2d_basis(f32[1,16,9,9], f32[32,16,3,3], f32[32], -, f32[1,32]) pad=1,1,1,1", -1, 1,
      1e-4 },
    { "conv2d_basis(f32[1,32,8,7], f32[16,16,3,3], -, f32{0.25, 0.5}, f32[2,16]) dilation=2,2 "
      "pad=2,2,2,2 groups=2", -1, 1, 1e-4 },
    { "conv2d_basis(f32[1,40,4,4], f32[9,40,1,1], -, f32{0.25, 0.5, 1}, f32[2])", -1, 2, 1e-4 },
    { "conv2d_basis(f64[1,3,5,5], f64[4,3,3,3], -, f64{0.5}, f64[2,4])", -1, 1, 1e-12 },
    { "conv2d_basis(f32[0,3,5,5], f32[4,3,3,3], -, f32{0.5}, f32[1,4])", 0, 0, 0 }, { 0 } };

#define AT(field) offsetof(fac_conv2d_basis_attrs, conv.field)
static const fac_attr table[] = {
    { "stride", FAC_A_INT, AT(stride), 2, 1, 1, INT_MAX, NULL, "height, width" },
    { "pad", FAC_A_INT, AT(pad), 4, 0, 0, INT_MAX, NULL, "top, left, bottom, right" },
    { "dilation", FAC_A_INT, AT(dilation), 2, 1, 1, INT_MAX, NULL, "distance of kernel elements" },
    { "groups", FAC_A_INT, AT(groups), 0, 1, 1, INT_MAX, NULL, "channels convolved apart" },
    { "auto_pad", FAC_A_ENUM, AT(auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { 0 } };
#undef AT

const fac_op fac_op_conv2d_basis = {
    .name = "conv2d_basis", .doc = "convolution of levels of few bits", .in = in,
        .out = fac_ports_y,
    .attrs = table, .attrs_size = sizeof(fac_conv2d_basis_attrs), .infer = infer, .ref = ref,
    .expand = expand, .cost = cost, .cases = cases, .is = FAC_OP_NO_GRAD, .layer = FAC_CLASS_CONV,
    .images = FAC_IMAGES_FIRST, .rounding = { .rule = FAC_ROUND_NONE },
};
