/* Running products along an axis. */
#include "op_list.h"
#include "ops/cum.h"

#if FAC_INTERFACE
/* y_i = x_0 .. x_i along an axis.  exclusive: without x_i itself (the first is 1); reverse: from
 * the other end.  Integers wrap. */
fac_value *fac_cum_prod(fac_value *x, int axis, bool exclusive, bool reverse);
#endif

static double real(double total, double x) { return total * x; }
static uint64_t whole(uint64_t total, uint64_t x) { return total * x; }
static fac_status ref(const fac_ref *r, fac_error *err) {
    return fac_cum_ref(r, &(fac_cum_rule){ 1, real, 1, whole }, err);
}

static fac_value *sums(const fac_node *n, fac_value *x, bool exclusive, bool reverse) {
    return fac_emit(&fac_op_cum_sum, &(fac_cum_attrs){ exclusive, reverse }, 2,
                    (fac_value *[]){ x, n->in[1] });
}

/* Before the first zero of a line, dx_i = sum over j after i of dy_j y_j / x_i.  At the first zero
 * it is the same sum with that zero left out of the products; after it every product is zero. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const fac_cum_attrs *a = n->attrs;
    fac_value *x = n->in[0];
    const fac_dtype dtype = x->type.dtype;
    fac_value *zero = fac_number(n->graph, dtype, 0), *one = fac_number(n->graph, dtype, 1);
    fac_value *is_zero = fac_equal(x, zero),
              *seen = sums(n, fac_cast(is_zero, dtype), false, a->reverse);
    fac_value *first = fac_and(is_zero, fac_equal(seen, one)), *none = fac_equal(seen, zero),
              *rest = fac_where(first, one, x);
    fac_value *without = fac_emit(n->op, n->attrs, 2, (fac_value *[]){ rest, n->in[1] });
    fac_value *plain = sums(n, fac_mul(dy[0], n->out[0]), a->exclusive, !a->reverse);
    fac_value *at_zero = sums(n, fac_mul(dy[0], without), a->exclusive, !a->reverse);
    fac_value *of_first = fac_where(first, at_zero, zero);
    dx[0] = fac_where(none, fac_div(plain, fac_where(is_zero, one, x)), of_first);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    return w->opset >= 26 && fac_cum_save(w, n, "CumProd");
}
static const fac_onnx onnx[] = { { "", "CumProd", 26, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "cum_prod(f32[3,4,2], i64(1))", -2, 2, 1e-5 },
                                  { "cum_prod(f32[9], i64(0)) exclusive reverse", -2, 2, 1e-5 },
                                  { "cum_prod(i64[3,4], i64(-1)) reverse", -9, 9, 0 },
                                  { "cum_prod(u8[99], i64(0)) exclusive", 0, 255, 0 },
                                  { "cum_prod(f64[0,3], i64(0))", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_cum_prod = {
    .name = "cum_prod",
    .doc = "running products along an axis",
    .in = fac_cum_in,
    .out = fac_ports_y,
    .attrs = fac_cum_table,
    .attrs_size = sizeof(fac_cum_attrs),
    .is = FAC_OP_GROWS,
    .infer = fac_cum_infer,
    .ref = ref,
    .cost = fac_cum_cost,
    .onnx = onnx,
    .save = save,
    .grad = grad,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_cum_prod(fac_value *x, int axis, bool exclusive, bool reverse) {
    return fac_cum_emit(&fac_op_cum_prod, x, axis, exclusive, reverse);
}
