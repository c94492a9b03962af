#include <string.h>
#include "graph/graph_internal.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* Slices of x along an axis, picked by integers: y[a.., i.., b..] = x[a.., indices[i..], b..].  A
 * negative index counts from the end; one outside the axis is an error of the run.  x may be
 * weights in blocks, picked by any axis but the last: y is then in blocks, too. */
fac_value *fac_gather(fac_value *x, fac_value *indices, int axis);
#endif

typedef struct attrs {
    int64_t axis;
} attrs;
static const fac_attr table[] = { { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS,
                                    FAC_DIMS - 1, NULL, "the axis of x that the indices count" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY | FAC_BLOCKS, 0 },
                               { "indices", FAC_INTS, FAC_INDEX },
                               { 0 } };

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type, *i = &n->in[1]->type;
    const int axis = fac_axis(((const attrs *)n->attrs)->axis, x->dims.n);
    fac_dims y = { 0 };
    if (axis < 0)
        return fac_fail(n, FAC_E_SHAPE, "axis %lld of %d dims",
                        (long long)((const attrs *)n->attrs)->axis, x->dims.n);
    if (fac_dtype_get(x->dtype)->kind == 'q' && axis == x->dims.n - 1)
        return fac_fail(n, FAC_E_SHAPE, "the last axis of weights in blocks cannot be picked from");
    if (x->dims.n - 1 + i->dims.n > FAC_DIMS)
        return fac_fail(n, FAC_E_SHAPE, "the result has more than %d dims", FAC_DIMS);
    for (int k = 0; k < axis; k++) y.d[y.n++] = x->dims.d[k];
    for (int k = 0; k < i->dims.n; k++) y.d[y.n++] = i->dims.d[k];
    for (int k = axis + 1; k < x->dims.n; k++) y.d[y.n++] = x->dims.d[k];
    n->out[0]->type = (fac_type){ x->dtype, y };

    fac_contents items, at, r = { 0 }; /* Shape -> Gather */
    if (!fac_known(n->in[0], &items) || !fac_known_numbers(n->in[1], &at) || x->dims.n != 1)
        return true;
    for (r.n = 0; r.n < at.n; r.n++) {
        int64_t k = at.v[r.n] < 0 ? at.v[r.n] + items.n : at.v[r.n];
        if (k < 0 || k >= items.n)
            return fac_fail(n, FAC_E_ARGUMENT, "index %lld of %d elements", (long long)at.v[r.n],
                            items.n);
        fac_contents_put(&r, r.n, fac_contents_get(&items, (int)k));
    }
    return fac_knows_items(n, &r);
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const fac_dims *x = &m->in[0].type.dims, *i = &m->in[1].type.dims;
    const int axis = fac_axis(((const attrs *)m->attrs)->axis, x->n);
    int64_t at = 0;
    for (int k = 0; k < i->n; k++) at = at * i->d[k] + to[axis + k];
    int64_t index = m->in[1].i[at];
    if (index < 0) index += x->d[axis];
    for (int k = 0; k < axis; k++) from[k] = to[k];
    from[axis] = index;
    for (int k = axis + 1; k < x->n; k++) from[k] = to[k - 1 + i->n];
    *input = 0;
    return index >= 0 && index < x->d[axis];
}

/* Of constant indices that name each place of the axis once: which of them names place 0, 1, ...,
 * i64; NULL: they are others. */
static fac_value *inverse_order(const fac_node *n) {
    fac_graph *g = n->graph;
    const fac_value *of = n->in[1];
    const int axis = fac_axis(((const attrs *)n->attrs)->axis, n->in[0]->type.dims.n);
    const int64_t places = axis < 0 ? 0 : n->in[0]->type.dims.d[axis];
    if (of->leaf != FAC_CONST || !of->tensor || of->type.dtype != FAC_I64) return NULL;
    if (of->type.dims.n != 1 || of->type.dims.d[0] != places || places < 2) return NULL;
    const int64_t *at = fac_tensor_data(of->tensor);
    int64_t *to = fac_arena_alloc(&g->arena, (size_t)places, sizeof *to);
    fac_tensor *t = NULL;
    if (!at || !to) return NULL;
    memset(to, -1, (size_t)places * sizeof *to);
    for (int64_t i = 0; i < places; i++) {
        const int64_t place = at[i] < 0 ? at[i] + places : at[i];
        if (place < 0 || place >= places || to[place] >= 0) return NULL;
        to[place] = i;
    }
    if (fac_tensor_new(NULL, FAC_I64, fac_shape(places), &t, NULL) ||
        fac_tensor_write(t, to, (size_t)places * sizeof *to, NULL)) {
        fac_tensor_free(t);
        return NULL;
    }
    fac_value *order = fac_const(g, t);
    fac_tensor_free(t);
    return order;
}

/* Rows that only change places go back; what several indices name is added up. */
extern const fac_op fac_op_gather_grad;
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *order = inverse_order(n), *all[] = { n->in[0], n->in[1], dy[0] };
    if (order)
        dx[0] = fac_emit(n->op, n->attrs, 2, (fac_value *[]){ dy[0], order });
    else
        dx[0] = fac_emit(&fac_op_gather_grad, n->attrs, 3, all);
}

static const fac_onnx onnx[] = { { "", "Gather", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "gather(f32[5,3], i64[2,2])", -5, 4, 0 },
                                  { "gather(f32[3,5,2], i64[4]) axis=1", -5, 4, 0 },
                                  { "gather(f32[3,5], i32[]) axis=1", -5, 4, 0 },
                                  { "gather(i64[5], i64[3])", -5, 4, 0 },
                                  { "gather(f16[2,5], i64[0]) axis=-1", -5, 4, 0 },
                                  { 0 } };

const fac_op fac_op_gather = {
    .name = "gather",
    .doc = "slices of x picked by indices",
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
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_gather(fac_value *x, fac_value *indices, int axis) {
    return fac_emit(&fac_op_gather, &(attrs){ axis }, 2, (fac_value *[]){ x, indices });
}
