/* A convolution of numbers that are quantized to levels of few bits, with weights that are planes
 * of bits.  Made by src/passes/quantized/low_bits.c; kernels multiply bits.  Has no prototype.
 *
 *     y = conv2d(quantize_basis(x, x_basis), unpack_basis(bits, w_basis)) scale + b
 *
 *   x N,C,H,W, or relu(x) of it, or codes u32 A,N,H,W,words: see conv_basis.h   bits u8 M,K,B: see
 *   pack_basis   x_basis A, positive digits; absent: binarize(x)   w_basis M,K   scale, b K or
 *   absent.   Padding is the number 0, whatever the levels. */
#include "facula/ops.h"
#include "op_list.h"
#include "ops/constant.h"
#include "ops/conv_basis.h"

static const fac_port in[] = { { "x", FAC_NUMBERS, 0 },
                               { "bits", FAC_INTS, 0 },
                               { "b", FAC_FLOATS, FAC_OPTIONAL },
                               { "x_basis", FAC_FLOATS, FAC_OPTIONAL },
                               { "w_basis", FAC_FLOATS, 0 },
                               { "scale", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };

static fac_status ref(const fac_ref *r, fac_error *err) {
    return fac_conv_basis_ref(r, &r->out[0], err);
}

static fac_value *channels(fac_value *v) { return fac_unsqueeze(v, fac_shape(1, 2)); }

/* The digits A,N,C,H,W of codes: bit c of a word is  word / 2^c  mod 2. */
static fac_value *digits(fac_value *x, int64_t C, fac_dtype dtype) {
    fac_graph *g = x->graph;
    const fac_dims d = x->type.dims;
    double power[FAC_WORD_BITS];
    for (int k = 0; k < FAC_WORD_BITS; k++) power[k] = (double)((int64_t)1 << k);
    fac_value *powers = fac_constant(g, FAC_I64, fac_shape(FAC_WORD_BITS), power);
    fac_value *bits = fac_div(fac_unsqueeze(fac_cast(x, FAC_I64), fac_shape(5)), powers);
    bits = fac_mod(bits, fac_number(g, FAC_I64, 2));
    const int64_t all = d.d[4] * FAC_WORD_BITS;
    bits = fac_reshape_sizes(bits, fac_shape(d.d[0], d.d[1], d.d[2], d.d[3], all));
    bits = fac_transpose(fac_slice(bits, 4, 0, C, 1), fac_shape(0, 1, 4, 2, 3));
    return fac_cast(bits, dtype);
}

/* Numbers of codes: one digit after the other, as the levels are made. */
static fac_value *numbers(const fac_node *n) {
    const fac_conv_basis_attrs *a = n->attrs;
    const fac_dtype dtype = n->in[FAC_CB_W_BASIS]->type.dtype;
    fac_value *x = n->in[FAC_CB_X], *basis = n->in[FAC_CB_X_BASIS], *sum = NULL;
    fac_value *all = digits(x, a->dims.d[1] * a->conv.groups, dtype);
    if (!basis) {
        fac_value *one = fac_number(x->graph, dtype, 1);
        return fac_sub(fac_mul(fac_squeeze(all, fac_shape(0)), fac_add(one, one)), one);
    }
    for (int64_t j = 0; j < basis->type.dims.d[0]; j++) {
        fac_value *part = fac_squeeze(fac_slice(all, 0, j, j + 1, 1), fac_shape(0));
        part = fac_mul(part, fac_slice(basis, 0, j, j + 1, 1));
        sum = sum ? fac_add(sum, part) : part;
    }
    return sum;
}

static fac_value *quantized(const fac_node *n) {
    const fac_conv_basis_attrs *a = n->attrs;
    const fac_basis_opts positive = { .positive = true };
    fac_value *x = n->in[FAC_CB_X], *xb = n->in[FAC_CB_X_BASIS];
    if (x->type.dtype == FAC_U32) return numbers(n);
    if (a->relu) x = fac_relu(x);
    return xb ? fac_quantize_basis(x, xb, &positive) : fac_binarize(x);
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_conv_basis_attrs *a = n->attrs;
    fac_value *s = n->in[FAC_CB_SCALE], *b = n->in[FAC_CB_B];
    fac_value *w = fac_unpack_basis(n->in[FAC_CB_BITS], n->in[FAC_CB_W_BASIS], a->dims);
    y[0] = fac_conv2d(quantized(n), w, s ? NULL : b, &a->conv);
    if (s) y[0] = fac_mul(y[0], channels(s));
    if (s && b) y[0] = fac_add(y[0], channels(b));
}

static const fac_case cases[] = {
    { "conv2d_basis(f32[1,3,5,5], u8[1,4,4], -, f32{0.5}, f32[1,4]) pad=1,1,1,1 dims=4,3,3,3", -1,
      1, 1e-5 },
    { "conv2d_basis(f32[2,33,7,6], u8[1,18,25], f32[18], f32{0.25, 0.5}, f32[1,18], f32[18]) "
      "stride=2,1 pad=1,1,2,0 dims=18,33,3,2",
      -1, 1, 1e-4 },
    { "conv2d_basis(f32[1,16,9,9], u8[1,32,18], f32[32], -, f32[1,32]) pad=1,1,1,1 "
      "dims=32,16,3,3",
      -1, 1, 1e-4 },
    { "conv2d_basis(f32[1,32,8,7], u8[2,16,18], -, f32{0.25, 0.5}, f32[2,16]) dilation=2,2 "
      "pad=2,2,2,2 groups=2 dims=16,16,3,3 relu",
      -1, 1, 1e-4 },
    { "conv2d_basis(f32[1,40,4,4], u8[3,9,5], -, f32{0.25, 0.5, 1}, f32[3,9]) dims=9,40,1,1", -1, 2,
      1e-4 },
    { "conv2d_basis(f64[1,3,5,5], u8[2,4,4], -, f64{0.5}, f64[2,4]) dims=4,3,3,3", -1, 1, 1e-12 },
    { "conv2d_basis(u32[2,2,6,5,2], u8[1,8,41], f32[8], f32{0.5, 1}, f32[1,8]) pad=1,1,1,1 "
      "dims=8,36,3,3",
      0, 15, 1e-4 },
    { "conv2d_basis(u32[1,1,5,5,1], u8[2,6,36], -, -, f32[2,6]) pad=1,1,1,1 dims=6,32,3,3", 0, 3,
      1e-4 },
    { "conv2d_basis(f32[0,3,5,5], u8[1,4,4], -, f32{0.5}, f32[1,4]) dims=4,3,3,3", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_conv2d_basis = {
    .name = "conv2d_basis",
    .doc = "convolution of levels of few bits",
    .in = in,
    .out = fac_ports_y,
    .attrs = fac_conv_basis_table,
    .attrs_size = sizeof(fac_conv_basis_attrs),
    .infer = fac_conv_basis_infer,
    .ref = ref,
    .expand = expand,
    .cost = fac_conv_basis_cost,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .layer = FAC_CLASS_CONV,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_NONE },
};
