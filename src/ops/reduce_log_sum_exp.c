/* The logarithm of the sum of exponentials over axes: a smooth maximum. */
#include <float.h>
#include "ops/cost.h"
#include "ops/reduce.h"
#include "op_list.h"

#if FAC_INTERFACE
/* y = log(sum of exp(x)) over these axes (axes.n = 0: all), which stay as 1 if `keep`.
 * Floats; integers are taken as f64 and the result truncates.  No elements: -inf. */
fac_value *fac_reduce_log_sum_exp(fac_value *x, fac_dims axes, bool keep);
#endif

/* The largest element goes outside, so nothing overflows: log(sum exp(x - top)) + top.  An infinite
 * top is brought back to a number, since inf - inf is none. */
static void expand(const fac_node *n, fac_value *out[]) {
    static const double largest[FAC_DTYPES] = {
        [FAC_F32] = FLT_MAX, [FAC_F64] = DBL_MAX, [FAC_F16] = 65504, [FAC_BF16] = 0x1.fep127
    };
    fac_value *x = fac_reduce_real(n->in[0]);
    fac_reduce_attrs kept = *(const fac_reduce_attrs *)n->attrs;
    kept.keep = true;
    fac_dtype t = x->type.dtype;
    fac_value *top = fac_emit(&fac_op_reduce_max, &kept, 2, (fac_value *[]){ x, n->in[1] });
    top = fac_clip(top, fac_number(n->graph, t, -largest[t]), fac_number(n->graph, t, largest[t]));
    fac_value *y =
        fac_emit(&fac_op_sum, n->attrs, 2, (fac_value *[]){ fac_exp(fac_sub(x, top)), n->in[1] });
    fac_value *back = fac_reshape_like(top, y);
    out[0] = fac_cast(fac_add(fac_log(y), back), n->out[0]->type.dtype);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 2, to); }

static const fac_onnx onnx[] = {
    { "", "ReduceLogSumExp", 1, 0, fac_reduce_spellings, fac_reduce_load, 0 }, { 0 }
};
static const fac_case cases[] = { { "reduce_log_sum_exp(f32[3,4,5], i64{1}) keep", -1, 1, 1e-6 },
                                  { "reduce_log_sum_exp(f32[3,4], -)", -90, 90, 1e-6 },
                                  { "reduce_log_sum_exp(f32[2,0,3], i64{1})", 0, 0, 0 },
                                  { "reduce_log_sum_exp(f32[4], -) keep", 1000, 1001, 1e-6 },
                                  { 0 } };

const fac_op fac_op_reduce_log_sum_exp = {
    .name = "reduce_log_sum_exp",
    .doc = "the logarithm of the sum of exponentials over axes",
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
    .rounding = { .rule = FAC_ROUND_LOG_SUM_EXP },
};
fac_value *fac_reduce_log_sum_exp(fac_value *x, fac_dims axes, bool keep) {
    return fac_reduce_emit(&fac_op_reduce_log_sum_exp, x, axes, keep);
}
