/* A convolution of bytes to bytes and the sum of these and others: what residual networks do
 * between two layers.  Made by src/passes/quantized/quantized_sums.c.  Has no prototype.
 *
 *     y = qlinear_add(qlinear_conv(x, w, b), z)   or, where z is first,   qlinear_add(z, ...) */
#include <limits.h>
#include "ops/conv.h"
#include "ops/qlinear_conv_add.h"
#include "ops/quant.h"

#define AT(field) offsetof(fac_qlinear_conv_add_attrs, field)
static const fac_attr table[] = {
    { "stride", FAC_A_INT, AT(conv.stride), 2, 1, 1, INT_MAX, NULL, "height, width" },
    { "pad", FAC_A_INT, AT(conv.pad), 4, 0, 0, INT_MAX, NULL, "top, left, bottom, right" },
    { "dilation", FAC_A_INT, AT(conv.dilation), 2, 1, 1, INT_MAX, NULL,
      "distance of kernel elements" },
    { "groups", FAC_A_INT, AT(conv.groups), 0, 1, 1, INT_MAX, NULL, "channels convolved apart" },
    { "auto_pad", FAC_A_ENUM, AT(conv.auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { "z_first", FAC_A_FLAG, AT(z_first), 0, 0, 0, 0, NULL, "z is the sum's first operand" },
    { 0 }
};
#undef AT

static const fac_port in[] = {
    { "x", FAC_INTS, 0 },         { "w", FAC_INTS, 0 },         { "b", FAC_INTS, FAC_OPTIONAL },
    { "x_scale", FAC_FLOATS, 0 }, { "x_zero", FAC_INTS, 0 },    { "w_scale", FAC_FLOATS, 0 },
    { "w_zero", FAC_INTS, 0 },    { "v_scale", FAC_FLOATS, 0 }, { "v_zero", FAC_INTS, 0 },
    { "z", FAC_INTS, 0 },         { "z_scale", FAC_FLOATS, 0 }, { "z_zero", FAC_INTS, 0 },
    { "y_scale", FAC_FLOATS, 0 }, { "y_zero", FAC_INTS, 0 },    { 0 }
};
static const fac_port out[] = { { "y", FAC_INTS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    static const int zeros[] = { FAC_QSUM_Z, FAC_QSUM_Z_ZERO, FAC_QSUM_Y_ZERO };
    static const int scales[] = { FAC_QSUM_Z_SCALE, FAC_QSUM_Y_SCALE };
    if (!fac_qlinear_conv_infer(n)) return false;
    for (int k = 0; k < 3; k++) {
        const int port = zeros[k];
        if (n->in[port]->type.dtype != n->out[0]->type.dtype)
            return fac_fail(n, FAC_E_DTYPE, "%s must have the dtype of v_zero", in[port].name);
        if (port != FAC_QSUM_Z && !fac_quant_scalar(n, port, in[port].name)) return false;
    }
    for (int k = 0; k < 2; k++)
        if (n->in[scales[k]]->type.dtype != FAC_F32 ||
            !fac_quant_scalar(n, scales[k], in[scales[k]].name))
            return fac_fail(n, FAC_E_DTYPE, "%s must be one f32", in[scales[k]].name);
    const fac_dims *z = &n->in[FAC_QSUM_Z]->type.dims, *y = &n->out[0]->type.dims;
    for (int k = 0; k < 4; k++)
        if (z->n != 4 || (z->d[k] >= 0 && y->d[k] >= 0 && z->d[k] != y->d[k]))
            return fac_fail(n, FAC_E_SHAPE, "z must have the dims of the convolution's result");
    return true;
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_qlinear_conv_add_attrs *a = n->attrs;
    fac_value *const *x = n->in;
    const fac_qlinear_scales of_conv = { x[3], x[4], x[5], x[6], x[7], x[8] };
    fac_value *v = fac_qlinear_conv(x[0], x[1], x[2], &of_conv, &a->conv);
    fac_value *const both[2][3] = { { v, x[7], x[8] }, { x[9], x[10], x[11] } };
    fac_value *const *l = both[a->z_first], *const *r = both[!a->z_first];
    const fac_qlinear_scales of_sum = { l[1], l[2], r[1], r[2], x[12], x[13] };
    y[0] = fac_qlinear_add(l[0], r[0], &of_sum);
}

#define SCALES ", f32{0.02}, u8{7}, f32{0.01}, i8{0}, f32{0.5}, u8{9}"
#define SUM ", f32{0.3}, u8{3}, f32{0.6}, u8{11})"
static const fac_case cases[] = {
    { "qlinear_conv_add(u8[1,3,5,5], i8[4,3,3,3], i32[4]" SCALES ", u8[1,4,5,5]" SUM " pad=1,1,1,1",
      -99, 99, 0 },
    { "qlinear_conv_add(u8[2,9,7,6], i8[37,9,1,1], -" SCALES ", u8[2,37,4,3]" SUM
      " stride=2,2 z_first=1",
      -99, 99, 0 },
    { "qlinear_conv_add(u8[1,8,9,7], i8[8,1,3,3], i32[8]" SCALES ", u8[1,8,9,7]" SUM
      " pad=1,1,1,1 groups=8",
      -99, 99, 0 },
    { "qlinear_conv_add(i8[1,5,4,4], i8[3,5,1,1], -, f32{0.02}, i8{-3}, f32{0.01, 0.1, 0.02}, "
      "i8{1, 0, -2}, f32{0.5}, i8{-9}, i8[1,3,4,4], f32{0.25}, i8{4}, f32{0.5}, i8{-1})",
      -99, 99, 0 },
    { "qlinear_conv_add(u8[0,3,5,5], i8[4,3,3,3], -" SCALES ", u8[0,4,3,3]" SUM, 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_qlinear_conv_add;
const fac_op fac_op_qlinear_conv_add = {
    .name = "qlinear_conv_add",
    .doc = "a convolution of bytes to bytes, and others added",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(fac_qlinear_conv_add_attrs),
    .infer = infer,
    .expand = expand,
    .cost = fac_conv_cost,
    .cases = cases,
    .is = FAC_OP_NO_GRAD | FAC_OP_TYPED,
    .rounding = { .rule = FAC_ROUND_NONE },
};
