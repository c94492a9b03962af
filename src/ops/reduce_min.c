/* The smallest element over axes. */
#include "ops/order.h"
#include "ops/grad.h"
#include "ops/reduce.h"

#if FAC_INTERFACE
/* y = smallest of x over these axes (axes.n = 0: all), which stay as 1 if `keep`; NaN wins. Floats,
 * integers, bool. No elements: +inf, the highest integer, true. */
fac_value *fac_reduce_min(fac_value *x, fac_dims axes, bool keep);
#endif

static double real(double y, double x) { return fac_real_above(-x, -y) ? x : y; }
static int64_t whole(int64_t y, int64_t x) { return fac_int_above(FAC_I64, y, x) ? x : y; }
static int64_t pattern(int64_t y, int64_t x) { return fac_int_above(FAC_U64, y, x) ? x : y; }
static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    fac_dtype dtype = r->in[0].type.dtype;
    fac_reduce_fold(r, &(fac_fold){ INFINITY, real, fac_int_highest(dtype),
                                    dtype == FAC_U64 ? pattern : whole });
    return FAC_OK;
}

/* Elements that share the extreme share its gradient evenly. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0], *y = fac_grad_unreduce(n, n->out[0]), *d = fac_grad_unreduce(n, dy[0]);
    fac_value *mine = fac_cast(fac_equal(x, y), x->type.dtype);
    dx[0] = fac_mul(mine, fac_div(d, fac_sum_like(mine, y)));
}

static const fac_onnx onnx[] = {
    { "", "ReduceMin", 1, 0, fac_reduce_spellings, fac_reduce_load, 0 }, { 0 }
};
static const fac_case cases[] = { { "reduce_min(f32[3,4,5], i64{1}) keep", -1, 1, 0 },
                                  { "reduce_min(f32[3,4,5], i64{0,-1})", -1, 1, 0 },
                                  { "reduce_min(f32[3,4,5], -)", -1, 1, 0 },
                                  { "reduce_min(f32[2,0,3], i64{1})", 0, 0, 0 },
                                  { "reduce_min(i8[2,0,3], i64{1})", 0, 0, 0 },
                                  { "reduce_min(i32[3,4], i64{0})", -99, 99, 0 },
                                  { "reduce_min(u8[3,4], i64{0})", 0, 255, 0 },
                                  { "reduce_min(bool[3,4], i64{0})", 0, 1, 0 },
                                  { 0 } };

extern const fac_op fac_op_reduce_min;
const fac_op fac_op_reduce_min = {
    .name = "reduce_min",
    .doc = "the smallest element over axes",
    .in = fac_reduce_any_in,
    .out = fac_reduce_any_out,
    .attrs = fac_reduce_table,
    .attrs_size = sizeof(fac_reduce_attrs),
    .infer = fac_reduce_infer,
    .ref = ref,
    .grad = grad,
    .cost = fac_reduce_cost,
    .onnx = onnx,
    .save = fac_reduce_save,
    .cases = cases,
    .is = FAC_OP_PICKS,
    .images = FAC_IMAGES_UNREDUCED,
    .rounding = { .rule = FAC_ROUND_LARGEST },
};
fac_value *fac_reduce_min(fac_value *x, fac_dims axes, bool keep) {
    return fac_reduce_emit(&fac_op_reduce_min, x, axes, keep);
}
