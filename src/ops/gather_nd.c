#include "graph/graph_internal.h"
#include "ops/onnx_put.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* The last dim of the indices [.., K] holds places in the K dims of x that follow the first
 * batch_dims, which both share: y [b.., i.., rest of x].  A negative number counts from the end; a
 * place outside is an error of the run. */
fac_value *fac_gather_nd(fac_value *x, fac_value *indices, int batch_dims);
#endif

typedef struct attrs {
    int64_t batch_dims;
} attrs;
static const fac_attr table[] = { { "batch_dims", FAC_A_INT, offsetof(attrs, batch_dims), 0, 0, 0,
                                    FAC_DIMS - 1, NULL, "leading dims that x and indices share" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, 0 }, { "indices", FAC_INTS, FAC_INDEX }, { 0 } };

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type, *i = &n->in[1]->type;
    const int64_t batch = ((const attrs *)n->attrs)->batch_dims;
    if (i->dims.n < 1) return fac_fail(n, FAC_E_SHAPE, "the indices must have a dim");
    const int64_t depth = i->dims.d[i->dims.n - 1];
    if (depth < 0) return fac_rankless(n->out[0], x->dtype), true;
    if (batch >= i->dims.n || depth > x->dims.n - batch)
        return fac_fail(n, FAC_E_SHAPE, "places of %lld numbers after %lld dims in a tensor of %d",
                        (long long)depth, (long long)batch, x->dims.n);
    const int rest = x->dims.n - (int)batch - (int)depth;
    fac_dims y = { 0 };
    if (i->dims.n - 1 + rest > FAC_DIMS)
        return fac_fail(n, FAC_E_SHAPE, "the result has more than %d dims", FAC_DIMS);
    for (int k = 0; k < batch; k++)
        if (x->dims.d[k] >= 0 && i->dims.d[k] >= 0 && x->dims.d[k] != i->dims.d[k])
            return fac_fail(n, FAC_E_SHAPE, "batch dim %d differs", k);
    for (int k = 0; k < i->dims.n - 1; k++) y.d[y.n++] = i->dims.d[k];
    for (int k = x->dims.n - rest; k < x->dims.n; k++) y.d[y.n++] = x->dims.d[k];
    n->out[0]->type = (fac_type){ x->dtype, y };
    return true;
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const fac_dims *x = &m->in[0].type.dims, *i = &m->in[1].type.dims;
    const int batch = (int)((const attrs *)m->attrs)->batch_dims, depth = (int)i->d[i->n - 1];
    int64_t at = 0;
    for (int k = 0; k < i->n - 1; k++) at = at * i->d[k] + to[k];
    for (int k = 0; k < batch; k++) from[k] = to[k];
    for (int k = 0; k < depth; k++) {
        const int64_t size = x->d[batch + k], index = m->in[1].i[at * depth + k];
        from[batch + k] = index < 0 ? index + size : index;
        if (from[batch + k] < 0 || from[batch + k] >= size) return false;
    }
    for (int k = batch + depth; k < x->n; k++) from[k] = to[k - batch - depth + i->n - 1];
    *input = 0;
    return true;
}

/* The indices [b.., i.., K] with the places in the batch dims written out before the others: [b..,
 * i.., batch + K]. */
static fac_value *full_places(const fac_node *n) {
    fac_graph *g = n->graph;
    const int batch = (int)((const attrs *)n->attrs)->batch_dims, rank = n->in[1]->type.dims.n;
    fac_value *column[FAC_DIMS], *places = fac_cast(n->in[1], FAC_I64),
                                 *shape = fac_shape_of(n->in[1]);
    fac_value *one = fac_ints(g, fac_shape(1)),
              *as_column[] = { fac_slice(shape, 0, 0, rank - 1, 1), one };
    for (int k = 0; k < batch; k++) {
        fac_dims others = { 0 };
        for (int j = 0; j < rank; j++)
            if (j != k) others.d[others.n++] = j;
        fac_value *count =
            fac_arange(fac_ints(g, fac_shape(0)), fac_slice(shape, 0, k, k + 1, 1), one);
        column[k] = fac_expand_to(fac_unsqueeze(count, others), fac_concat(as_column, 2, 0));
    }
    column[batch] = places;
    return batch ? fac_concat(column, batch + 1, rank - 1) : places;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *zeros = fac_full(fac_shape_of(n->in[0]), dy[0]->type.dtype, 0);
    dx[0] = fac_scatter_nd(zeros, full_places(n), dy[0], FAC_SCATTER_ADD);
}

static const fac_onnx onnx[] = { { "", "GatherND", 11, 0, NULL, NULL, 0 },
                                 { "com.microsoft", "GatherND", 1, 0, NULL, NULL, 0 },
                                 { 0 } };
/* Its indices are i64. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *indices = fac_onnx_name(w, n->in[1]);
    if (n->in[1]->type.dtype != FAC_I64) indices = fac_onnx_cast(w, indices, FAC_I64, NULL);
    fac_onnx_binary(w, "GatherND", fac_onnx_name(w, n->in[0]), indices,
                    fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "batch_dims", ((const attrs *)n->attrs)->batch_dims);
    return true;
}

static const fac_case cases[] = { { "gather_nd(f32[3,4,5], i64[6,2])", -3, 2, 0 },
                                  { "gather_nd(f32[3,4,5], i64[2,3,3])", -3, 2, 0 },
                                  { "gather_nd(i64[3,4,5], i32[3,2,1]) batch_dims=1", -4, 3, 0 },
                                  { "gather_nd(f16[3,2], i64[0,1])", -3, 2, 0 },
                                  { 0 } };

const fac_op fac_op_gather_nd = {
    .name = "gather_nd",
    .doc = "slices of x at given places",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .move = move,
    .onnx = onnx,
    .save = save,
    .grad = grad,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_gather_nd(fac_value *x, fac_value *indices, int batch_dims) {
    return fac_emit(&fac_op_gather_nd, &(attrs){ batch_dims }, 2, (fac_value *[]){ x, indices });
}
