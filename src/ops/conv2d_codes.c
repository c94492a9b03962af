/* conv2d_basis whose result is quantized for the next layer: what stays between layers is bits.
 * Made by src/passes/quantized/bits_between.c.  Has no prototype.
 *
 *     y = conv2d_basis(x, bits, b, x_basis, w_basis, scale) + z, of y_relu what is above 0
 *     q = the codes of quantize_basis(y, y_basis), or of binarize(y) where y_basis is absent
 *
 *   z N,K,P,Q or absent   y_basis A, positive digits   q u32 A,N,P,Q,words: see conv_basis.h
 *   q_relu: codes of y below 0 are those of 0.   y costs nothing where nothing reads it.
 *   limits: code_limits of the same numbers, of one base of weights without z; kernels that make no
 * y may compare with these instead. */
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/conv_basis.h"

static const fac_port in[] = { { "x", FAC_NUMBERS, 0 },
                               { "bits", FAC_INTS, 0 },
                               { "b", FAC_FLOATS, FAC_OPTIONAL },
                               { "x_basis", FAC_FLOATS, FAC_OPTIONAL },
                               { "w_basis", FAC_FLOATS, 0 },
                               { "scale", FAC_FLOATS, FAC_OPTIONAL },
                               { "z", FAC_FLOATS, FAC_OPTIONAL },
                               { "y_basis", FAC_FLOATS, FAC_OPTIONAL },
                               { "limits", FAC_INTS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = { { "q", FAC_INTS, 0 }, { "y", FAC_FLOATS, FAC_OPTIONAL }, { 0 } };

static bool infer(fac_node *n) {
    const fac_value *z = n->in[FAC_CB_Z], *basis = n->in[FAC_CB_Y_BASIS];
    const fac_value *limits = n->in[FAC_CB_LIMITS];
    if (!fac_conv_basis_infer(n)) return false;
    const fac_type y = n->out[0]->type;
    if (z && (z->type.dtype != y.dtype || !fac_dims_equal(&z->type.dims, &y.dims)))
        return fac_fail(n, FAC_E_SHAPE, "z must be like the result");
    if (basis && (basis->type.dims.n != 1 || basis->type.dims.d[0] < 1 ||
                  basis->type.dims.d[0] > FAC_BASIS_BITS))
        return fac_fail(n, FAC_E_SHAPE, "y_basis must have one dim of 1 to %d numbers",
                        FAC_BASIS_BITS);
    if (basis && basis->type.dtype != y.dtype)
        return fac_fail(n, FAC_E_DTYPE, "y_basis and w_basis differ in dtype");
    const int64_t planes = basis ? basis->type.dims.d[0] : 1;
    const fac_dims *d = &y.dims;
    const fac_dims want = fac_shape((int64_t)1 << planes, d->d[1]);
    if (limits && (limits->type.dtype != FAC_I32 || !fac_dims_equal(&limits->type.dims, &want)))
        return fac_fail(n, FAC_E_SHAPE, "limits must be i32, a row for each level");
    n->out[0]->type =
        (fac_type){ FAC_U32, fac_shape(planes, d->d[0], d->d[2], d->d[3], fac_words_of(d->d[1])) };
    n->out[1]->type = y;
    return true;
}

static void finish(const fac_ref *r, const fac_array *y) {
    const fac_conv_basis_attrs *a = r->attrs;
    const double *z = r->in[FAC_CB_Z].f;
    const int64_t n = fac_dims_count(&y->type.dims);
    for (int64_t i = 0; i < n; i++) {
        if (z) y->f[i] += z[i];
        if (a->y_relu && y->f[i] < 0) y->f[i] = 0;
    }
}

static void encode(const fac_ref *r, const fac_array *y) {
    const fac_conv_basis_attrs *a = r->attrs;
    const fac_dims *d = &y->type.dims, *to = &r->out[0].type.dims;
    const bool single = y->type.dtype != FAC_F64;
    const int64_t plane = d->d[2] * d->d[3], each = d->d[1] * plane, n = fac_dims_count(d);
    const int64_t words = fac_dims_count(to);
    fac_basis b;
    fac_code_levels(&r->in[FAC_CB_Y_BASIS], single, &b);
    for (int64_t i = 0; i < words; i++) r->out[0].i[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = single ? (double)(float)y->f[i] : y->f[i];
        if (a->q_relu && v < 0) v = 0;
        const unsigned code = fac_code_of(&b, v);
        const int64_t c = i % each / plane, row = i % plane / d->d[3], column = i % d->d[3];
        for (int j = 0; j < b.bits; j++) {
            const int64_t at = fac_code_at(to, j, i / each, row, column, c / FAC_WORD_BITS);
            r->out[0].i[at] |= (int64_t)(code >> j & 1) << c % FAC_WORD_BITS;
        }
    }
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_conv_basis_attrs *a = r->attrs;
    const fac_dims image = fac_conv_basis_image(&r->in[FAC_CB_X].type, a);
    const fac_dims *q = &r->out[0].type.dims;
    const fac_dims d = fac_shape(image.d[0], a->dims.d[0], q->d[2], q->d[3]);
    fac_array y = { .type = { r->in[FAC_CB_W_BASIS].type.dtype, d }, .f = r->out[1].f };
    double *own = y.f ? NULL : fac_alloc((size_t)fac_dims_count(&d) + 1, sizeof *own);
    if (!y.f && !own) return fac_raise(err, FAC_E_NOMEM, "conv2d_codes: no memory for its sums");
    if (own) y.f = own;
    const fac_status status = fac_conv_basis_ref(r, &y, err);
    if (!status) finish(r, &y);
    if (!status) encode(r, &y);
    fac_release(own);
    return status;
}

static const fac_case cases[] = {
    { "conv2d_codes(f32[1,3,5,5], u8[1,4,4], -, f32{0.5}, f32[1,4], -, -, f32{0.25}) pad=1,1,1,1 "
      "dims=4,3,3,3",
      -1, 1, 1e-5 },
    { "conv2d_codes(u32[2,2,6,5,2], u8[2,40,41], f32[40], f32{0.5, 1}, f32[2,40], f32[40], "
      "f32[2,40,6,5], f32{0.5, 1}) pad=1,1,1,1 dims=40,36,3,3 y_relu",
      0, 15, 1e-4 },
    { "conv2d_codes(u32[1,1,5,5,1], u8[1,6,36], -, -, f32[1,6]) pad=1,1,1,1 dims=6,32,3,3", 0, 255,
      1e-4 },
    { "conv2d_codes(f32[1,16,9,9], u8[1,32,18], f32[32], -, f32[1,32], -, f32[1,32,9,9]) "
      "pad=1,1,1,1 dims=32,16,3,3 q_relu",
      -1, 1, 1e-4 },
    { "conv2d_codes(f64[1,3,5,5], u8[2,4,4], -, f64{0.5}, f64[2,4], -, -, f64{0.5}) dims=4,3,3,3",
      -1, 1, 1e-12 },
    { "conv2d_codes(f32[0,3,5,5], u8[1,4,4], -, f32{0.5}, f32[1,4]) dims=4,3,3,3", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_conv2d_codes = {
    .name = "conv2d_codes",
    .doc = "convolution of levels of few bits, quantized again",
    .in = in,
    .out = out,
    .attrs = fac_conv_basis_table,
    .attrs_size = sizeof(fac_conv_basis_attrs),
    .infer = infer,
    .ref = ref,
    .cost = fac_conv_basis_cost,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .layer = FAC_CLASS_CONV,
    .rounding = { .rule = FAC_ROUND_NONE },
};
