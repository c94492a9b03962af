/* Where a tensor is not 0.  How many places there are is data: a second input that steers the
 * shape, so that a plan is cut before this node, the count is computed, and the rest is planned
 * with it. */
#include <string.h>
#include "base/error.h"
#include "ops/shape.h"

#if FAC_INTERFACE
fac_value *fac_nonzero(
    fac_value *x); /* i64[rank, how many]: the indices of what is not 0 (or true), in row-major
                      order; of a scalar there are none to say: i64[0, 1] or i64[0, 0] */
#endif

static const fac_port in[] = { { "x", FAC_NUMBERS | FAC_BOOLS, 0 },
                               { "count", FAC_INTS, FAC_HOST },
                               { 0 } };

static bool infer(fac_node *n) {
    const int rank = n->in[0]->type.dims.n;
    fac_contents count;
    int64_t places = fac_symbol(n->graph, NULL);
    if (fac_known_numbers(n->in[1], &count)) {
        if (count.n != 1 || count.v[0] < 0)
            return fac_fail(n, FAC_E_ARGUMENT, "count must be one number, and no less than 0");
        places = count.v[0];
    }
    n->out[0]->type = (fac_type){ FAC_I64, fac_shape(rank, places) };
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_array *x = &r->in[0];
    const fac_dims *d = &x->type.dims;
    const int64_t n = fac_dims_count(d), places = r->out[0].type.dims.d[1];
    int64_t index[FAC_DIMS] = { 0 }, found = 0;
    for (int64_t e = 0; e < n; e++) {
        if (x->f ? x->f[e] != 0 : x->i[e] != 0) {
            for (int k = 0; k < d->n && found < places; k++)
                r->out[0].i[k * places + found] = index[k];
            found++;
        }
        for (int k = d->n - 1; k >= 0; k--) {
            if (++index[k] < d->d[k]) break;
            index[k] = 0;
        }
    }
    if (found == places) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT, "nonzero: %lld elements are not 0, its count is %lld",
                     (long long)found, (long long)places);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)n, (void)g;
    y[0] = fac_nonzero(x[0]);
}

/* Compress: the slices where a list of bools is true; without an axis the elements, in row-major
 * order. */
static void load_compress(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[],
                          fac_value *y[]) {
    fac_value *x = fac_onnx_has(n, "axis") ? ins[0] : fac_reshape(ins[0], fac_shape(-1));
    if (n->nin < 2 || !ins[1] || ins[1]->type.dims.n != 1 || ins[1]->type.dtype != FAC_BOOL)
        fac_fail_graph(g, FAC_E_FORMAT, "Compress needs a list of bools");
    else
        y[0] = fac_gather(x, fac_squeeze(fac_nonzero(ins[1]), fac_shape(0)),
                          (int)fac_onnx_int(n, "axis", 0));
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *x = fac_onnx_name(w, n->in[0]);
    fac_onnx_put(w, "NonZero", 1, &x, fac_onnx_name(w, n->out[0]));
    return true;
}

static const fac_onnx_attr names[] = { { "axis", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "NonZero", 9, 0, NULL, load, 1 },
                                 { "", "Compress", 9, 0, names, load_compress, 0 },
                                 { 0 } };
static const fac_case cases[] = { { "nonzero(i64{3,0,-1,0,2}, i64(3))", 0, 0, 0 },
                                  { "nonzero(f32[2,2]{0,1,1,0}, i64(2))", 0, 0, 0 },
                                  { "nonzero(f32[0,3], i64(0))", 0, 0, 0 },
                                  { 0 } };

extern const fac_op fac_op_nonzero;
const fac_op fac_op_nonzero = {
    .name = "nonzero",
    .doc = "indices of what is not 0",
    .in = in,
    .out = fac_ports_y,
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_nonzero(fac_value *x) {
    fac_value *count = fac_sum(fac_cast(fac_cast(x, FAC_BOOL), FAC_I64), (fac_dims){ 0 }, false);
    return fac_emit(&fac_op_nonzero, NULL, 2, (fac_value *[]){ x, count });
}
