/* The product over axes. */
#include "ops/grad.h"
#include "ops/reduce.h"

#if FAC_INTERFACE
/* y = product of x over these axes (axes.n = 0: all), which stay as 1 if `keep`.  Floats and
 * integers (which wrap); no elements: 1. */
fac_value *fac_reduce_prod(fac_value *x, fac_dims axes, bool keep);
#endif

extern const fac_op fac_op_reduce_prod;

static double real(double y, double x) { return y * x; }
static int64_t whole(int64_t y, int64_t x) { return (int64_t)((uint64_t)y * (uint64_t)x); }
static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    fac_reduce_fold(r, &(fac_fold){ 1, real, 1, whole });
    return FAC_OK;
}

/* dx = dy times the product of the others: y / x, but where one single x is zero the product of the
 * rest, and where another one is zero nothing.  Second derivatives are exact where no x is zero. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0], *like = fac_grad_unreduce(n, n->out[0]),
              *d = fac_grad_unreduce(n, dy[0]);
    fac_dtype dtype = x->type.dtype;
    fac_value *zero = fac_number(n->graph, dtype, 0), *one = fac_number(n->graph, dtype, 1),
              *is_zero = fac_equal(x, zero);
    fac_value *zeros = fac_sum_like(fac_cast(is_zero, dtype), like),
              *rest = fac_where(is_zero, one, x);
    fac_value *product =
        fac_emit(&fac_op_reduce_prod, n->attrs, 2, (fac_value *[]){ rest, n->in[1] });
    product = fac_mul(d, fac_grad_unreduce(n, product));
    dx[0] = fac_where(is_zero, fac_where(fac_equal(zeros, one), product, zero),
                      fac_where(fac_equal(zeros, zero), fac_div(product, rest), zero));
}

static const fac_onnx onnx[] = {
    { "", "ReduceProd", 1, 0, fac_reduce_spellings, fac_reduce_load, 0 }, { 0 }
};
static const fac_case cases[] = { { "reduce_prod(f32[3,4,5], i64{1}) keep", 0.5, 2, 1e-6 },
                                  { "reduce_prod(f32[3,4], -)", 0.5, 2, 1e-5 },
                                  { "reduce_prod(f32[2,0,3], i64{1})", 0, 0, 0 },
                                  { "reduce_prod(i32[3,4], i64{0})", -9, 9, 0 },
                                  { 0 } };

const fac_op fac_op_reduce_prod = {
    .name = "reduce_prod",
    .doc = "the product over axes",
    .in = fac_reduce_num_in,
    .out = fac_reduce_num_out,
    .attrs = fac_reduce_table,
    .attrs_size = sizeof(fac_reduce_attrs),
    .is = FAC_OP_GROWS,
    .infer = fac_reduce_infer,
    .ref = ref,
    .grad = grad,
    .cost = fac_reduce_cost,
    .onnx = onnx,
    .save = fac_reduce_save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_reduce_prod(fac_value *x, fac_dims axes, bool keep) {
    return fac_reduce_emit(&fac_op_reduce_prod, x, axes, keep);
}
