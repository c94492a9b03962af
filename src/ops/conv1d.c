/* One-dimensional convolution: two-dimensional with a height of one. */
#include <limits.h>
#include "ops/conv.h"

#if FAC_INTERFACE
/* y[n,k,q] = b[k] + sum over c,s of x[n, c', q stride + s dilation - pad] w[k,c,s];  x N,C,W  w
 * K,C/groups,S  b K or NULL f32 f64 f16 bf16.  Errors as fac_conv2d. */
typedef struct fac_conv1d_opts {
    int64_t stride;   /* 0 = 1 */
    int64_t pad[2];   /* left, right */
    int64_t dilation; /* 0 = 1 */
    int64_t groups;   /* 0 = 1 */
    int auto_pad;     /* fac_auto_pad; pad is ignored unless it is FAC_AUTO_NONE */
} fac_conv1d_opts;
fac_value *fac_conv1d(fac_value *x, fac_value *w, fac_value *b, const fac_conv1d_opts *opts);
#endif

#define AT(field) offsetof(fac_conv1d_opts, field)
static const fac_attr table[] = {
    { "stride", FAC_A_INT, AT(stride), 0, 1, 1, INT_MAX, NULL, "distance of outputs" },
    { "pad", FAC_A_INT, AT(pad), 2, 0, 0, INT_MAX, NULL, "left, right" },
    { "dilation", FAC_A_INT, AT(dilation), 0, 1, 1, INT_MAX, NULL, "distance of kernel elements" },
    { "groups", FAC_A_INT, AT(groups), 0, 1, 1, INT_MAX, NULL, "channels convolved apart" },
    { "auto_pad", FAC_A_ENUM, AT(auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { 0 }
};
#undef AT

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_conv1d_opts *a = n->attrs;
    fac_dims height = fac_shape(2);
    fac_conv2d_opts o = {
        { 1, a->stride }, { 0, a->pad[0], 0, a->pad[1] }, { 1, a->dilation }, a->groups, a->auto_pad
    };
    fac_value *x = fac_unsqueeze(n->in[0], height), *w = fac_unsqueeze(n->in[1], height);
    out[0] = fac_squeeze(fac_conv2d(x, w, n->in[2], &o), height);
}

static const fac_case cases[] = {
    { "conv1d(f32[2,3,10], f32[4,3,3], f32[4]) stride=2 pad=1,2", -1, 1, 1e-5 },
    { "conv1d(f32[1,4,33], f32[6,2,5]) dilation=3 groups=2", -1, 1, 1e-5 },
    { "conv1d(f32[1,2,9], f32[3,2,4]) stride=2 auto_pad=same_lower", -1, 1, 1e-5 },
    { "conv1d(f32[0,2,9], f32[3,2,4])", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_conv1d;
const fac_op fac_op_conv1d = {
    .name = "conv1d",
    .doc = "one-dimensional convolution (cross-correlation) with zero padding",
    .in = fac_conv_in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_conv1d_opts),
    .infer = fac_conv_infer,
    .expand = expand,
    .cost = fac_conv_cost,
    .save = fac_conv_save,
    .cases = cases,
    .layer = FAC_CLASS_CONV,
    .torch = "Conv1d",
    .mixed = FAC_MIXED_PRODUCT,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_PRODUCT },
};
fac_value *fac_conv1d(fac_value *x, fac_value *w, fac_value *b, const fac_conv1d_opts *opts) {
    return fac_emit(&fac_op_conv1d, opts, 3, (fac_value *[]){ x, w, b });
}
