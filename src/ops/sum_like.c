/* The adjoint of broadcasting. */
#include "ops/grad.h"
#include "ops/reduce.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
/* y = x summed over all dims along which a tensor shaped as `like` was broadcast to x: y has like's
 * shape.  Only the shape of like is used.  Floats and integers.  FAC_E_SHAPE when like does not
 * broadcast to x. */
fac_value *fac_sum_like(fac_value *x, fac_value *like);
#endif

static const fac_port in[] = { { "x", FAC_NUMBERS, 0 },
                               { "like", FAC_ANY, FAC_SHAPE_ONLY },
                               { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims, *like = &n->in[1]->type.dims;
    int lead = x->n - like->n;
    for (int k = 0; k < like->n; k++) {
        int64_t small = like->d[k], large = lead < 0 ? 0 : x->d[lead + k];
        if (lead < 0 || (small != 1 && small != large && small >= 0 && large >= 0))
            return fac_fail(n, FAC_E_SHAPE, "like does not broadcast to x");
    }
    n->out[0]->type = (fac_type){ n->in[0]->type.dtype, *like };
    return true;
}

static double real(double y, double x) { return y + x; }
static int64_t whole(int64_t y, int64_t x) { return (int64_t)((uint64_t)y + (uint64_t)x); }
static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_dims *x = &r->in[0].type.dims, *like = &r->out[0].type.dims;
    unsigned mask = 0;
    for (int k = 0, lead = x->n - like->n; k < x->n; k++)
        if (k < lead || (like->d[k - lead] == 1 && x->d[k] != 1)) mask |= 1u << k;
    fac_reduce_fold_axes(r, mask, &(fac_fold){ 0, real, 0, whole });
    return FAC_OK;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_grad_spread(dy[0], n->in[0]);
}

/* A sum over the dims in front and those that are 1 in like; with symbols it must be plain which
 * those are. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims, *y = &n->out[0]->type.dims;
    const int lead = x->n - y->n;
    fac_dims over = { 0 }, front = { 0 };
    for (int k = 0; k < x->n; k++) {
        if (k < lead)
            over.d[over.n++] = front.d[front.n++] = k;
        else if (y->d[k - lead] == 1 && x->d[k] != 1)
            over.d[over.n++] = k;
        else if (y->d[k - lead] != x->d[k])
            return false;
    }
    const char *from = fac_onnx_name(w, n->in[0]), *to = fac_onnx_name(w, n->out[0]);
    if (!over.n) return fac_onnx_unary(w, "Identity", from, to) != NULL;
    const char *sum = fac_onnx_binary(w, "ReduceSum", from, fac_onnx_list(w, over.n, over.d),
                                      front.n ? NULL : to);
    if (front.n) fac_onnx_binary(w, "Squeeze", sum, fac_onnx_list(w, front.n, front.d), to);
    return true;
}

static const fac_case cases[] = { { "sum_like(f32[3,4,5], f32[4,1])", -1, 1, 1e-6 },
                                  { "sum_like(f32[3,4,5], f32[3,4,5])", -1, 1, 0 },
                                  { "sum_like(f32[3,4,5], f32[])", -1, 1, 1e-5 },
                                  { "sum_like(f32[0,4], f32[4])", 0, 0, 0 },
                                  { 0 } };

extern const fac_op fac_op_sum_like;
const fac_op fac_op_sum_like = {
    .name = "sum_like",
    .doc = "sums over the dims along which something shaped as like was broadcast",
    .in = in,
    .out = fac_reduce_num_out,
    .infer = infer,
    .ref = ref,
    .save = save,
    .grad = grad,
    .cost = fac_reduce_cost,
    .cases = cases,
    .is = FAC_OP_RING,
    .rounding = { .rule = FAC_ROUND_SUM },
};
fac_value *fac_sum_like(fac_value *x, fac_value *like) {
    if (x && like && x->leaf != FAC_POISON && fac_dims_equal(&x->type.dims, &like->type.dims))
        return x; /* nothing to sum */
    return fac_emit(&fac_op_sum_like, NULL, 2, (fac_value *[]){ x, like });
}
