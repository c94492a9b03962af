/* Three-dimensional convolution. */
#include <limits.h>
#include "ops/conv.h"

#if FAC_INTERFACE
/* As fac_conv2d with a depth in front: x N,C,D,H,W   w K,C/groups,T,R,S   b K or NULL   y
 * N,K,O,P,Q.  f32 f64 f16 bf16. */
typedef struct fac_conv3d_opts {
    int64_t stride[3];   /* 0 = 1 */
    int64_t pad[6];      /* front, top, left, back, bottom, right */
    int64_t dilation[3]; /* 0 = 1 */
    int64_t groups;      /* 0 = 1 */
    int auto_pad;        /* fac_auto_pad; pad is ignored unless it is FAC_AUTO_NONE */
} fac_conv3d_opts;
fac_value *fac_conv3d(fac_value *x, fac_value *w, fac_value *b, const fac_conv3d_opts *opts);
#endif

#define AT(field) offsetof(fac_conv3d_opts, field)
const fac_attr fac_conv3d_table[] = {
    { "stride", FAC_A_INT, AT(stride), 3, 1, 1, INT_MAX, NULL, "depth, height, width" },
    { "pad", FAC_A_INT, AT(pad), 6, 0, 0, INT_MAX, NULL, "front, top, left, back, bottom, right" },
    { "dilation", FAC_A_INT, AT(dilation), 3, 1, 1, INT_MAX, NULL, "distance of kernel elements" },
    { "groups", FAC_A_INT, AT(groups), 0, 1, 1, INT_MAX, NULL, "channels convolved apart" },
    { "auto_pad", FAC_A_ENUM, AT(auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { 0 }
};
#undef AT

static const fac_case cases[] = {
    { "conv3d(f32[1,2,5,6,7], f32[3,2,2,3,3], f32[3]) stride=1,2,1 pad=1,0,1,0,1,1", -1, 1, 1e-5 },
    { "conv3d(f32[2,4,6,5,5], f32[4,2,3,1,2]) dilation=2,1,3 groups=2", -1, 1, 1e-5 },
    { "conv3d(f32[1,1,4,4,4], f32[2,1,3,3,3]) stride=2,2,2 auto_pad=same_upper", -1, 1, 1e-5 },
    { "conv3d(f32[0,1,4,4,4], f32[2,1,3,3,3])", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_conv3d;
const fac_op fac_op_conv3d = {
    .name = "conv3d",
    .doc = "three-dimensional convolution (cross-correlation) with zero padding",
    .in = fac_conv_in,
    .out = fac_ports_y,
    .attrs = fac_conv3d_table,
    .attrs_size = sizeof(fac_conv3d_opts),
    .infer = fac_conv_infer,
    .ref = fac_conv3d_ref,
    .grad = fac_conv_grad,
    .cost = fac_conv_cost,
    .save = fac_conv_save,
    .cases = cases,
    .is = FAC_OP_RING,
    .layer = FAC_CLASS_CONV,
    .torch = "Conv3d",
    .mixed = FAC_MIXED_PRODUCT,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_PRODUCT },
};
fac_value *fac_conv3d(fac_value *x, fac_value *w, fac_value *b, const fac_conv3d_opts *opts) {
    return fac_emit(&fac_op_conv3d, opts, 3, (fac_value *[]){ x, w, b });
}
