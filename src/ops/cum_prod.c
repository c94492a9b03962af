/* Running products along an axis. */
#include "ops/cost.h"
#include "ops/lines.h"
#include "ops/shape.h"
#include "op_list.h"

#if FAC_INTERFACE
/* y_i = x_0 .. x_i along an axis.  exclusive: without x_i itself (the first is 1); reverse: from the other end.  Integers wrap. */
fac_value *fac_cum_prod(fac_value *x, int axis, bool exclusive, bool reverse);
#endif

typedef struct attrs { bool exclusive, reverse; } attrs;
static const fac_attr table[] = {
    { "exclusive", FAC_A_FLAG, offsetof(attrs, exclusive), 0, 0, 0, 0, NULL, "product without the element itself" },
    { "reverse", FAC_A_FLAG, offsetof(attrs, reverse), 0, 0, 0, 0, NULL, "from the last element to the first" }, { 0 } };
static const fac_port in[] = { { "x", FAC_NUMBERS, 0 }, { "axis", FAC_INTS, FAC_HOST }, { 0 } };

static bool infer(fac_node *n) {
    fac_contents axis;
    if (fac_dims_count(&n->in[1]->type.dims) != 1) return fac_fail(n, FAC_E_SHAPE, "axis must be one number");
    if (fac_host_numbers(n, 1, &axis) && fac_axis(axis.v[0], n->in[0]->type.dims.n) < 0)
        return fac_fail(n, FAC_E_SHAPE, "axis %lld of %d dims", (long long)axis.v[0], n->in[0]->type.dims.n);
    n->out[0]->type = n->in[0]->type;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const attrs *a = r->attrs;
    const fac_array *x = &r->in[0], *y = &r->out[0];
    const fac_lines l = fac_lines_of(&x->type.dims, fac_axis(r->in[1].i[0], x->type.dims.n));
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t i = 0; i < l.inner; i++) {
            double real = 1;
            uint64_t whole = 1;
            for (int64_t k = 0; k < l.size; k++) {
                const int64_t at = (o * l.size + (a->reverse ? l.size - 1 - k : k)) * l.inner + i;
                if (a->exclusive && y->f) y->f[at] = real;
                if (a->exclusive && y->i) y->i[at] = (int64_t)whole;
                if (x->f) real *= x->f[at];
                else whole *= (uint64_t)x->i[at];
                if (!a->exclusive && y->f) y->f[at] = real;
                if (!a->exclusive && y->i) y->i[at] = (int64_t)whole;
            }
        }
    return FAC_OK;
}

static fac_value *sums(const fac_node *n, fac_value *x, bool exclusive, bool reverse) {
    const char *how = exclusive ? reverse ? "exclusive reverse" : "exclusive" : reverse ? "reverse" : NULL;
    return fac_apply(n->graph, &fac_op_cum_sum, how, 2, (fac_value *[]){ x, n->in[1] });
}

/* Before the first zero of a line, dx_i = sum over j behind i of dy_j y_j / x_i.  At the first zero it is the same sum with that
 * zero left out of the products; behind it every product is zero. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0];
    const fac_dtype dtype = x->type.dtype;
    fac_value *zero = fac_number(n->graph, dtype, 0), *one = fac_number(n->graph, dtype, 1);
    fac_value *is_zero = fac_equal(x, zero), *seen = sums(n, fac_cast(is_zero, dtype), false, a->reverse);
    fac_value *first = fac_and(is_zero, fac_equal(seen, one)), *none = fac_equal(seen, zero), *rest = fac_where(first, one, x);
    fac_value *without = fac_emit(n->op, n->attrs, 2, (fac_value *[]){ rest, n->in[1] });
    fac_value *plain = sums(n, fac_mul(dy[0], n->out[0]), a->exclusive, !a->reverse);
    fac_value *at_zero = sums(n, fac_mul(dy[0], without), a->exclusive, !a->reverse);
    fac_value *behind = fac_where(first, at_zero, zero);
    dx[0] = fac_where(none, fac_div(plain, fac_where(is_zero, one, x)), behind);
}

static void cost(const fac_node *n, fac_cost *c) { fac_cost_each(n, 1, c); }

static const fac_onnx onnx[] = { { "", "CumProd", 26, 0, NULL, NULL }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_ranked(w, n->in[1], 0) };
    if (w->opset < 26) return false;
    fac_onnx_put(w, "CumProd", 2, ins, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "exclusive", a->exclusive);
    fac_onnx_put_int(w, "reverse", a->reverse);
    return true;
}

static const fac_case cases[] = {
    { "cum_prod(f32[3,4,2], i64(1))", -2, 2, 1e-5 }, { "cum_prod(f32[9], i64(0)) exclusive reverse", -2, 2, 1e-5 },
    { "cum_prod(i64[3,4], i64(-1)) reverse", -9, 9, 0 }, { "cum_prod(u8[99], i64(0)) exclusive", 0, 255, 0 },
    { "cum_prod(f64[0,3], i64(0))", 0, 0, 0 }, { 0 } };

const fac_op fac_op_cum_prod = {
    .name = "cum_prod", .doc = "running products along an axis", .in = in, .out = fac_ports_y, .attrs = table,
    .attrs_size = sizeof(attrs), .infer = infer, .ref = ref, .cost = cost, .onnx = onnx,
    .save = save, .grad = grad, .cases = cases,
};
fac_value *fac_cum_prod(fac_value *x, int axis, bool exclusive, bool reverse) {
    return fac_emit(&fac_op_cum_prod, &(attrs){ exclusive, reverse }, 2, (fac_value *[]){ x, fac_ints(fac_value_graph(x),
        fac_shape(axis)) });
}
