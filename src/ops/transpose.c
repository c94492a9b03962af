#include "op_list.h"
#include "ops/shape.h"
#include "ops/transpose.h"

#if FAC_INTERFACE
/* dim k of the result is dim order[k] of x; order.n = 0: reversed; a view */
fac_value *fac_transpose(fac_value *x, fac_dims order);
#endif

typedef struct attrs {
    fac_dims perm;
} attrs;
static const fac_attr table[] = { { "perm", FAC_A_DIMS, offsetof(attrs, perm), 0, 0, 0, 0, NULL,
                                    "dim k of the result is dim perm[k] of x; none: reversed" },
                                  { 0 } };

/* Where dim k of the result comes from. */
static int source(const void *a, int rank, int k) {
    const fac_dims *perm = &((const attrs *)a)->perm;
    if (!perm->n) return rank - 1 - k;
    return (int)perm->d[k] + (perm->d[k] < 0 ? rank : 0);
}

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims, *perm = &((const attrs *)n->attrs)->perm;
    bool seen[FAC_DIMS];
    fac_contents order = { .n = perm->n };
    for (int k = 0; k < perm->n; k++) order.v[k] = perm->d[k];
    if (perm->n && perm->n != x->n)
        return fac_fail(n, FAC_E_SHAPE, "perm has %d dims, x has %d", perm->n, x->n);
    if (!fac_axes_set(n, &order, x->n, seen)) return false;
    fac_type *y = &n->out[0]->type;
    *y = (fac_type){ n->in[0]->type.dtype, { .n = x->n } };
    for (int k = 0; k < x->n; k++) y->dims.d[k] = x->d[source(n->attrs, x->n, k)];
    return fac_knows_same(n);
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    for (int k = 0; k < m->out.n; k++) from[source(m->attrs, m->out.n, k)] = to[k];
    *input = 0;
    return true;
}

static bool view(const fac_node *n, const fac_layout *in, fac_layout *out) {
    const int rank = n->in[0]->type.dims.n;
    if (in->block) return false;
    *out = (fac_layout){ .offset = in->offset };
    for (int k = 0; k < rank; k++) out->stride[k] = in->stride[source(n->attrs, rank, k)];
    return true;
}

bool fac_transpose_order(const fac_node *n, fac_dims *order) {
    if (!FAC_IS(n, transpose)) return false;
    order->n = n->in[0]->type.dims.n;
    for (int k = 0; k < order->n; k++) order->d[k] = source(n->attrs, order->n, k);
    return true;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const int rank = n->in[0]->type.dims.n;
    fac_dims back = { .n = rank };
    for (int k = 0; k < rank; k++) back.d[source(n->attrs, rank, k)] = k;
    dx[0] = fac_transpose(dy[0], back);
}

static const fac_onnx onnx[] = { { "", "Transpose", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "transpose(f32[2,3,4]) perm=0,2,1", -4, 4, 0 },
                                  { "transpose(f32[2,3,4])", -4, 4, 0 },
                                  { "transpose(f32[2,5,3,4]) perm=0,2,3,1", -4, 4, 0 },
                                  { "transpose(i8[3,2]) perm=1,0", -9, 9, 0 },
                                  { "transpose(f16[0,2]) perm=1,0", 0, 0, 0 },
                                  { "transpose(f32[])", -4, 4, 0 },
                                  { 0 } };

const fac_op fac_op_transpose = {
    .name = "transpose",
    .doc = "dims in another order",
    .in = fac_ports_any_x,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_KNOWS,
    .infer = infer,
    .move = move,
    .view = view,
    .onnx = onnx,
    .grad = grad,
    .cases = cases,
    .images = FAC_IMAGES_VIEW,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_transpose(fac_value *x, fac_dims order) {
    return fac_emit(&fac_op_transpose, &(attrs){ order }, 1, &x);
}
