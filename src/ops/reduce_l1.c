/* The sum of absolute values over axes. */
#include "ops/cost.h"
#include "ops/reduce.h"
#include "op_list.h"

#if FAC_INTERFACE
/* y = sum of |x| over these axes (axes.n = 0: all), which stay as 1 if `keep`.
 * Floats and integers (which wrap).  No elements: 0. */
fac_value *fac_reduce_l1(fac_value *x, fac_dims axes, bool keep);
#endif

static void expand(const fac_node *n, fac_value *out[]) {
    out[0] = fac_emit(&fac_op_sum, n->attrs, 2, (fac_value *[]){ fac_abs(n->in[0]), n->in[1] });
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 2, to); }

static const fac_onnx onnx[] = { { "", "ReduceL1", 1, 0, fac_reduce_spellings, fac_reduce_load, 0 },
                                 { 0 } };
static const fac_case cases[] = { { "reduce_l1(f32[3,4,5], i64{1}) keep", -1, 1, 1e-6 },
                                  { "reduce_l1(f32[3,4], -)", -1, 1, 1e-6 },
                                  { "reduce_l1(f32[2,0,3], i64{1})", 0, 0, 0 },
                                  { "reduce_l1(i32[3,4], i64{0})", -9, 9, 0 },
                                  { 0 } };

const fac_op fac_op_reduce_l1 = {
    .name = "reduce_l1",
    .doc = "the sum of absolute values over axes",
    .in = fac_reduce_num_in,
    .out = fac_reduce_num_out,
    .attrs = fac_reduce_table,
    .attrs_size = sizeof(fac_reduce_attrs),
    .infer = fac_reduce_infer,
    .expand = expand,
    .cost = cost,
    .onnx = onnx,
    .save = fac_reduce_save,
    .cases = cases,
    .images = FAC_IMAGES_UNREDUCED,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_reduce_l1(fac_value *x, fac_dims axes, bool keep) {
    return fac_reduce_emit(&fac_op_reduce_l1, x, axes, keep);
}
