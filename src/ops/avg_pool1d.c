/* One-dimensional average pooling: two-dimensional with a height of one. */
#include "ops/pool.h"

#if FAC_INTERFACE
/* Sliding windows over N,C,W; fields as in fac_pool2d_opts. */
typedef struct fac_pool1d_opts {
    int64_t stride;   /* 0 = kernel */
    int64_t pad[2];   /* left, right */
    int64_t dilation; /* 0 = 1 */
    int auto_pad;
    bool ceil_mode, count_include_pad;
} fac_pool1d_opts;

/* As fac_avg_pool2d: x N,C,W -> y N,C,Q.  f32 f64 f16 bf16. */
fac_value *fac_avg_pool1d(fac_value *x, int64_t kernel, const fac_pool1d_opts *opts);
#endif

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_pool1d_attrs *a = n->attrs;
    fac_dims height = fac_shape(2);
    fac_pool2d_opts o = { { 1, a->o.stride },   { 0, a->o.pad[0], 0, a->o.pad[1] },
                          { 1, a->o.dilation }, a->o.auto_pad,
                          a->o.ceil_mode,       a->o.count_include_pad };
    out[0] = fac_squeeze(fac_avg_pool2d(fac_unsqueeze(n->in[0], height), 1, a->kernel, &o), height);
}

static const fac_case cases[] = {
    { "avg_pool1d(f32[1,3,11]) kernel=2", -1, 1, 1e-6 },
    { "avg_pool1d(f32[2,3,10]) kernel=3 stride=2 pad=1,2 ceil_mode", -1, 1, 1e-6 },
    { "avg_pool1d(f32[1,2,14]) kernel=3 stride=1 dilation=3 pad=2,2 count_include_pad", -1, 1,
      1e-6 },
    { 0 }
};

extern const fac_op fac_op_avg_pool1d;
const fac_op fac_op_avg_pool1d = {
    .name = "avg_pool1d",
    .doc = "the mean of each window of a row",
    .in = fac_ports_x,
    .out = fac_ports_y,
    .attrs = fac_pool1d_table,
    .attrs_size = sizeof(fac_pool1d_attrs),
    .infer = fac_pool_infer,
    .expand = expand,
    .cost = fac_pool_cost,
    .save = fac_pool_save,
    .cases = cases,
    .layer = FAC_CLASS_AVG_POOL,
    .torch = "AvgPool1d",
    .mixed = FAC_MIXED_FOLLOWS,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_SUM },
};
fac_value *fac_avg_pool1d(fac_value *x, int64_t kernel, const fac_pool1d_opts *opts) {
    fac_pool1d_attrs a = { .kernel = kernel };
    if (opts) a.o = *opts;
    return fac_emit(&fac_op_avg_pool1d, &a, 1, &x);
}
