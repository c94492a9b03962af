/* Matrices as products of an orthogonal and an upper triangular one. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/matrix/matrix.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* x = q r, for the matrices in the last two dims: x [..,M,N] -> q [..,M,K], r [..,K,N], with
 * orthonormal columns of q and an upper triangular r; K = min(M, N), or M if complete.  r is output
 * 1 (fac_value_other).  By Householder's reflections; signs are those of LAPACK.  The gradient
 * divides by the first min(M, N) columns of r; where complete adds columns to q there is none.
 * Floats. */
fac_value *fac_qr(fac_value *x, bool complete);
#endif

typedef struct attrs {
    bool complete;
} attrs;
static const fac_attr table[] = {
    { "complete", FAC_A_FLAG, offsetof(attrs, complete), 0, 0, 0, 0, NULL, "q is square" }, { 0 }
};
static const fac_port out[] = { { "q", FAC_FLOATS, 0 }, { "r", FAC_FLOATS, FAC_OPTIONAL }, { 0 } };

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type;
    const attrs *a = n->attrs;
    if (!fac_has_matrices(n, 0)) return false;
    const int last = x->dims.n - 1;
    const int64_t rows = x->dims.d[last - 1], columns = x->dims.d[last];
    int64_t size = rows;
    if (!a->complete && rows >= 0 && columns >= 0) size = rows < columns ? rows : columns;
    if (!a->complete && rows != columns && (rows < 0 || columns < 0))
        size = fac_symbol(n->graph, NULL);
    for (int k = 0; k < 2; k++) n->out[k]->type = *x;
    n->out[0]->type.dims.d[last] = size;
    n->out[1]->type.dims.d[last - 1] = size;
    return true;
}

/* The reflection 1 - tau v v' that makes zeros of x[1..n), v[0] being 1; x becomes v with the first
 * element of the result in the place of v[0]. */
static double reflection(double *x, int64_t n) {
    const double rest = n > 1 ? fac_matrix_dot(x + 1, x + 1, n - 1) : 0;
    if (rest == 0) return 0;
    const double length = -copysign(sqrt(x[0] * x[0] + rest), x[0]), tau = 1 - x[0] / length,
                 scale = 1 / (x[0] - length);
    for (int64_t k = 1; k < n; k++) x[k] *= scale;
    x[0] = length;
    return tau;
}

/* The reflection of v, whose first element counts as 1, on y. */
static void reflect(const double *v, double tau, double *y, int64_t n) {
    const double by = tau * (y[0] + fac_matrix_dot(v + 1, y + 1, n - 1));
    y[0] -= by;
    for (int64_t k = 1; k < n; k++) y[k] -= by * v[k];
}

/* w: the columns of x one after the other, then room for one column and for the taus. */
static void factor(const double *x, int64_t rows, int64_t columns, int64_t size, double *w,
                   double *q, double *r) {
    const int64_t steps = rows < columns ? rows : columns;
    double *column = w + columns * rows, *tau = column + rows;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) w[j * rows + i] = x[i * columns + j];
    for (int64_t k = 0; k < steps; k++) {
        double *v = w + k * rows + k;
        tau[k] = reflection(v, rows - k);
        for (int64_t j = k + 1; j < columns; j++) reflect(v, tau[k], w + j * rows + k, rows - k);
    }
    for (int64_t i = 0; i < size && r; i++)
        for (int64_t j = 0; j < columns; j++) r[i * columns + j] = i <= j ? w[j * rows + i] : 0;
    for (int64_t j = 0; j < size && q; j++) {
        memset(column, 0, (size_t)rows * sizeof *column);
        column[j] = 1;
        for (int64_t k = steps; k--;) reflect(w + k * rows + k, tau[k], column + k, rows - k);
        for (int64_t i = 0; i < rows; i++) q[i * size + j] = column[i];
    }
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_matrices m = fac_matrices_of(&r->in[0].type.dims);
    const int64_t least = m.rows < m.columns ? m.rows : m.columns,
                  size = ((const attrs *)r->attrs)->complete ? m.rows : least;
    double *w = fac_alloc((size_t)((m.columns + 2) * m.rows) + 1, sizeof *w);
    if (!w)
        return fac_raise_memory(err, "a matrix of %lld x %lld", (long long)m.rows,
                                (long long)m.columns);
    for (int64_t k = 0; k < m.count; k++)
        factor(r->in[0].f + k * m.rows * m.columns, m.rows, m.columns, size, w,
               r->out[0].f ? r->out[0].f + k * m.rows * size : NULL,
               r->out[1].f ? r->out[1].f + k * size * m.columns : NULL);
    fac_release(w);
    return FAC_OK;
}

