/* The largest element over axes, and with it ONNX GlobalMaxPool. */
#include "ops/order.h"
#include "ops/grad.h"
#include "ops/reduce.h"

#if FAC_INTERFACE
/* y = largest of x over these axes (axes.n = 0: all), which stay as 1 if `keep`; NaN wins.  Floats,
 * integers, bool. No elements: -inf, the lowest integer, false. */
fac_value *fac_reduce_max(fac_value *x, fac_dims axes, bool keep);
#endif

static double real(double y, double x) { return fac_real_above(x, y) ? x : y; }
static int64_t whole(int64_t y, int64_t x) { return fac_int_above(FAC_I64, x, y) ? x : y; }
static int64_t pattern(int64_t y, int64_t x) { return fac_int_above(FAC_U64, x, y) ? x : y; }
static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    fac_dtype dtype = r->in[0].type.dtype;
    fac_reduce_fold(r, &(fac_fold){ -INFINITY, real, fac_int_lowest(dtype),
                                    dtype == FAC_U64 ? pattern : whole });
    return FAC_OK;
}

/* Elements that share the extreme share its gradient evenly. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0], *y = fac_grad_unreduce(n, n->out[0]), *d = fac_grad_unreduce(n, dy[0]);
    fac_value *mine = fac_cast(fac_equal(x, y), x->type.dtype);
    dx[0] = fac_mul(mine, fac_div(d, fac_sum_like(mine, y)));
}

/* Over all spatial dims of N,C,... */
static void load_global(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                        fac_value *out[]) {
    fac_dims axes = fac_value_type(in[0]).dims;
    int rank = axes.n;
    axes.n = 0;
    for (int k = 2; k < rank; k++) axes.d[axes.n++] = k;
    if (axes.n)
        out[0] = fac_reduce_max(in[0], axes, true);
    else
        out[0] = fac_fail_graph(g, FAC_E_SHAPE, "%s of a tensor with %d dims", n->type, rank);
}

static const fac_onnx onnx[] = {
    { "", "ReduceMax", 1, 0, fac_reduce_spellings, fac_reduce_load, 0 },
    { "", "GlobalMaxPool", 1, 0, NULL, load_global, 0 },
    { "com.microsoft.nchwc", "GlobalMaxPool", 1, 0, NULL, load_global, 0 },
    { 0 }
};
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    return fac_reduce_save_global(w, n, "GlobalMaxPool") || fac_reduce_save(w, n);
}

static const fac_case cases[] = { { "reduce_max(f32[3,4,5], i64{1}) keep", -1, 1, 0 },
                                  { "reduce_max(f32[3,4,5], i64{0,-1})", -1, 1, 0 },
                                  { "reduce_max(f32[3,4,5], -)", -1, 1, 0 },
                                  { "reduce_max(f32[2,0,3], i64{1})", 0, 0, 0 },
                                  { "reduce_max(i8[2,0,3], i64{1})", 0, 0, 0 },
                                  { "reduce_max(i32[3,4], i64{0})", -99, 99, 0 },
                                  { "reduce_max(u8[3,4], i64{0})", 0, 255, 0 },
                                  { "reduce_max(bool[3,4], i64{0})", 0, 1, 0 },
                                  { 0 } };

extern const fac_op fac_op_reduce_max;
const fac_op fac_op_reduce_max = {
    .name = "reduce_max",
    .doc = "the largest element over axes",
    .in = fac_reduce_any_in,
    .out = fac_reduce_any_out,
    .attrs = fac_reduce_table,
    .attrs_size = sizeof(fac_reduce_attrs),
    .infer = fac_reduce_infer,
    .ref = ref,
    .grad = grad,
    .cost = fac_reduce_cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .is = FAC_OP_PICKS,
    .images = FAC_IMAGES_UNREDUCED,
    .rounding = { .rule = FAC_ROUND_LARGEST },
};
fac_value *fac_reduce_max(fac_value *x, fac_dims axes, bool keep) {
    return fac_reduce_emit(&fac_op_reduce_max, x, axes, keep);
}
