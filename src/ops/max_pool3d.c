/* Three-dimensional max pooling. */
#include "ops/pool_grad.h"

#if FAC_INTERFACE
/* As fac_max_pool2d: x N,C,D,H,W, kernel depth, height, width. */
fac_value *fac_max_pool3d(fac_value *x, const int64_t kernel[3], const fac_pool3d_opts *opts);
#endif

static const fac_case cases[] = {
    { "max_pool3d(f32[1,2,5,6,7]) kernel=2,3,2 stride=1,2,3 pad=1,0,1,0,1,1", -1, 1, 0 },
    { "max_pool3d(f32[1,2,5,6,7]) kernel=2,3,2 stride=2,2,3 pad=1,0,1,0,1,1 ceil_mode column_major",
      -1, 1, 0 },
    { "max_pool3d(i8[1,1,7,7,7]) kernel=2,2,2 stride=1,1,1 dilation=2,3,1", -128, 127, 0 },
    { 0 }
};

extern const fac_op fac_op_max_pool3d;
const fac_op fac_op_max_pool3d = {
    .name = "max_pool3d",
    .doc = "the largest element of each three-dimensional window",
    .in = fac_max_pool_in,
    .out = fac_max_pool_out,
    .attrs = fac_pool3d_table,
    .attrs_size = sizeof(fac_pool3d_attrs),
    .infer = fac_pool_infer,
    .ref = fac_max_pool3d_ref,
    .grad = fac_max_pool_grad,
    .cost = fac_pool_cost,
    .save = fac_pool_save,
    .cases = cases,
    .is = FAC_OP_PICKS,
    .layer = FAC_CLASS_MAX_POOL,
    .torch = "MaxPool3d",
    .mixed = FAC_MIXED_FOLLOWS,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_LARGEST },
};
fac_value *fac_max_pool3d(fac_value *x, const int64_t kernel[3], const fac_pool3d_opts *opts) {
    fac_pool3d_attrs a = { .kernel = { kernel[0], kernel[1], kernel[2] } };
    if (opts) a.o = *opts;
    return fac_emit(&fac_op_max_pool3d, &a, 1, &x);
}
