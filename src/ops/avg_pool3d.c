/* Three-dimensional average pooling. */
#include "ops/pool_grad.h"

#if FAC_INTERFACE
/* Sliding windows over N,C,D,H,W; fields as in fac_pool2d_opts. */
typedef struct fac_pool3d_opts {
    int64_t stride[3];   /* 0 = kernel */
    int64_t pad[6];      /* front, top, left, back, bottom, right */
    int64_t dilation[3]; /* 0 = 1 */
    int auto_pad;
    bool ceil_mode, count_include_pad;
} fac_pool3d_opts;

/* As fac_avg_pool2d: x N,C,D,H,W, kernel depth, height, width.  f32 f64 f16 bf16. */
fac_value *fac_avg_pool3d(fac_value *x, const int64_t kernel[3], const fac_pool3d_opts *opts);
#endif

static const fac_case cases[] = {
    { "avg_pool3d(f32[1,2,5,6,7]) kernel=2,3,2 stride=1,2,3 pad=1,0,1,0,1,1", -1, 1, 1e-6 },
    { "avg_pool3d(f32[1,2,5,6,7]) kernel=2,3,2 stride=2,2,3 pad=1,0,1,0,1,1 ceil_mode "
      "count_include_pad",
      -1, 1, 1e-6 },
    { "avg_pool3d(f32[1,1,7,7,7]) kernel=2,2,2 stride=1,1,1 dilation=2,3,1", -1, 1, 1e-6 },
    { 0 }
};

extern const fac_op fac_op_avg_pool3d;
const fac_op fac_op_avg_pool3d = {
    .name = "avg_pool3d",
    .doc = "the mean of each three-dimensional window",
    .in = fac_ports_x,
    .out = fac_ports_y,
    .attrs = fac_pool3d_table,
    .attrs_size = sizeof(fac_pool3d_attrs),
    .infer = fac_pool_infer,
    .ref = fac_avg_pool3d_ref,
    .grad = fac_avg_pool_grad,
    .cost = fac_pool_cost,
    .save = fac_pool_save,
    .cases = cases,
    .define = fac_avg_pool_define,
    .layer = FAC_CLASS_AVG_POOL,
    .torch = "AvgPool3d",
    .mixed = FAC_MIXED_FOLLOWS,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_SUM },
};
fac_value *fac_avg_pool3d(fac_value *x, const int64_t kernel[3], const fac_pool3d_opts *opts) {
    fac_pool3d_attrs a = { .kernel = { kernel[0], kernel[1], kernel[2] } };
    if (opts) a.o = *opts;
    return fac_emit(&fac_op_avg_pool3d, &a, 1, &x);
}
