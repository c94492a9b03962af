/* Cholesky's factors of matrices. */
#include <math.h>
#include "base/error.h"
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/matrix/matrix.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* The lower triangular matrices L, with positive numbers on the diagonal, whose products L L' are
 * the matrices in the last two dims: x [..,M,M] -> [..,M,M].  Of a matrix that is not symmetric its
 * symmetric part (x + x') / 2 is meant, so the gradient is symmetric.  A run fails with
 * FAC_E_ARGUMENT where a matrix is not positive definite.  Floats. */
fac_value *fac_cholesky(fac_value *x);
#endif

static bool infer(fac_node *n) { return fac_has_square_matrices(n, 0) && fac_infer_same(n); }

/* Row by row; -1, or the row whose pivot is not above 0. */
static int64_t factor(const double *x, double *l, int64_t size) {
    for (int64_t i = 0; i < size; i++) {
        double *row = l + i * size;
        for (int64_t j = 0; j <= i; j++) {
            const double a = 0.5 * (x[i * size + j] + x[j * size + i]),
                         rest = a - fac_matrix_dot(row, l + j * size, j);
            if (i == j && !(rest > 0 && rest < INFINITY)) return i;
            row[j] = i == j ? sqrt(rest) : rest / l[j * size + j];
        }
        for (int64_t j = i + 1; j < size; j++) row[j] = 0;
    }
    return -1;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_matrices m = fac_matrices_of(&r->in[0].type.dims);
    for (int64_t k = 0; k < m.count; k++) {
        const int64_t at = k * m.rows * m.rows,
                      row = factor(r->in[0].f + at, r->out[0].f + at, m.rows);
        if (row >= 0)
            return fac_raise(err, FAC_E_ARGUMENT,
                             "cholesky: matrix %lld is not positive definite: pivot %lld is not "
                             "above 0",
                             (long long)k, (long long)row);
    }
    return FAC_OK;
}

/* With P the lower triangle of L' dL, its diagonal halved: the symmetric part of L^-T P L^-1
 * (Murray, "Differentiation of the Cholesky decomposition", 2016). */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *l = n->out[0], *inverse = fac_inverse(l);
    fac_value *p = fac_matmul(fac_grad_swap(l), dy[0]);
    p = fac_grad_times(fac_add(fac_tril(p, 0), fac_tril(p, -1)), 0.5);
    p = fac_matmul(fac_matmul(fac_grad_swap(inverse), p), inverse);
    dx[0] = fac_grad_times(fac_add(p, fac_grad_swap(p)), 0.5);
}

static void cost(const fac_node *n, fac_cost *c) {
    const fac_dims *d = &n->in[0]->type.dims;
    fac_cost_bytes(n, c);
    c->macs = fac_cost_count(n->in[0]) * fac_cost_size(d->d[d->n - 1]) / 6;
    c->other = 0;
}

static const fac_case cases[] = { { "cholesky(f32[2,2]{1,0,0,1})", -1, 1, 1e-6 },
                                  { "cholesky(f64[2,2,2]{1,0,0,1,1,0,0,1})", -1, 1, 1e-12 },
                                  { "cholesky(f16[2,1,1]{1,1})", -1, 1, 1e-3 },
                                  { "cholesky(f32[0,3,3])", 0, 0, 0 },
                                  { "cholesky(f32[2,0,0])", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_cholesky = {
    .name = "cholesky",
    .doc = "Cholesky's factors of positive definite matrices",
    .in = fac_ports_x,
    .out = fac_ports_y,
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_cholesky(fac_value *x) { return fac_emit(&fac_op_cholesky, NULL, 1, &x); }
