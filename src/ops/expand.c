#include "ops/host_list.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* x broadcast against dims, NumPy rules both ways (a dim of 1 keeps x's); a view. */
fac_value *fac_expand(fac_value *x, fac_dims dims);
fac_value *fac_expand_to(fac_value *x, fac_value *shape); /* the same, dims from an i64[n] */
/* A tensor of this shape (an i64[n]) full of one number: a view of a constant. */
fac_value *fac_full(fac_value *shape, fac_dtype dtype, double number);
#endif

static const fac_port in[] = { { "x", FAC_ANY, 0 }, { "shape", FAC_INTS, FAC_HOST }, { 0 } };

static bool infer(fac_node *n) {
    fac_dims to = { 0 };
    fac_contents c;
    if (fac_list_is_open(n->in[1])) return fac_rankless(n->out[0], n->in[0]->type.dtype), true;
    to.n = fac_host_length(n->in[1]);
    if (to.n < 0 || to.n > FAC_DIMS)
        return fac_fail(n, FAC_E_SHAPE, "the shape must be a list of at most %d dims", FAC_DIMS);
    bool known = fac_known(n->in[1], &c);
    for (int k = 0; k < to.n; k++) {
        to.d[k] = known ? c.v[k] : fac_symbol(n->graph, NULL);
        if (known && c.v[k] < 0 && !(c.symbolic >> k & 1))
            return fac_fail(n, FAC_E_ARGUMENT, "dim %d is %lld", k, (long long)c.v[k]);
    }
    n->out[0]->type.dtype = n->in[0]->type.dtype;
    if (!fac_broadcast(n, &n->in[0]->type.dims, &to, &n->out[0]->type.dims)) return false;

    const fac_dims *y = &n->out[0]->type.dims;
    fac_contents x;
    if (!fac_known(n->in[0], &x) || y->n > 1 || (y->n == 1 && (y->d[0] < 0 || y->d[0] > FAC_KNOWN)))
        return true;
    fac_contents r = { .n = y->n ? (int)y->d[0] : 1 };
    for (int k = 0; k < r.n; k++) fac_contents_put(&r, k, fac_contents_get(&x, x.n == 1 ? 0 : k));
    return fac_knows_items(n, &r);
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const fac_dims *x = &m->in[0].type.dims;
    for (int k = 0; k < x->n; k++) from[k] = x->d[k] == 1 ? 0 : to[k + m->out.n - x->n];
    *input = 0;
    return true;
}

static bool view(const fac_node *n, const fac_layout *in_, fac_layout *out) {
    const fac_dims *x = &n->in[0]->type.dims, *y = &n->out[0]->type.dims;
    const int more = y->n - x->n;
    if (in_->block) return false;
    *out = (fac_layout){ .offset = in_->offset };
    for (int k = 0; k < x->n; k++) out->stride[k + more] = x->d[k] == 1 ? 0 : in_->stride[k];
    return true;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_sum_like(dy[0], n->in[0]);
}

/* The value is a tensor of one element; f32 0 when it is absent. */
static void load_constant(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[],
                          fac_value *out[]) {
    fac_tensor *t = fac_onnx_has(n, "value") ? fac_onnx_tensor(n, "value") : NULL, *scalar = NULL;
    fac_error err = { 0 };
    if (!t) {
        out[0] = fac_full(ins[0], FAC_F32, 0);
        return;
    }
    fac_type type = fac_tensor_type(t);
    if (fac_dims_count(&type.dims) != 1) {
        out[0] = fac_fail_graph(g, FAC_E_FORMAT,
                                "ConstantOfShape: the value has %lld elements, expected one",
                                (long long)fac_dims_count(&type.dims));
        return;
    }
    fac_status s = fac_tensor_view(t, (fac_dims){ 0 }, NULL, 0, &scalar, &err);
    out[0] = s ? fac_fail_graph(g, s, "ConstantOfShape: %s", err.text)
               : fac_expand_to(fac_const(g, scalar), ins[0]);
    fac_tensor_free(scalar);
}
static const fac_onnx_attr names[] = { { "value", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Expand", 8, 0, NULL, NULL, 0 },
                                 { "", "ConstantOfShape", 9, 0, names, load_constant, 1 },
                                 { 0 } };
static const fac_case cases[] = {
    { "expand(f32[3,1], i64{2,3,4})", -4, 4, 0 }, { "expand(f32[3,4], i64{3,1})", -4, 4, 0 },
    { "expand(i64[], i64{2,2})", -9, 9, 0 },      { "expand(bool[1], i64{0,3})", 0, 0, 0 },
    { "expand(f16[], i64{})", -4, 4, 0 },         { 0 }
};

const fac_op fac_op_expand = {
    .name = "expand",
    .doc = "x broadcast to a shape",
    .in = in,
    .out = fac_ports_y,
    .is = FAC_OP_KNOWS,
    .infer = infer,
    .move = move,
    .view = view,
    .onnx = onnx,
    .grad = grad,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_expand_to(fac_value *x, fac_value *shape) {
    return fac_emit(&fac_op_expand, NULL, 2, (fac_value *[]){ x, shape });
}
fac_value *fac_expand(fac_value *x, fac_dims dims) {
    return fac_expand_to(x, fac_ints(fac_value_graph(x), dims));
}
fac_value *fac_full(fac_value *shape, fac_dtype dtype, double number) {
    return fac_expand_to(fac_number(fac_value_graph(shape), dtype, number), shape);
}
