/* Rows written into a cache: what a step of decoding adds to its keys and values.  ONNX
 * TensorScatter. */
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/onnx_put.h"
#include "ops/shape.h"
#include "base/error.h"

#if FAC_INTERFACE
/* y = cache, but row t of `rows` of sequence b stands at row at[b] + t:  cache B,G,T,D  rows
 * B,G,Q,D  at integers [B]. A row that would stand outside of the cache is an error of the run,
 * before anything is written.  As the next contents of a parameter, fac_update(cache, y), it is
 * written in place when everything else that reads the old contents has run. */
fac_value *fac_cache_write(fac_value *cache, fac_value *rows, fac_value *at);
#endif

static const fac_port in[] = {
    { "cache", FAC_NUMBERS, 0 }, { "rows", FAC_NUMBERS, 0 }, { "at", FAC_INTS, 0 }, { 0 }
};

static bool infer(fac_node *n) {
    const fac_type *c = &n->in[0]->type, *r = &n->in[1]->type, *at = &n->in[2]->type;
    if (c->dtype != r->dtype) return fac_fail(n, FAC_E_DTYPE, "cache and rows must have one dtype");
    if (c->dims.n != 4 || r->dims.n != 4)
        return fac_fail(n, FAC_E_SHAPE, "cache and rows must have four dims");
    for (int k = 0; k < 4; k++)
        if (k != 2 && fac_differ(c->dims.d[k], r->dims.d[k]))
            return fac_fail(n, FAC_E_SHAPE, "cache and rows differ in dim %d", k);
    if (c->dims.d[2] >= 0 && r->dims.d[2] > c->dims.d[2])
        return fac_fail(n, FAC_E_SHAPE, "more rows than the cache has");
    if (at->dims.n != 1 || fac_differ(at->dims.d[0], c->dims.d[0]))
        return fac_fail(n, FAC_E_SHAPE, "at must have one number for each sequence");
    n->out[0]->type = *c;
    return true;
}

static void copy(const fac_array *from, int64_t a, fac_array *to, int64_t b, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        if (to->f)
            to->f[b + k] = from->f[a + k];
        else
            to->i[b + k] = from->i[a + k];
    }
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const int64_t *c = r->in[0].type.dims.d, *rows = r->in[1].type.dims.d;
    const int64_t width = c[3], all = c[0] * c[1] * c[2] * width;
    for (int64_t b = 0; b < c[0]; b++)
        if (r->in[2].i[b] < 0 || r->in[2].i[b] > c[2] - rows[2])
            return fac_raise(err, FAC_E_ARGUMENT,
                             "cache_write: %lld rows at %lld of a cache of %lld",
                             (long long)rows[2], (long long)r->in[2].i[b], (long long)c[2]);
    copy(&r->in[0], 0, &r->out[0], 0, all);
    for (int64_t h = 0; h < c[0] * c[1]; h++)
        copy(&r->in[1], h * rows[2] * width, &r->out[0], (h * c[2] + r->in[2].i[h / c[1]]) * width,
             rows[2] * width);
    return FAC_OK;
}

/* Gradients: rows get those of their places, the cache gets the others. */
static fac_value *places(const fac_node *n, fac_value *like) {
    fac_graph *g = like->graph;
    fac_value *size = fac_dim_of(n->in[1], 2);
    fac_value *steps = fac_arange(fac_number(g, FAC_I64, 0), size, fac_number(g, FAC_I64, 1));
    fac_value *at = fac_add(fac_unsqueeze(fac_cast(n->in[2], FAC_I64), fac_shape(1, 2, 3)),
                            fac_unsqueeze(steps, fac_shape(0, 1, 3)));
    return fac_expand_to(at, fac_shape_of(n->in[1]));
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    if (fac_needs(n, 1)) dx[1] = fac_gather_elements(dy[0], places(n, dy[0]), 2);
    if (fac_needs(n, 0)) {
        fac_value *zeros = fac_mul(n->in[1], fac_number(n->graph, n->in[1]->type.dtype, 0));
        dx[0] = fac_cache_write(dy[0], zeros, n->in[2]);
    }
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    if (w->opset < 24) return false;
    const char *at = fac_onnx_name(w, n->in[2]);
    if (n->in[2]->type.dtype != FAC_I64) at = fac_onnx_cast(w, at, FAC_I64, NULL);
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]), at };
    fac_onnx_put(w, "TensorScatter", 3, ins, fac_onnx_name(w, n->out[0]));
    return true;
}

static const fac_case cases[] = { { "cache_write(f32[2,3,6,5], f32[2,3,2,5], i64[2])", 0, 4, 0 },
                                  { "cache_write(f16[1,2,9,4], f16[1,2,1,4], i32[1])", 0, 4, 0 },
                                  { "cache_write(f32[3,1,4,8], f32[3,1,0,8], i64[3])", 0, 4, 0 },
                                  { 0 } };

const fac_op fac_op_cache_write = {
    .name = "cache_write",
    .doc = "rows written into a cache from a position on",
    .in = in,
    .out = fac_ports_y,
    .is = FAC_OP_PARTS,
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_cache_write(fac_value *cache, fac_value *rows, fac_value *at) {
    return fac_emit(&fac_op_cache_write, NULL, 3, (fac_value *[]){ cache, rows, at });
}
