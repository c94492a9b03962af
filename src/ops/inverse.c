/* Inverses of square matrices. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/matrix/matrix.h"
#include "ops/onnx_put.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* The inverses of the matrices in the last two dims: x [..,M,M] -> [..,M,M]; of singular ones some
 * elements are infinite or NaN.  Floats. */
fac_value *fac_inverse(fac_value *x);
#endif

static bool infer(fac_node *n) { return fac_has_square_matrices(n, 0) && fac_infer_same(n); }

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_dims *x = &r->in[0].type.dims;
    const int64_t size = x->d[x->n - 1], all = fac_dims_count(x), width = 2 * size;
    double *m = fac_alloc((size_t)(size * width) + 1, sizeof *m);
    if (!m)
        return fac_raise_memory(err, "a matrix of %lld x %lld", (long long)size, (long long)size);
    for (int64_t at = 0; at < all; at += size * size) {
        memset(m, 0, (size_t)(size * width) * sizeof *m);
        for (int64_t i = 0; i < size; i++) {
            memcpy(m + i * width, r->in[0].f + at + i * size, (size_t)size * sizeof *m);
            m[i * width + size + i] = 1;
        }
        fac_matrix_eliminate(m, size, width);
        for (int64_t i = 0; i < size; i++)
            memcpy(r->out[0].f + at + i * size, m + i * width + size, (size_t)size * sizeof *m);
    }
    fac_release(m);
    return FAC_OK;
}

/* -y' dy y' */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *transposed = fac_grad_swap(n->out[0]);
    dx[0] = fac_neg(fac_matmul(fac_matmul(transposed, dy[0]), transposed));
}

static void cost(const fac_node *n, fac_cost *c) {
    const fac_dims *d = &n->in[0]->type.dims;
    const double size = d->d[d->n - 1] > 0 ? (double)d->d[d->n - 1] : 0;
    fac_cost_bytes(n, c);
    c->macs = fac_cost_count(n->in[0]) * size;
    c->other = 0;
}

/* ---- ONNX has determinants: the inverse is the matrix of cofactors, transposed, over that ---- */

enum { MOST = 8 }; /* larger ones are refused */

/* Of each element of a matrix the elements of its minor, which is the matrix without row and
 * column: numbers into the flat matrix, [size, size, size - 1, size - 1]. */
static const char *minors(const fac_onnx_writer *w, int64_t size) {
    int64_t to[MOST * MOST * (MOST - 1) * (MOST - 1)], less = size - 1, *at = to;
    const int64_t dims[] = { size, size, less, less };
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = 0; j < size; j++)
            for (int64_t p = 0; p < less; p++)
                for (int64_t q = 0; q < less; q++) *at++ = (p + (p >= i)) * size + q + (q >= j);
    return fac_onnx_binary(w, "Reshape", fac_onnx_list(w, (int)(at - to), to),
                           fac_onnx_list(w, 4, dims), NULL);
}

/* 1 and -1 as on a chessboard. */
static const char *signs(const fac_onnx_writer *w, int64_t size, fac_dtype dtype) {
    int64_t to[MOST * MOST];
    const int64_t dims[] = { size, size };
    for (int64_t k = 0; k < size * size; k++) to[k] = (k / size + k % size) % 2 ? -1 : 1;
    const char *list = fac_onnx_list(w, (int)(size * size), to);
    return fac_onnx_cast(w, fac_onnx_binary(w, "Reshape", list, fac_onnx_list(w, 2, dims), NULL),
                         dtype, NULL);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_type *x = &n->in[0]->type;
    const int rank = x->dims.n;
    const int64_t size = x->dims.d[rank - 1];
    const char *in = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    if (w->opset < 13 || size < 0 || size > MOST || x->dims.d[rank - 2] != size ||
        rank + 2 > FAC_DIMS)
        return false;
    if (size < 2) return fac_onnx_unary(w, size ? "Reciprocal" : "Identity", in, y);
    int64_t flat[FAC_DIMS] = { 0 }, over[FAC_DIMS] = { 0 }, order[FAC_DIMS];
    for (int k = 0; k < rank; k++) order[k] = k;
    flat[rank - 2] = size * size;
    over[rank - 2] = over[rank - 1] = 1;
    order[rank - 2] = rank - 1;
    order[rank - 1] = rank - 2;
    const char *row = fac_onnx_binary(w, "Reshape", in, fac_onnx_list(w, rank - 1, flat), NULL);
    const char *all = fac_onnx_binary(w, "Gather", row, minors(w, size), NULL);
    fac_onnx_put_int(w, "axis", rank - 2);
    const char *cofactors = fac_onnx_binary(w, "Mul", fac_onnx_unary(w, "Det", all, NULL),
                                            signs(w, size, x->dtype), NULL);
    const char *transposed = fac_onnx_unary(w, "Transpose", cofactors, NULL);
    fac_onnx_put_ints(w, "perm", rank, order);
    const char *det = fac_onnx_unary(w, "Det", in, NULL);
    det = fac_onnx_binary(w, "Reshape", det, fac_onnx_list(w, rank, over), NULL);
    return fac_onnx_binary(w, "Div", transposed, det, y);
}

static const fac_onnx onnx[] = { { "com.microsoft", "Inverse", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "inverse(f32[3,3]{1,1,0,0,1,1,1,0,1})", -1, 1, 1e-5 },
                                  { "inverse(f32[2,2,2]{0,1,1,0,1,1,0,1})", -1, 1, 1e-5 },
                                  { "inverse(f64[2,1,1]{2,4})", -1, 1, 1e-12 },
                                  { "inverse(f16[2,2]{1,1,0,2})", -1, 1, 4e-3 },
                                  { "inverse(f32[0,3,3])", 0, 0, 0 },
                                  { "inverse(f32[2,0,0])", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_inverse = {
    .name = "inverse",
    .doc = "inverses of square matrices",
    .in = fac_ports_x,
    .out = fac_ports_y,
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_inverse(fac_value *x) { return fac_emit(&fac_op_inverse, NULL, 1, &x); }
