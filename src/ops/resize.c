/* Another size of a storage, as PyTorch's resize_ and NumPy's resize method: no image is scaled,
 * see interpolate. */
#include "ops/host_list.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* The elements of x in row-major order under other dims, an i64[n]: as many as fit, zeros after
 * them. */
fac_value *fac_resize_to(fac_value *x, fac_value *shape);
#endif

extern const fac_op fac_op_resize;
static const fac_port in[] = { { "x", FAC_NUMBERS | FAC_BOOLS, 0 },
                               { "shape", FAC_INTS, FAC_HOST },
                               { 0 } };

static bool infer(fac_node *n) {
    fac_contents c;
    fac_dims y = { fac_host_length(n->in[1]), { 0 } };
    if (fac_list_is_open(n->in[1])) return fac_rankless(n->out[0], n->in[0]->type.dtype), true;
    if (y.n < 0 || y.n > FAC_DIMS)
        return fac_fail(n, FAC_E_SHAPE, "the shape must be a list of at most %d dims", FAC_DIMS);
    const bool known = fac_known(n->in[1], &c);
    for (int k = 0; k < y.n; k++) {
        y.d[k] = known ? c.v[k] : fac_symbol(n->graph, NULL);
        if (known && c.v[k] < 0 && !(c.symbolic >> k & 1))
            return fac_fail(n, FAC_E_ARGUMENT, "dim %d is %lld", k, (long long)c.v[k]);
    }
    n->out[0]->type = (fac_type){ n->in[0]->type.dtype, y };
    return true;
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const fac_dims *x = &m->in[0].type.dims;
    int64_t at = 0;
    for (int k = 0; k < m->out.n; k++) at = at * m->out.d[k] + to[k];
    *input = 0;
    if (at >= fac_dims_count(x)) return false;
    for (int k = x->n - 1; k >= 0; k--) {
        from[k] = at % x->d[k];
        at /= x->d[k];
    }
    return true;
}

/* Only once all sizes are numbers. */
static int64_t expands(const fac_node *n) {
    enum { NODES = 4 };
    const bool known =
        fac_dims_count(&n->in[0]->type.dims) >= 0 && fac_dims_count(&n->out[0]->type.dims) >= 0;
    return known ? NODES : 0;
}

static void expand(const fac_node *n, fac_value *out[]) {
    fac_value *x = n->in[0], *flat = fac_reshape(x, fac_shape(-1));
    const fac_type type = fac_value_type(x);
    const fac_dims y = n->out[0]->type.dims;
    const int64_t have = fac_dims_count(&type.dims), want = fac_dims_count(&y);
    if (!have) flat = fac_reshape_sizes(x, fac_shape(0));
    if (want < have) flat = fac_slice(flat, 0, 0, want, 1);
    if (want > have) {
        fac_value *none = fac_number(n->graph, type.dtype, 0);
        none = fac_expand(none, fac_shape(want - have));
        flat = fac_concat((fac_value *[]){ flat, none }, 2, 0);
    }
    out[0] = fac_reshape_sizes(flat, y);
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_resize_to(dy[0], fac_shape_of(n->in[0]));
}

static const fac_case cases[] = { { "resize(f32[2,3], i64{4})", -4, 4, 0 },
                                  { "resize(f32[2,3], i64{3,3})", -4, 4, 0 },
                                  { "resize(i64[], i64{2,2})", -9, 9, 0 },
                                  { "resize(f16[0,3], i64{2})", 0, 0, 0 },
                                  { "resize(bool[5], i64{0,3})", 0, 1, 0 },
                                  { "resize(f64[5], i64{})", -4, 4, 0 },
                                  { 0 } };

const fac_op fac_op_resize = {
    .name = "resize",
    .doc = "as many elements as fit under other dims, zeros after them",
    .in = in,
    .out = fac_ports_y,
    .infer = infer,
    .move = move,
    .expand = expand,
    .expands = expands,
    .grad = grad,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_resize_to(fac_value *x, fac_value *shape) {
    return fac_emit(&fac_op_resize, NULL, 2, (fac_value *[]){ x, shape });
}
