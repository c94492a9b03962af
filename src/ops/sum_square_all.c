/* The sum of squares of everything. */
#include "ops/cost.h"
#include "facula/ops.h"
#include "op_list.h"

#if FAC_INTERFACE
/* The sum of the squares of all elements of n tensors of floats of any shapes, n > 0: the square of
 * the norm of all gradients together.  A scalar, f64 when one of them is f64, else f32. */
fac_value *fac_sum_square_all(fac_value *const in[], int n);
#endif

static bool infer(fac_node *n) {
    fac_dtype dtype = FAC_F32;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->type.dtype == FAC_F64) dtype = FAC_F64;
    n->out[0]->type = (fac_type){ .dtype = dtype };
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    double sum = 0;
    for (int i = 0; i < r->nin; i++)
        for (int64_t k = 0, count = fac_dims_count(&r->in[i].type.dims); k < count; k++)
            sum += r->in[i].f[k] * r->in[i].f[k];
    r->out[0].f[0] = sum;
    return FAC_OK;
}

static void expand(const fac_node *n, fac_value *out[]) {
    for (int i = 0; i < n->nin; i++) {
        fac_value *one = fac_reduce_sum_square(fac_cast(n->in[i], n->out[0]->type.dtype),
                                               (fac_dims){ 0 }, false);
        out[0] = i ? fac_add(out[0], one) : one;
    }
}

static void cost(const fac_node *n, fac_cost *to) {
    *to = (fac_cost){ 0 };
    fac_cost_bytes(n, to);
    for (int i = 0; i < n->nin; i++) to->other += 2 * fac_cost_count(n->in[i]);
}

static const fac_port xs[] = { { "x", FAC_FLOATS, FAC_VARIADIC }, { 0 } };
static const fac_port y[] = { { "y", FAC_FLOATS, 0 }, { 0 } };
static const fac_case cases[] = { { "sum_square_all(f32[3,4], f32[5], f32[])", -1, 1, 1e-6 },
                                  { "sum_square_all(f32[2,3], f64[5], f16[2])", -1, 1, 1e-6 },
                                  { "sum_square_all(f32[0])", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_sum_square_all = {
    .name = "sum_square_all",
    .doc = "the sum of the squares of all elements of all inputs",
    .in = xs,
    .out = y,
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_sum_square_all(fac_value *const in[], int n) {
    return fac_emit(&fac_op_sum_square_all, NULL, n, in);
}
