/* The logarithm of the sum over axes. */
#include "ops/cost.h"
#include "ops/reduce.h"
#include "op_list.h"

#if FAC_INTERFACE
/* y = log(sum of x) over these axes (axes.n = 0: all), which stay as 1 if `keep`.
 * Floats; integers are taken as f64 and the result truncates.  No elements: -inf. */
fac_value *fac_reduce_log_sum(fac_value *x, fac_dims axes, bool keep);
#endif

static void expand(const fac_node *n, fac_value *out[]) {
    fac_value *x = fac_reduce_real(n->in[0]);
    out[0] = fac_cast(fac_log(fac_emit(&fac_op_sum, n->attrs, 2, (fac_value *[]){ x, n->in[1] })),
                      n->out[0]->type.dtype);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 2, to); }

static const fac_onnx onnx[] = {
    { "", "ReduceLogSum", 1, 0, fac_reduce_spellings, fac_reduce_load, 0 }, { 0 }
};
static const fac_case cases[] = { { "reduce_log_sum(f32[3,4,5], i64{1}) keep", 0.1, 1, 1e-6 },
                                  { "reduce_log_sum(f32[3,4], -)", 0.1, 1, 1e-6 },
                                  { "reduce_log_sum(f32[2,0,3], i64{1})", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_reduce_log_sum = {
    .name = "reduce_log_sum",
    .doc = "the logarithm of the sum over axes",
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
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_reduce_log_sum(fac_value *x, fac_dims axes, bool keep) {
    return fac_reduce_emit(&fac_op_reduce_log_sum, x, axes, keep);
}
