#include "ops/shape.h"

#if FAC_INTERFACE
/* y[i, j, k] = x[i, index[i, j, k], k] (axis 1): one index for each element of the result, which
 * has the indices' shape.  A negative index counts from the end; one outside the axis is an error
 * of the run. */
fac_value *fac_gather_elements(fac_value *x, fac_value *indices, int axis);
#endif

typedef struct attrs {
    int64_t axis;
} attrs;
static const fac_attr table[] = { { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS,
                                    FAC_DIMS - 1, NULL, "the axis of x that the indices count" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, 0 }, { "indices", FAC_INTS, FAC_INDEX }, { 0 } };

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type, *i = &n->in[1]->type;
    const int axis = fac_axis(((const attrs *)n->attrs)->axis, x->dims.n);
    if (axis < 0)
        return fac_fail(n, FAC_E_SHAPE, "axis %lld of %d dims",
                        (long long)((const attrs *)n->attrs)->axis, x->dims.n);
    if (i->dims.n != x->dims.n)
        return fac_fail(n, FAC_E_SHAPE, "the indices have %d dims, x has %d", i->dims.n, x->dims.n);
    for (int k = 0; k < x->dims.n; k++)
        if (k != axis && x->dims.d[k] >= 0 && i->dims.d[k] > x->dims.d[k])
            return fac_fail(n, FAC_E_SHAPE, "dim %d of the indices is larger than that of x", k);
    n->out[0]->type = (fac_type){ x->dtype, i->dims };
    return true;
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const fac_dims *x = &m->in[0].type.dims, *i = &m->in[1].type.dims;
    const int axis = fac_axis(((const attrs *)m->attrs)->axis, x->n);
    int64_t at = 0;
    for (int k = 0; k < i->n; k++) {
        at = at * i->d[k] + to[k];
        from[k] = to[k];
    }
    from[axis] = m->in[1].i[at];
    if (from[axis] < 0) from[axis] += x->d[axis];
    *input = 0;
    return from[axis] >= 0 && from[axis] < x->d[axis];
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *zeros = fac_full(fac_shape_of(n->in[0]), dy[0]->type.dtype, 0);
    dx[0] = fac_scatter_elements(zeros, n->in[1], dy[0], (int)((const attrs *)n->attrs)->axis,
                                 FAC_SCATTER_ADD);
}

static const fac_onnx onnx[] = { { "", "GatherElements", 11, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "gather_elements(f32[5,3], i64[2,3])", -5, 4, 0 },
                                  { "gather_elements(f32[3,5,2], i64[3,4,1]) axis=1", -5, 4, 0 },
                                  { "gather_elements(i64[5], i32[3]) axis=-1", -5, 4, 0 },
                                  { "gather_elements(f16[2,5], i64[0,5])", -2, 1, 0 },
                                  { 0 } };

const fac_op fac_op_gather_elements = {
    .name = "gather_elements",
    .doc = "elements of x picked by one index each",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .move = move,
    .onnx = onnx,
    .grad = grad,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_gather_elements(fac_value *x, fac_value *indices, int axis) {
    return fac_emit(&fac_op_gather_elements, &(attrs){ axis }, 2, (fac_value *[]){ x, indices });
}
