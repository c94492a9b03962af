/* Determinants of square matrices. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/constant.h"
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/matrix/matrix.h"

#if FAC_INTERFACE
/* The determinants of the matrices in the last two dims: x [..,M,M] -> [..]; 1 of matrices without
 * elements.  Floats.  The gradient is the matrix of cofactors, made of M M determinants; of
 * singular matrices too. */
fac_value *fac_det(fac_value *x);
#endif

static bool infer(fac_node *n) {
    if (!fac_has_square_matrices(n, 0)) return false;
    fac_dims y = n->in[0]->type.dims;
    y.n -= 2;
    n->out[0]->type = (fac_type){ n->in[0]->type.dtype, y };
    return true;
}

/* By elimination with the largest pivots; destroys m. */
static double determinant(double *m, int64_t size) {
    double det = 1;
    for (int64_t c = 0; c < size; c++) {
        int64_t best = c;
        for (int64_t i = c + 1; i < size; i++)
            if (fabs(m[i * size + c]) > fabs(m[best * size + c])) best = i;
        const double pivot = m[best * size + c];
        if (pivot == 0) return 0;
        if (best != c) fac_matrix_swap(m + best * size, m + c * size, size);
        det *= best != c ? -pivot : pivot;
        for (int64_t i = c + 1; i < size; i++) {
            const double by = m[i * size + c] / pivot;
            for (int64_t k = c + 1; k < size; k++) m[i * size + k] -= by * m[c * size + k];
        }
    }
    return det;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_dims *x = &r->in[0].type.dims;
    const int64_t size = x->d[x->n - 1], count = fac_dims_count(&r->out[0].type.dims);
    double *m = fac_alloc((size_t)(size * size) + 1, sizeof *m);
    if (!m)
        return fac_raise_memory(err, "a matrix of %lld x %lld", (long long)size, (long long)size);
    for (int64_t k = 0; k < count; k++) {
        memcpy(m, r->in[0].f + k * size * size, (size_t)(size * size) * sizeof *m);
        r->out[0].f[k] = determinant(m, size);
    }
    fac_release(m);
    return FAC_OK;
}

enum { MOST = 64 };
/* Of each element of a matrix the elements of its minor, which is the matrix without row and
 * column: numbers into the flat matrix, [size, size, size - 1, size - 1]. */
static fac_value *minors(fac_graph *g, int64_t size) {
    const int64_t less = size - 1;
    double *to = fac_alloc((size_t)(size * size * less * less) + 1, sizeof *to), *at = to;
    if (!to) return fac_fail_graph(g, FAC_E_NOMEM, "no memory for the minors of a matrix");
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = 0; j < size; j++)
            for (int64_t p = 0; p < less; p++)
                for (int64_t q = 0; q < less; q++)
                    *at++ = (double)((p + (p >= i)) * size + q + (q >= j));
    fac_value *v = fac_constant(g, FAC_I64, fac_shape(size, size, less, less), to);
    fac_release(to);
    return v;
}

static fac_value *signs(fac_value *x, int64_t size) {
    double to[MOST * MOST];
    for (int64_t k = 0; k < size * size; k++) to[k] = (k / size + k % size) % 2 ? -1 : 1;
    return fac_constant(x->graph, x->type.dtype, fac_shape(size, size), to);
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0];
    const fac_dims *d = &x->type.dims;
    const int64_t size = d->d[d->n - 1];
    fac_dims flat = *d;
    flat.n -= 1;
    flat.d[d->n - 2] = size * size;
    if (size < 0 || size > MOST) {
        dx[0] = fac_fail_graph(n->graph, FAC_E_UNSUPPORTED,
                               "det: gradients of matrices of at most %d x %d", MOST, MOST);
        return;
    }
    dx[0] = fac_grad_times(x, 0);
    if (!size) return;
    fac_value *all = fac_gather(fac_shaped(x, flat), minors(n->graph, size), d->n - 2);
    dx[0] = fac_mul(fac_mul(fac_det(all), signs(x, size)), fac_unsqueeze(dy[0], fac_shape(-1, -2)));
}

static void cost(const fac_node *n, fac_cost *c) {
    const fac_dims *d = &n->in[0]->type.dims;
    const double size = d->d[d->n - 1] > 0 ? (double)d->d[d->n - 1] : 0;
    fac_cost_bytes(n, c);
    c->macs = fac_cost_count(n->in[0]) * size / 3;
    c->other = 0;
}

static const fac_onnx onnx[] = { { "", "Det", 11, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "det(f32[3,3])", -1, 1, 1e-5 },
                                  { "det(f32[2,3,4,4])", -1, 1, 1e-5 },
                                  { "det(f64[2,1,1])", -1, 1, 1e-12 },
                                  { "det(f16[2,2])", -1, 1, 4e-3 },
                                  { "det(f32[0,3,3])", 0, 0, 0 },
                                  { "det(f32[2,0,0])", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_det = {
    .name = "det",
    .doc = "determinants of square matrices",
    .in = fac_ports_x,
    .out = fac_ports_y,
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .onnx = onnx,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_det(fac_value *x) { return fac_emit(&fac_op_det, NULL, 1, &x); }
