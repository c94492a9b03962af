/* The Euclidean norm over axes. */
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/reduce.h"
#include "op_list.h"

#if FAC_INTERFACE
/* y = sqrt(sum of x^2) over these axes (axes.n = 0: all), which stay as 1 if `keep`.
 * Floats; integers are taken as f64 and the result truncates.  No elements: 0. */
fac_value *fac_reduce_l2(fac_value *x, fac_dims axes, bool keep);
#endif

static void expand(const fac_node *n, fac_value *out[]) {
    fac_value *x = fac_reduce_real(n->in[0]);
    x = fac_sqrt(fac_emit(&fac_op_sum, n->attrs, 2, (fac_value *[]){ fac_mul(x, x), n->in[1] }));
    out[0] = fac_cast(x, n->out[0]->type.dtype);
}

/* dx = dy x / y; 0 where the norm is 0, whose slope there may be any up to 1. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0], *y = fac_grad_unreduce(n, n->out[0]), *d = fac_grad_unreduce(n, dy[0]);
    fac_value *zero = fac_number(n->graph, x->type.dtype, 0), *none = fac_equal(y, zero),
              *one = fac_number(n->graph, x->type.dtype, 1);
    dx[0] = fac_mul(x, fac_where(none, zero, fac_div(d, fac_where(none, one, y))));
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 2, to); }

/* (sum of |x|^p)^(1/p) over axes. */
static fac_value *p_norm(fac_value *x, int64_t p, fac_dims axes) {
    if (p == 1) return fac_reduce_l1(x, axes, true);
    if (p == 2) return fac_reduce_l2(x, axes, true);
    fac_graph *g = x->graph;
    const fac_dtype t = x->type.dtype;
    fac_value *sum = fac_sum(fac_pow(fac_abs(x), fac_number(g, t, (double)p)), axes, true);
    return fac_pow(sum, fac_number(g, t, 1 / (double)p));
}

/* x / its norm along an axis; zeros where that is 0. */
static void load_normalize(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                           fac_value *y[]) {
    const fac_dims axis = fac_shape(fac_onnx_int(n, "axis", -1));
    fac_value *norm = p_norm(x[0], fac_onnx_int(n, "p", 2), axis),
              *zero = fac_number(g, x[0]->type.dtype, 0);
    fac_value *none = fac_equal(norm, zero), *one = fac_number(g, x[0]->type.dtype, 1);
    y[0] = fac_where(none, zero, fac_div(x[0], fac_where(none, one, norm)));
}

static void load_global_pool(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                             fac_value *y[]) {
    (void)g;
    fac_dims axes = { 0 };
    for (int k = 2; k < x[0]->type.dims.n; k++) axes.d[axes.n++] = k;
    y[0] = p_norm(x[0], fac_onnx_int(n, "p", 2), axes);
}

static const fac_onnx_attr normalize_names[] = { { "axis", NULL }, { "p", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "ReduceL2", 1, 0, fac_reduce_spellings, fac_reduce_load, 0 },
                                 { "", "LpNormalization", 1, 0, normalize_names, load_normalize,
                                   0 },
                                 { "", "GlobalLpPool", 2, 0, normalize_names, load_global_pool, 0 },
                                 { 0 } };
static const fac_case cases[] = { { "reduce_l2(f32[3,4,5], i64{1}) keep", -1, 1, 1e-6 },
                                  { "reduce_l2(f32[3,4], -)", -1, 1, 1e-6 },
                                  { "reduce_l2(f32[2,0,3], i64{1})", 0, 0, 0 },
                                  { "reduce_l2(i32[3,4], i64{0})", -9, 9, 0 },
                                  { 0 } };

const fac_op fac_op_reduce_l2 = {
    .name = "reduce_l2",
    .doc = "the Euclidean norm over axes",
    .in = fac_reduce_num_in,
    .out = fac_reduce_num_out,
    .attrs = fac_reduce_table,
    .attrs_size = sizeof(fac_reduce_attrs),
    .infer = fac_reduce_infer,
    .expand = expand,
    .grad = grad,
    .cost = cost,
    .onnx = onnx,
    .save = fac_reduce_save,
    .cases = cases,
    .images = FAC_IMAGES_UNREDUCED,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_reduce_l2(fac_value *x, fac_dims axes, bool keep) {
    return fac_reduce_emit(&fac_op_reduce_l2, x, axes, keep);
}
