/* The fully connected layer. */
#include <string.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/product.h"
#include "ops/onnx_put.h"
#include "tensor/dtype.h"

#if FAC_INTERFACE
/* y[..., o] = b[o] + sum over i of x[..., i] w[o, i];  x ...,I  w O,I  b O or NULL  y ...,O.  f32
 * f64 f16 bf16. w may be f16 or bf16 where x is f32, and weights in blocks (FAC_Q8_0 ...): of those
 * x may be rounded to 8 bits in blocks of 32 by kernels, unless the program's precision is
 * highest. */
fac_value *fac_linear(fac_value *x, fac_value *w, fac_value *b);
#endif

static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "w", FAC_FLOATS | FAC_BLOCKS, 0 },
                               { "b", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };

/* Weights that are kept smaller than what is computed: in blocks, or halves where x is f32. */
static bool is_stored(fac_dtype w, fac_dtype x) {
    return fac_dtype_get(w)->kind == 'q' || (x == FAC_F32 && fac_dtype_is_half(w));
}
static bool in_blocks(const fac_node *n) {
    return is_stored(n->in[1]->type.dtype, n->in[0]->type.dtype);
}

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type, *w = &n->in[1]->type,
                   *b = n->in[2] ? &n->in[2]->type : NULL;
    if (x->dims.n < 1 || w->dims.n != 2)
        return fac_fail(n, FAC_E_SHAPE, "x must have at least one dim and w two");
    if ((x->dtype != w->dtype && !in_blocks(n)) || (b && b->dtype != x->dtype))
        return fac_fail(n, FAC_E_DTYPE, "x, w and b must have one dtype");
    int64_t i = x->dims.d[x->dims.n - 1], o = w->dims.d[0];
    if (i >= 0 && w->dims.d[1] >= 0 && i != w->dims.d[1])
        return fac_fail(n, FAC_E_SHAPE, "w takes %lld features, x has %lld",
                        (long long)w->dims.d[1], (long long)i);
    if (b && (b->dims.n != 1 || (b->dims.d[0] != o && b->dims.d[0] >= 0 && o >= 0)))
        return fac_fail(n, FAC_E_SHAPE, "b must have one number for each of the %lld features",
                        (long long)o);
    fac_type y = *x;
    y.dims.d[y.dims.n - 1] = o;
    n->out[0]->type = y;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_array *x = &r->in[0], *w = &r->in[1], *b = &r->in[2];
    int64_t features = w->type.dims.d[0], depth = w->type.dims.d[1], rows = 1;
    for (int k = 0; k < x->type.dims.n - 1; k++) rows *= x->type.dims.d[k];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t o = 0; o < features; o++) r->out[0].f[i * features + o] = b->f ? b->f[o] : 0;
    fac_product_real(rows, features, depth, x->f, depth, 1, w->f, 1, depth, r->out[0].f);
    return FAC_OK;
}

static void cost(const fac_node *n, fac_cost *to) {
    int64_t depth = n->in[1]->type.dims.d[1];
    fac_cost_bytes(n, to);
    to->macs = fac_cost_count(n->out[0]) * (depth > 0 ? (double)depth : 0);
    to->other = n->in[2] ? fac_cost_count(n->out[0]) : 0;
}

/* Rows of x and dy one below the other make one product for w. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    int last = n->in[0]->type.dims.n - 1;
    fac_value *rows = last == 1 ? dy[0] : fac_flatten(dy[0], last);
    fac_value *w = in_blocks(n) ? fac_cast(n->in[1], dy[0]->type.dtype) : n->in[1];
    if (fac_needs(n, 0)) dx[0] = fac_matmul(dy[0], w);
    if (fac_needs(n, 1))
        dx[1] = fac_matmul(fac_grad_swap(rows), last == 1 ? n->in[0] : fac_flatten(n->in[0], last));
    if (fac_needs(n, 2)) dx[2] = fac_sum(rows, fac_shape(0), false);
}

/* Rows are ONNX's Gemm; more dims a product with the transpose. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    if (in_blocks(n)) return false;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]),
                          fac_onnx_name(w, n->in[2]) };
    const char *y = fac_onnx_name(w, n->out[0]);
    if (n->in[0]->type.dims.n == 2) {
        fac_onnx_put(w, "Gemm", 3, ins, y);
        fac_onnx_put_int(w, "transB", 1);
        return true;
    }
    const char *transposed = fac_onnx_unary(w, "Transpose", ins[1], NULL);
    fac_onnx_put_ints(w, "perm", 2, (int64_t[]){ 1, 0 });
    const char *product = fac_onnx_binary(w, "MatMul", ins[0], transposed, ins[2] ? NULL : y);
    if (ins[2]) fac_onnx_binary(w, "Add", product, ins[2], y);
    return true;
}

static const fac_case cases[] = { { "linear(f32[5,7], f32[3,7], f32[3])", -1, 1, 1e-5 },
                                  { "linear(f32[2,3,4], f32[6,4])", -1, 1, 1e-5 },
                                  { "linear(f32[9], f32[4,9], f32[4])", -1, 1, 1e-5 },
                                  { "linear(f32[0,7], f32[3,7], f32[3])", -1, 1, 0 },
                                  { "linear(f32[2,0], f32[3,0], f32[3])", -1, 1, 0 },
                                  { "linear(f32[1,512], f32[130,512], f32[130])", -1, 1, 2e-5 },
                                  { "linear(f16[5,7], f16[3,7], f16[3])", -1, 1, 4e-3 },
                                  { "linear(f32[3,20], f32[12,20], f32[12])", -1, 1, 1e-5 },
                                  { 0 } };

extern const fac_op fac_op_linear;
const fac_op fac_op_linear = {
    .name = "linear",
    .doc = "x times the transpose of w, plus b: a fully connected layer",
    .in = in,
    .out = fac_ports_y,
    .infer = infer,
    .ref = ref,
    .save = save,
    .grad = grad,
    .cost = cost,
    .cases = cases,
    .is = FAC_OP_RING,
    .layer = FAC_CLASS_LINEAR,
    .torch = "Linear",
    .mixed = FAC_MIXED_PRODUCT,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_PRODUCT },
};
fac_value *fac_linear(fac_value *x, fac_value *w, fac_value *b) {
    return fac_emit(&fac_op_linear, NULL, 3, (fac_value *[]){ x, w, b });
}
