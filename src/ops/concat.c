#include "ops/shape.h"

#if FAC_INTERFACE
fac_value *fac_concat(fac_value *const in[], int n,
                      int axis); /* joined along one axis; the other dims are equal */
#endif

typedef struct attrs {
    int64_t axis;
} attrs;
static const fac_attr table[] = { { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS,
                                    FAC_DIMS - 1, NULL,
                                    "the axis along which they follow each other" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, FAC_VARIADIC }, { 0 } };

/* Shapes are joined from pieces: [N] and [12, 64] give the contents [N, 12, 64]. */
static bool learn(fac_node *n) {
    fac_contents all = { 0 }, c;
    for (int i = 0; i < n->nports; i++) {
        if (!fac_known(n->in[i], &c) || all.n + c.n > FAC_KNOWN) return true;
        for (int k = 0; k < c.n; k++) fac_contents_put(&all, all.n++, fac_contents_get(&c, k));
    }
    return fac_knows_items(n, &all);
}

static bool infer(fac_node *n) {
    fac_type y = n->in[0]->type;
    const int axis = fac_axis(((const attrs *)n->attrs)->axis, y.dims.n);
    if (axis < 0)
        return fac_fail(n, FAC_E_SHAPE, "axis %lld of %d dims",
                        (long long)((const attrs *)n->attrs)->axis, y.dims.n);
    for (int i = 1; i < n->nports; i++) {
        const fac_type *x = &n->in[i]->type;
        if (x->dtype != y.dtype)
            return fac_fail(n, FAC_E_DTYPE, "input %d has another dtype than input 0", i);
        if (x->dims.n != y.dims.n)
            return fac_fail(n, FAC_E_SHAPE, "input %d has %d dims, input 0 has %d", i, x->dims.n,
                            y.dims.n);
        for (int k = 0; k < y.dims.n; k++) {
            int64_t *a = &y.dims.d[k], b = x->dims.d[k];
            if (k == axis)
                *a = fac_size_sum(n->graph, *a, b);
            else if (*a < 0)
                *a = b; /* equal when it runs, so the number is right for all */
            else if (b >= 0 && *a != b)
                return fac_fail(n, FAC_E_SHAPE, "dim %d of input %d is %lld, of input 0 %lld", k, i,
                                (long long)b, (long long)*a);
        }
    }
    n->out[0]->type = y;
    return learn(n);
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const int axis = fac_axis(((const attrs *)m->attrs)->axis, m->out.n);
    int i = 0;
    for (int k = 0; k < m->out.n; k++) from[k] = to[k];
    while (from[axis] >= m->in[i].type.dims.d[axis]) from[axis] -= m->in[i++].type.dims.d[axis];
    *input = i;
    return true;
}

extern const fac_op fac_op_slice;
/* Each input gets its part; sizes may be symbols, so they are taken from the shapes. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const int axis = fac_axis(((const attrs *)n->attrs)->axis, n->out[0]->type.dims.n);
    fac_graph *g = n->graph;
    fac_value *at = fac_ints(g, fac_shape(0)), *along = fac_ints(g, fac_shape(axis));
    for (int i = 0; i < n->nports; i++) {
        fac_value *size = fac_slice(fac_shape_of(n->in[i]), 0, axis, axis + 1, 1),
                  *end = fac_add(at, size);
        if (fac_needs(n, i))
            dx[i] = fac_emit(&fac_op_slice, NULL, 4, (fac_value *[]){ dy[0], at, end, along });
        at = end;
    }
}

/* Before opset 4 the axis is 1 where it is not said. */
static void load_old(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[], fac_value *y[]) {
    (void)g;
    y[0] = fac_concat(ins, n->nin, (int)fac_onnx_int(n, "axis", 1));
}
static const fac_onnx onnx[] = { { "", "Concat", 4, 0, NULL, NULL, 0 },
                                 { "", "Concat", 1, 3, NULL, load_old, 1 },
                                 { 0 } };
static const fac_case cases[] = { { "concat(f32[2,3], f32[2,1], f32[2,4]) axis=1", -4, 4, 0 },
                                  { "concat(f32[2,3], f32[1,3])", -4, 4, 0 },
                                  { "concat(i64[3]) axis=-1", -9, 9, 0 },
                                  { "concat(f32[2,3,4,5], f32[2,2,4,5]) axis=1", -4, 4, 0 },
                                  { "concat(f16[2,0], f16[2,3]) axis=1", -4, 4, 0 },
                                  { "concat(bool[0], bool[0])", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_concat = {
    .name = "concat",
    .doc = "tensors joined along an axis",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_KNOWS,
    .infer = infer,
    .move = move,
    .onnx = onnx,
    .grad = grad,
    .cases = cases,
    .images = FAC_IMAGES_JOINED,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_concat(fac_value *const in_[], int n, int axis) {
    return fac_emit(&fac_op_concat, &(attrs){ axis }, n, in_);
}