/* Of a square r: (dq + q S) r^-T, where S is the lower triangle of r dr' - dq' q, mirrored. */
static fac_value *of_square(fac_value *q, fac_value *r, fac_value *dq, fac_value *dr) {
    fac_value *m = NULL;
    if (dr) m = fac_matmul(r, fac_grad_swap(dr));
    if (dq) m = fac_grad_plus(m, fac_neg(fac_matmul(fac_grad_swap(dq), q)));
    m = fac_add(fac_tril(m, 0), fac_grad_swap(fac_tril(m, -1)));
    m = fac_grad_plus(dq, fac_matmul(q, m));
    return fac_grad_swap(fac_solve(r, fac_grad_swap(m)));
}

/* A wide x is [left right], r is [u v]: u is that of left, and v = q' right. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0], *q = n->out[0], *r = n->out[1], *dq = dy[0], *dr = dy[1];
    const fac_dims *d = &x->type.dims;
    const int last = d->n - 1;
    const int64_t rows = d->d[last - 1], columns = d->d[last];
    const bool more = ((const attrs *)n->attrs)->complete && rows > columns;
    if (rows < 0 || columns < 0 || more) {
        dx[0] = fac_fail_graph(n->graph, FAC_E_UNSUPPORTED,
                               "qr: gradients of matrices of known sizes, without columns that "
                               "complete q");
        return;
    }
    if (rows >= columns) {
        dx[0] = of_square(q, r, dq, dr);
        return;
    }
    fac_value *right = fac_slice(x, last, rows, columns, 1), *dright = NULL, *du = NULL;
    if (dr) {
        fac_value *dv = fac_slice(dr, last, rows, columns, 1);
        du = fac_slice(dr, last, 0, rows, 1);
        dright = fac_matmul(q, dv);
        dq = fac_grad_plus(dq, fac_matmul(right, fac_grad_swap(dv)));
    }
    fac_value *left = of_square(q, fac_slice(r, last, 0, rows, 1), dq, du);
    if (!dright) dright = fac_grad_times(right, 0);
    dx[0] = fac_concat((fac_value *[]){ left, dright }, 2, last);
}

static void cost(const fac_node *n, fac_cost *c) {
    const fac_dims *d = &n->in[0]->type.dims;
    fac_cost_bytes(n, c);
    c->macs = 2 * fac_cost_count(n->in[0]) * fac_cost_size(d->d[d->n - 1]);
    c->other = 0;
}

static const fac_case cases[] = { { "qr(f32[3,2]{0,1,1,0,0,0})", -1, 1, 1e-5 },
                                  { "qr(f32[2,2,2]{0,1,1,0,1,1,0,1})", -1, 1, 1e-5 },
                                  { "qr(f64[2,3]{1,0,1,0,1,1})", -1, 1, 1e-12 },
                                  { "qr(f64[3,1]{0,0,1}) complete", -1, 1, 1e-12 },
                                  { "qr(f16[2,2]{1,1,0,1})", -1, 1, 4e-3 },
                                  { "qr(f32[0,3,3])", 0, 0, 0 },
                                  { "qr(f32[2,0,3])", 0, 0, 0 },
                                  { "qr(f32[3,0]) complete", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_qr = {
    .name = "qr",
    .doc = "matrices as products of an orthogonal and an upper triangular one",
    .in = fac_ports_x,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_qr(fac_value *x, bool complete) {
    return fac_emit(&fac_op_qr, &(attrs){ complete }, 1, &x);
}
