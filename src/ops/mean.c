/* The mean over axes, and with it ONNX GlobalAveragePool. */
#include "op_list.h"
#include "ops/define.h"
#include "ops/grad.h"
#include "ops/reduce.h"

#if FAC_INTERFACE
/* y = mean of x over these axes (axes.n = 0: all), which stay as 1 if `keep`.  Floats; integers
 * truncate towards zero. No elements: NaN, integers 0. */
fac_value *fac_mean(fac_value *x, fac_dims axes, bool keep);
#endif

static double real(double y, double x) { return y + x; }
static int64_t whole(int64_t y, int64_t x) { return (int64_t)((uint64_t)y + (uint64_t)x); }
static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_array *y = &r->out[0];
    int64_t count = fac_reduce_fold(r, &(fac_fold){ 0, real, 0, whole }),
            results = fac_dims_count(&y->type.dims);
    for (int64_t k = 0; k < results; k++) {
        if (y->f)
            y->f[k] /= (double)count;
        else if (y->type.dtype == FAC_U64)
            y->i[k] = count ? (int64_t)((uint64_t)y->i[k] / (uint64_t)count) : 0;
        else
            y->i[k] = count ? y->i[k] / count : 0;
    }
    return FAC_OK;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *each = fac_grad_share(dy[0], n->in[0], n->out[0]);
    dx[0] = fac_grad_spread(fac_grad_unreduce(n, each), n->in[0]);
}

/* Over all spatial dims of N,C,... */
static void load_global(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                        fac_value *out[]) {
    fac_dims axes = fac_value_type(in[0]).dims;
    int rank = axes.n;
    axes.n = 0;
    for (int k = 2; k < rank; k++) axes.d[axes.n++] = k;
    if (axes.n)
        out[0] = fac_mean(in[0], axes, true);
    else
        out[0] = fac_fail_graph(g, FAC_E_SHAPE, "%s of a tensor with %d dims", n->type, rank);
}

static const fac_onnx onnx[] = {
    { "", "ReduceMean", 1, 0, fac_reduce_spellings, fac_reduce_load, 0 },
    { "", "GlobalAveragePool", 1, 0, NULL, load_global, 0 },
    { "com.microsoft.nchwc", "GlobalAveragePool", 1, 0, NULL, load_global, 0 },
    { 0 }
};
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    return fac_reduce_save_global(w, n, "GlobalAveragePool") || fac_reduce_save(w, n);
}

static const fac_case cases[] = { { "mean(f32[3,4,5], i64{1}) keep", -1, 1, 1e-6 },
                                  { "mean(f32[2,7,5,5], i64{2,3}) keep", -1, 1, 1e-6 },
                                  { "mean(f32[3,4,5], -)", -1, 1, 1e-6 },
                                  { "mean(f32[0,3], i64{1})", 0, 0, 0 },
                                  { "mean(i32[3,4], i64{0})", -99, 99, 0 },
                                  { "mean(f16[3,4], i64{-1})", -1, 1, 2e-3 },
                                  { "mean(f32[2,8,5,7], i64{2,3})", -1, 1, 1e-6 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    const int64_t from = fac_dims_count(&n->in[0]->type.dims),
                  to = fac_dims_count(&n->out[0]->type.dims);
    if (!fac_define_floats(n) || from <= 0 || to <= 0) return;
    fac_value *sum = fac_emit(&fac_op_sum, n->attrs, 2, n->in);
    out[0] = fac_div(sum, fac_number_as(sum, (double)(from / to)));
}

extern const fac_op fac_op_mean;
const fac_op fac_op_mean = {
    .name = "mean",
    .doc = "the mean over axes",
    .in = fac_reduce_num_in,
    .out = fac_reduce_num_out,
    .attrs = fac_reduce_table,
    .attrs_size = sizeof(fac_reduce_attrs),
    .infer = fac_reduce_infer,
    .ref = ref,
    .grad = grad,
    .cost = fac_reduce_cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .define = define,
    .mixed = FAC_MIXED_FOLLOWS,
    .images = FAC_IMAGES_UNREDUCED,
    .rounding = { .rule = FAC_ROUND_SUM },
};
fac_value *fac_mean(fac_value *x, fac_dims axes, bool keep) {
    return fac_reduce_emit(&fac_op_mean, x, axes, keep);
}
