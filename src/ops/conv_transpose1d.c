/* One-dimensional transposed convolution: two-dimensional with a height of one. */
#include <limits.h>
#include "ops/conv_transpose.h"

#if FAC_INTERFACE
/* As fac_conv_transpose2d: x N,C,W   w C,K/groups,S   b K or NULL   y N,K,Q.  f32 f64 f16 bf16. */
typedef struct fac_conv_transpose1d_opts {
    int64_t stride;      /* 0 = 1 */
    int64_t pad[2];      /* left, right: cut off from y */
    int64_t dilation;    /* 0 = 1 */
    int64_t output_pad;  /* added after */
    int64_t output_size; /* of y; 0: by the formula.  Given, it decides the padding, the odd one in
                            front */
    int64_t groups;      /* 0 = 1 */
    int auto_pad;        /* fac_auto_pad; SAME: y has in stride elements */
} fac_conv_transpose1d_opts;
fac_value *fac_conv_transpose1d(fac_value *x, fac_value *w, fac_value *b,
                                const fac_conv_transpose1d_opts *opts);
#endif

#define AT(field) offsetof(fac_conv_transpose1d_opts, field)
static const fac_attr table[] = {
    { "stride", FAC_A_INT, AT(stride), 0, 1, 1, INT_MAX, NULL, "distance of inputs in y" },
    { "pad", FAC_A_INT, AT(pad), 2, 0, 0, INT_MAX, NULL, "left, right" },
    { "dilation", FAC_A_INT, AT(dilation), 0, 1, 1, INT_MAX, NULL, "distance of kernel elements" },
    { "output_pad", FAC_A_INT, AT(output_pad), 0, 0, 0, INT_MAX, NULL, "added at the end" },
    { "output_size", FAC_A_INT, AT(output_size), 0, 0, 0, INT_MAX, NULL,
      "of y; 0: by the formula" },
    { "groups", FAC_A_INT, AT(groups), 0, 1, 1, INT_MAX, NULL, "channels convolved apart" },
    { "auto_pad", FAC_A_ENUM, AT(auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { 0 }
};
#undef AT

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_conv_transpose1d_opts *a = n->attrs;
    fac_dims height = fac_shape(2);
    fac_conv_transpose2d_opts o = {
        { 1, a->stride },     { 0, a->pad[0], 0, a->pad[1] }, { 1, a->dilation },
        { 0, a->output_pad }, { 0, a->output_size },          a->groups,
        a->auto_pad
    };
    fac_value *x = fac_unsqueeze(n->in[0], height), *w = fac_unsqueeze(n->in[1], height);
    out[0] = fac_squeeze(fac_conv_transpose2d(x, w, n->in[2], &o), height);
}

static const fac_case cases[] = {
    { "conv_transpose1d(f32[2,3,5], f32[3,2,4], f32[2]) stride=3 pad=1,2 output_pad=1", -1, 1,
      1e-5 },
    { "conv_transpose1d(f32[1,4,5], f32[4,1,3]) groups=2 dilation=2", -1, 1, 1e-5 },
    { 0 }
};

extern const fac_op fac_op_conv_transpose1d;
const fac_op fac_op_conv_transpose1d = {
    .name = "conv_transpose1d",
    .doc = "one-dimensional transposed convolution",
    .in = fac_conv_in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_conv_transpose1d_opts),
    .infer = fac_conv_transpose_infer,
    .expand = expand,
    .cost = fac_conv_transpose_cost,
    .save = fac_conv_transpose_save,
    .cases = cases,
    .layer = FAC_CLASS_CONV_TRANSPOSE,
    .torch = "ConvTranspose1d",
    .mixed = FAC_MIXED_PRODUCT,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_conv_transpose1d(fac_value *x, fac_value *w, fac_value *b,
                                const fac_conv_transpose1d_opts *opts) {
    return fac_emit(&fac_op_conv_transpose1d, opts, 3, (fac_value *[]){ x, w, b });
}
