/* The matrix product with NumPy's rules. */
#include <string.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/fusions.h"
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/product.h"

#if FAC_INTERFACE
/* c[..., i, j] = sum over k of a[..., i, k] b[..., k, j];  leading dims broadcast.  A
 * one-dimensional a is a row and a one-dimensional b a column; that dim is missing from c.  Floats
 * and integers (which wrap), a and b of one dtype. */
fac_value *fac_matmul(fac_value *a, fac_value *b);
#endif

static const fac_port in[] = { { "a", FAC_NUMBERS, 0 }, { "b", FAC_NUMBERS, 0 }, { 0 } };
static const fac_port out[] = { { "c", FAC_NUMBERS, 0 }, { 0 } };

/* The operand as matrices: dims of the batch, rows and columns. */
typedef struct matrices {
    fac_dims batch;
    int64_t rows, columns;
} matrices;

static matrices matrices_of(const fac_dims *d, bool left) {
    matrices m = { *d, 1, 1 };
    m.batch.n = d->n > 2 ? d->n - 2 : 0;
    m.rows = left ? 1 : d->d[0];
    if (d->n > 1) m.rows = d->d[d->n - 2];
    m.columns = d->n > 1 || left ? d->d[d->n - 1] : 1;
    return m;
}

static bool infer(fac_node *n) {
    const fac_type *a = &n->in[0]->type, *b = &n->in[1]->type;
    if (a->dtype != b->dtype) return fac_fail(n, FAC_E_DTYPE, "a and b must have one dtype");
    if (a->dims.n < 1 || b->dims.n < 1)
        return fac_fail(n, FAC_E_SHAPE, "a and b must have at least one dim");
    matrices l = matrices_of(&a->dims, true), r = matrices_of(&b->dims, false);
    if (l.columns >= 0 && r.rows >= 0 && l.columns != r.rows)
        return fac_fail(n, FAC_E_SHAPE, "a has %lld columns, b %lld rows", (long long)l.columns,
                        (long long)r.rows);
    fac_type c = { a->dtype, { 0 } };
    if (!fac_broadcast(n, &l.batch, &r.batch, &c.dims)) return false;
    if (a->dims.n > 1) c.dims.d[c.dims.n++] = l.rows;
    if (b->dims.n > 1) c.dims.d[c.dims.n++] = r.columns;
    n->out[0]->type = c;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_array *a = &r->in[0], *b = &r->in[1], *c = &r->out[0];
    matrices l = matrices_of(&a->type.dims, true), s = matrices_of(&b->type.dims, false);
    fac_dims batch = c->type.dims;
    batch.n -= (a->type.dims.n > 1) + (b->type.dims.n > 1);
    int64_t m = l.rows, n = s.columns, k = l.columns, count = fac_dims_count(&batch);
    if (m * n == 0) return FAC_OK;
    for (int64_t i = 0; i < count; i++) {
        int64_t x = fac_product_matrix(i, &batch, &l.batch) * m * k,
                y = fac_product_matrix(i, &batch, &s.batch) * k * n, z = i * m * n;
        if (c->f) {
            memset(c->f + z, 0, (size_t)(m * n) * sizeof *c->f);
            fac_product_real(m, n, k, a->f + x, k, 1, b->f + y, n, 1, c->f + z);
        } else {
            memset(c->i + z, 0, (size_t)(m * n) * sizeof *c->i);
            fac_product_int(m, n, k, a->i + x, k, 1, b->i + y, n, 1, c->i + z);
        }
    }
    return FAC_OK;
}

static void cost(const fac_node *n, fac_cost *to) {
    const fac_dims *a = &n->in[0]->type.dims;
    int64_t k = a->n ? a->d[a->n - 1] : 0;
    fac_cost_bytes(n, to);
    to->macs = fac_cost_count(n->out[0]) * (k > 0 ? (double)k : 0);
    to->other = 0;
}

/* da = dy b^T and db = a^T dy, summed over the batch where the operand was broadcast.  A b without
 * batch meets all rows of a's batch at once: one tall product instead of a sum of many. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    int a_dims = n->in[0]->type.dims.n, b_dims = n->in[1]->type.dims.n, last = dy[0]->type.dims.n;
    fac_value *a = a_dims > 1 ? n->in[0] : fac_unsqueeze(n->in[0], fac_shape(0)), *d = dy[0];
    fac_value *b = b_dims > 1 ? n->in[1] : fac_unsqueeze(n->in[1], fac_shape(1));
    if (b_dims == 1) d = fac_unsqueeze(d, fac_shape(last++));
    if (a_dims == 1) d = fac_unsqueeze(d, fac_shape(last - 1));
    if (fac_needs(n, 0)) {
        fac_value *da = fac_sum_like(fac_matmul(d, fac_grad_swap(b)), a);
        dx[0] = a_dims > 1 ? da : fac_squeeze(da, fac_shape(0));
    }
    if (fac_needs(n, 1)) {
        fac_value *db;
        if (b_dims <= 2 && a_dims > 2)
            db = fac_matmul(fac_grad_swap(fac_flatten(a, a_dims - 1)), fac_flatten(d, a_dims - 1));
        else
            db = fac_sum_like(fac_matmul(fac_grad_swap(a), d), b);
        dx[1] = b_dims > 1 ? db : fac_squeeze(db, fac_shape(1));
    }
}

static const fac_onnx onnx[] = {
    { "", "MatMul", 1, 0, NULL, NULL, 0 },
    { "com.microsoft", "FusedMatMul", 1, 0, fac_names_fused_matmul, fac_load_fused_matmul, 0 },
    { "com.microsoft", "TransposeMatMul", 1, 0, fac_names_fused_matmul, fac_load_fused_matmul, 0 },
    { 0 }
};
static const fac_case cases[] = { { "matmul(f32[5,7], f32[7,3])", -1, 1, 1e-5 },
                                  { "matmul(f32[2,1,4,6], f32[3,6,5])", -1, 1, 1e-5 },
                                  { "matmul(f32[6], f32[2,6,5])", -1, 1, 1e-5 },
                                  { "matmul(f32[3,4,6], f32[6])", -1, 1, 1e-5 },
                                  { "matmul(f32[6], f32[6])", -1, 1, 1e-5 },
                                  { "matmul(f32[65,129], f32[129,33])", -1, 1, 1e-5 },
                                  { "matmul(f32[4,0], f32[0,3])", -1, 1, 0 },
                                  { "matmul(f32[0,4,3], f32[3,2])", -1, 1, 0 },
                                  { "matmul(f16[5,7], f16[7,3])", -1, 1, 4e-3 },
                                  { "matmul(f64[5,7], f64[7,3])", -1, 1, 1e-13 },
                                  { "matmul(i32[3,4], i32[4,2])", -9, 9, 0 },
                                  { "matmul(u8[3,4], u8[4,2])", 0, 255, 0 },
                                  { 0 } };

extern const fac_op fac_op_matmul;
const fac_op fac_op_matmul = {
    .name = "matmul",
    .doc = "the matrix product, over any number of leading dims",
    .in = in,
    .out = out,
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .onnx = onnx,
    .cases = cases,
    .is = FAC_OP_RING,
    .layer = FAC_CLASS_MATMUL,
    .torch = "MatMul",
    .mixed = FAC_MIXED_PRODUCT,
    .images = FAC_IMAGES_MATRICES,
    .rounding = { .rule = FAC_ROUND_PRODUCT },
};
fac_value *fac_matmul(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_matmul, NULL, 2, (fac_value *[]){ a, b });
}
