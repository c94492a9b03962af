/* What operators on matrices share. */
#include "ops/matrix/matrix.h"
#include <math.h>
#include "ops/constant.h"
#include "ops/grad.h"
#include "ops/shape.h"

fac_matrices fac_matrices_of(const fac_dims *d) {
    return (fac_matrices){ fac_dims_part(d, 0, d->n - 2), d->d[d->n - 2], d->d[d->n - 1] };
}

bool fac_has_matrices(fac_node *n, int k) {
    const fac_dims *x = &n->in[k]->type.dims;
    return x->n >= 2 ||
           fac_fail(n, FAC_E_SHAPE, "%s has %d dims, not 2 or more", n->op->in[k].name, x->n);
}

bool fac_has_square_matrices(fac_node *n, int k) {
    const fac_dims *x = &n->in[k]->type.dims;
    if (!fac_has_matrices(n, k)) return false;
    const int64_t rows = x->d[x->n - 2], columns = x->d[x->n - 1];
    return !fac_differ(rows, columns) ||
           fac_fail(n, FAC_E_SHAPE, "matrices of %lld x %lld are not square", (long long)rows,
                    (long long)columns);
}

void fac_matrix_swap(double *a, double *b, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        const double x = a[k];
        a[k] = b[k];
        b[k] = x;
    }
}

bool fac_matrix_eliminate(double *m, int64_t size, int64_t width) {
    bool regular = true;
    for (int64_t c = 0; c < size; c++) {
        int64_t best = c;
        for (int64_t i = c + 1; i < size; i++)
            if (fabs(m[i * width + c]) > fabs(m[best * width + c])) best = i;
        if (best != c) fac_matrix_swap(m + best * width, m + c * width, width);
        const double pivot = m[c * width + c];
        regular = regular && pivot != 0;
        for (int64_t k = c; k < width; k++) m[c * width + k] /= pivot;
        for (int64_t i = 0; i < size; i++) {
            const double by = m[i * width + c];
            if (i == c || by == 0) continue;
            for (int64_t k = c; k < width; k++) m[i * width + k] -= by * m[c * width + k];
        }
    }
    return regular;
}

double fac_matrix_dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += a[k] * b[k];
    return sum;
}

void fac_matrix_rotate(double *a, double *b, int64_t n, double c, double s) {
    for (int64_t k = 0; k < n; k++) {
        const double x = a[k], y = b[k];
        a[k] = c * x + s * y;
        b[k] = c * y - s * x;
    }
}

bool fac_matrix_is_finite(const double *x, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        if (!isfinite(x[k])) return false;
    return true;
}

/* ---- of gradients ---- */

fac_value *fac_matrix_diagonal(fac_value *m) { return fac_tril(fac_triu(m, 0), 0); }

fac_value *fac_matrix_rest(fac_value *m) { return fac_add(fac_tril(m, -1), fac_triu(m, 1)); }

fac_value *fac_matrix_row(fac_value *v) { return fac_unsqueeze(v, fac_shape(-2)); }

fac_value *fac_matrix_column(fac_value *v) { return fac_unsqueeze(v, fac_shape(-1)); }

fac_value *fac_matrix_of_diagonal(fac_value *v, fac_value *like) {
    return fac_matrix_diagonal(fac_expand_to(fac_matrix_row(v), fac_shape_of(like)));
}
