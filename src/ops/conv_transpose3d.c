/* Three-dimensional transposed convolution. */
#include <limits.h>
#include "ops/conv_transpose.h"

#if FAC_INTERFACE
/* As fac_conv_transpose2d with a depth in front: x N,C,D,H,W   w C,K/groups,T,R,S   b K or NULL.
 * f32 f64 f16 bf16. */
typedef struct fac_conv_transpose3d_opts {
    int64_t stride[3];      /* 0 = 1 */
    int64_t pad[6];         /* front, top, left, back, bottom, right: cut off from y */
    int64_t dilation[3];    /* 0 = 1 */
    int64_t output_pad[3];  /* added after */
    int64_t output_size[3]; /* of y; 0: by the formula.  Given, it decides the padding, the odd one
                               in front */
    int64_t groups;         /* 0 = 1 */
    int auto_pad;           /* fac_auto_pad; SAME: y has in stride elements */
} fac_conv_transpose3d_opts;
fac_value *fac_conv_transpose3d(fac_value *x, fac_value *w, fac_value *b,
                                const fac_conv_transpose3d_opts *opts);
#endif

#define AT(field) offsetof(fac_conv_transpose3d_opts, field)
static const fac_attr table[] = {
    { "stride", FAC_A_INT, AT(stride), 3, 1, 1, INT_MAX, NULL, "depth, height, width" },
    { "pad", FAC_A_INT, AT(pad), 6, 0, 0, INT_MAX, NULL, "front, top, left, back, bottom, right" },
    { "dilation", FAC_A_INT, AT(dilation), 3, 1, 1, INT_MAX, NULL, "distance of kernel elements" },
    { "output_pad", FAC_A_INT, AT(output_pad), 3, 0, 0, INT_MAX, NULL, "added at the end" },
    { "output_size", FAC_A_INT, AT(output_size), 3, 0, 0, INT_MAX, NULL,
      "of y; 0: by the formula" },
    { "groups", FAC_A_INT, AT(groups), 0, 1, 1, INT_MAX, NULL, "channels convolved apart" },
    { "auto_pad", FAC_A_ENUM, AT(auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { 0 }
};
#undef AT

static const fac_case cases[] = {
    { "conv_transpose3d(f32[1,2,3,4,3], f32[2,3,2,3,3], f32[3]) stride=2,1,2 pad=1,0,1,0,1,1", -1,
      1, 1e-5 },
    { "conv_transpose3d(f32[1,2,3,2,3], f32[2,1,2,2,2]) groups=2 dilation=1,2,1", -1, 1, 1e-5 },
    { 0 }
};

extern const fac_op fac_op_conv_transpose3d;
const fac_op fac_op_conv_transpose3d = {
    .name = "conv_transpose3d",
    .doc = "three-dimensional transposed convolution",
    .in = fac_conv_in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_conv_transpose3d_opts),
    .infer = fac_conv_transpose_infer,
    .ref = fac_conv_transpose3d_ref,
    .expand = fac_conv_transpose_expand,
    .expands = fac_conv_transpose_expands,
    .grad = fac_conv_transpose_grad,
    .cost = fac_conv_transpose_cost,
    .save = fac_conv_transpose_save,
    .cases = cases,
    .is = FAC_OP_RING,
    .layer = FAC_CLASS_CONV_TRANSPOSE,
    .torch = "ConvTranspose3d",
    .mixed = FAC_MIXED_PRODUCT,
    .rounding = { .rule = FAC_ROUND_PRODUCT },
};
fac_value *fac_conv_transpose3d(fac_value *x, fac_value *w, fac_value *b,
                                const fac_conv_transpose3d_opts *opts) {
    return fac_emit(&fac_op_conv_transpose3d, opts, 3, (fac_value *[]){ x, w, b });
}
