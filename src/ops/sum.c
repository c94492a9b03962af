/* The sum over axes. */
#include "ops/grad.h"
#include "ops/reduce.h"

#if FAC_INTERFACE
/* y = sum of x over these axes (axes.n = 0: all), which stay as 1 if `keep`.  Floats and integers
 * (which wrap); no elements: 0. */
fac_value *fac_sum(fac_value *x, fac_dims axes, bool keep);
#endif

static double real(double y, double x) { return y + x; }
static int64_t whole(int64_t y, int64_t x) { return (int64_t)((uint64_t)y + (uint64_t)x); }
static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    fac_reduce_fold(r, &(fac_fold){ 0, real, 0, whole });
    return FAC_OK;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_grad_spread(fac_grad_unreduce(n, dy[0]), n->in[0]);
}

static const fac_onnx onnx[] = {
    { "", "ReduceSum", 1, 0, fac_reduce_spellings, fac_reduce_load, 0 }, { 0 }
};
static const fac_case cases[] = { { "sum(f32[3,4,5], i64{1}) keep", -1, 1, 1e-6 },
                                  { "sum(f32[3,4,5], i64{0,-1})", -1, 1, 1e-6 },
                                  { "sum(f32[3,4,5], -)", -1, 1, 1e-5 },
                                  { "sum(f32[], -) keep", -1, 1, 1e-6 },
                                  { "sum(f32[2,0,3], i64{1})", 0, 0, 0 },
                                  { "sum(f32[0,3], i64{1})", 0, 0, 0 },
                                  { "sum(f32[3,4], -) noop_with_empty_axes", -1, 1, 0 },
                                  { "sum(i32[3,4], i64{0})", -99, 99, 0 },
                                  { "sum(f16[3,4], i64{0})", -1, 1, 2e-3 },
                                  { 0 } };

extern const fac_op fac_op_sum;
const fac_op fac_op_sum = {
    .name = "sum",
    .doc = "the sum over axes",
    .in = fac_reduce_num_in,
    .out = fac_reduce_num_out,
    .attrs = fac_reduce_table,
    .attrs_size = sizeof(fac_reduce_attrs),
    .infer = fac_reduce_infer,
    .ref = ref,
    .grad = grad,
    .cost = fac_reduce_cost,
    .onnx = onnx,
    .save = fac_reduce_save,
    .cases = cases,
    .is = FAC_OP_RING,
    .images = FAC_IMAGES_UNREDUCED,
    .rounding = { .rule = FAC_ROUND_SUM },
};
fac_value *fac_sum(fac_value *x, fac_dims axes, bool keep) {
    return fac_reduce_emit(&fac_op_sum, x, axes, keep);
}
