/* Running sums along an axis. */
#include "op_list.h"
#include "ops/cum.h"

#if FAC_INTERFACE
/* y_i = x_0 + .. + x_i along an axis.  exclusive: without x_i itself; reverse: from the other end.
 * Integers wrap. */
fac_value *fac_cum_sum(fac_value *x, int axis, bool exclusive, bool reverse);
#endif

static double real(double total, double x) { return total + x; }
static uint64_t whole(uint64_t total, uint64_t x) { return total + x; }
static fac_status ref(const fac_ref *r, fac_error *err) {
    return fac_cum_ref(r, &(fac_cum_rule){ 0, real, 0, whole }, err);
}

/* Sums from the other end. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const fac_cum_attrs *a = n->attrs;
    dx[0] = fac_emit(&fac_op_cum_sum, &(fac_cum_attrs){ a->exclusive, !a->reverse }, 2,
                     (fac_value *[]){ dy[0], n->in[1] });
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    return fac_cum_save(w, n, "CumSum");
}
static const fac_onnx onnx[] = { { "", "CumSum", 11, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "cum_sum(f32[3,4,2], i64(1))", -4, 4, 1e-5 },
                                  { "cum_sum(f32[9], i64(0)) exclusive reverse", -4, 4, 1e-5 },
                                  { "cum_sum(i64[3,4], i64(-1)) reverse", -9, 9, 0 },
                                  { "cum_sum(u8[99], i64(0)) exclusive", 0, 255, 0 },
                                  { "cum_sum(f64[0,3], i64(0))", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_cum_sum = {
    .name = "cum_sum",
    .doc = "running sums along an axis",
    .in = fac_cum_in,
    .out = fac_ports_y,
    .attrs = fac_cum_table,
    .attrs_size = sizeof(fac_cum_attrs),
    .infer = fac_cum_infer,
    .ref = ref,
    .cost = fac_cum_cost,
    .onnx = onnx,
    .save = save,
    .grad = grad,
    .cases = cases,
    .is = FAC_OP_RING,
    .rounding = { .rule = FAC_ROUND_SUM },
};
fac_value *fac_cum_sum(fac_value *x, int axis, bool exclusive, bool reverse) {
    return fac_cum_emit(&fac_op_cum_sum, x, axis, exclusive, reverse);
}
