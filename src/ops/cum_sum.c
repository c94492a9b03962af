#include "ops/cost.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* y_i = x_0 + .. + x_i along an axis.  exclusive: without x_i itself; reverse: from the other end.  Integers wrap. */
fac_value *fac_cum_sum(fac_value *x, int axis, bool exclusive, bool reverse);
#endif

typedef struct attrs { bool exclusive, reverse; } attrs;
static const fac_attr table[] = {
    { "exclusive", FAC_A_FLAG, offsetof(attrs, exclusive), 0, 0, 0, 0, NULL, "sum without the element itself" },
    { "reverse", FAC_A_FLAG, offsetof(attrs, reverse), 0, 0, 0, 0, NULL, "from the last element to the first" }, { 0 }
};
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
    const attrs *a = r->attrs;
    const fac_dims *d = &r->in[0].type.dims;
    const int axis = fac_axis(r->in[1].i[0], d->n);
    int64_t outer = 1, size = d->d[axis], inner = 1;
    (void)err;
    for (int k = 0; k < axis; k++) outer *= d->d[k];
    for (int k = axis + 1; k < d->n; k++) inner *= d->d[k];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            double sum_f = 0;
            uint64_t sum_i = 0;
            for (int64_t k = 0; k < size; k++) {
                const int64_t at = (o * size + (a->reverse ? size - 1 - k : k)) * inner + i;
                if (r->out[0].f) {
                    const double before = sum_f;
                    sum_f += r->in[0].f[at];
                    r->out[0].f[at] = a->exclusive ? before : sum_f;
                } else {
                    const uint64_t before = sum_i;
                    sum_i += (uint64_t)r->in[0].i[at];
                    r->out[0].i[at] = (int64_t)(a->exclusive ? before : sum_i);
                }
            }
        }
    return FAC_OK;
}

extern const fac_op fac_op_cum_sum;
/* Sums from the other end. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    dx[0] = fac_emit(&fac_op_cum_sum, &(attrs){ a->exclusive, !a->reverse }, 2, (fac_value *[]){ dy[0], n->in[1] });
}

static void cost(const fac_node *n, fac_cost *c) { fac_cost_each(n, 1, c); }

static const fac_onnx onnx[] = { { "", "CumSum", 11, 0, NULL, NULL }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_ranked(w, n->in[1], 0) };
    fac_onnx_put(w, "CumSum", 2, ins, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "exclusive", a->exclusive);
    fac_onnx_put_int(w, "reverse", a->reverse);
    return true;
}

static const fac_case cases[] = {
    { "cum_sum(f32[3,4,2], i64(1))", -4, 4, 1e-5 }, { "cum_sum(f32[9], i64(0)) exclusive reverse", -4, 4, 1e-5 },
    { "cum_sum(i64[3,4], i64(-1)) reverse", -9, 9, 0 }, { "cum_sum(u8[99], i64(0)) exclusive", 0, 255, 0 },
    { "cum_sum(f64[0,3], i64(0))", 0, 0, 0 }, { 0 }
};

const fac_op fac_op_cum_sum = {
    .name = "cum_sum", .doc = "running sums along an axis", .in = in, .out = fac_ports_y, .attrs = table,
        .attrs_size = sizeof(attrs),
    .infer = infer, .ref = ref, .cost = cost, .onnx = onnx, .save = save, .grad = grad, .cases = cases,
};
fac_value *fac_cum_sum(fac_value *x, int axis, bool exclusive, bool reverse) {
    return fac_emit(&fac_op_cum_sum, &(attrs){ exclusive, reverse }, 2, (fac_value *[]){ x, fac_ints(fac_value_graph(x),
        fac_shape(axis)) });
}
