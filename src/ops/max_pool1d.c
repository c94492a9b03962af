/* One-dimensional max pooling: two-dimensional with a height of one. */
#include "ops/pool.h"

#if FAC_INTERFACE
/* As fac_max_pool2d: x N,C,W -> y N,C,Q, and the indices. */
fac_value *fac_max_pool1d(fac_value *x, int64_t kernel, const fac_pool1d_opts *opts);
#endif

/* A row reads the same in both orders of the indices, and an index through N,C,1,W is one through
 * N,C,W. */
static void expand(const fac_node *n, fac_value *out[]) {
    const fac_pool1d_attrs *a = n->attrs;
    fac_dims height = fac_shape(2);
    fac_pool2d_opts o = { { 1, a->o.stride },   { 0, a->o.pad[0], 0, a->o.pad[1] },
                          { 1, a->o.dilation }, a->o.auto_pad,
                          a->o.ceil_mode,       false };
    fac_value *y = fac_max_pool2d(fac_unsqueeze(n->in[0], height), 1, a->kernel, &o);
    out[0] = fac_squeeze(y, height);
    if (n->nout > 1) out[1] = fac_squeeze(fac_value_other(y, 1), height);
}

static const fac_case cases[] = {
    { "max_pool1d(f32[1,3,11]) kernel=2", -1, 1, 0 },
    { "max_pool1d(f32[2,3,10]) kernel=3 stride=2 pad=1,2 ceil_mode", -1, 1, 0 },
    { "max_pool1d(u8[1,2,14]) kernel=3 stride=1 dilation=3 pad=2,2", 0, 255, 0 },
    { 0 }
};

extern const fac_op fac_op_max_pool1d;
const fac_op fac_op_max_pool1d = {
    .name = "max_pool1d",
    .doc = "the largest element of each window of a row",
    .in = fac_max_pool_in,
    .out = fac_max_pool_out,
    .attrs = fac_pool1d_table,
    .attrs_size = sizeof(fac_pool1d_attrs),
    .infer = fac_pool_infer,
    .expand = expand,
    .cost = fac_pool_cost,
    .save = fac_pool_save,
    .cases = cases,
    .layer = FAC_CLASS_MAX_POOL,
    .torch = "MaxPool1d",
    .mixed = FAC_MIXED_FOLLOWS,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_LARGEST },
};
fac_value *fac_max_pool1d(fac_value *x, int64_t kernel, const fac_pool1d_opts *opts) {
    fac_pool1d_attrs a = { .kernel = kernel };
    if (opts) a.o = *opts;
    return fac_emit(&fac_op_max_pool1d, &a, 1, &x);
}
