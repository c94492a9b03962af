/* Eigenvalues and eigenvectors of symmetric matrices. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/matrix/matrix.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* Of the symmetric matrices in the last two dims, x [..,M,M], the eigenvalues in rising order
 * [..,M] and, as columns of output 1 (fac_value_other), eigenvectors of length 1 [..,M,M], whose
 * largest element is above 0.  Of a matrix that is not symmetric its symmetric part (x + x') / 2 is
 * meant.  The gradient through vectors divides by differences of eigenvalues.  A run fails with
 * FAC_E_ARGUMENT where an element is not finite.  Floats. */
fac_value *fac_eigh(fac_value *x);
#endif

static const fac_port out[] = { { "values", FAC_FLOATS, 0 },
                                { "vectors", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type;
    if (!fac_has_square_matrices(n, 0)) return false;
    n->out[0]->type = n->out[1]->type = *x;
    n->out[0]->type.dims.n -= 1;
    return true;
}

/* One matrix: a becomes tridiagonal with diagonal d and e beside it; the rows of q are the vectors
 * that x is multiplied with. */
typedef struct work {
    int64_t size;
    double *a, *q, *d, *e, *v, *p;
} work;

/* a - v w' - w v' of the part from `first` on, with the reflection 1 - tau v v'; the same from the
 * right on q. */
static void reflect(work *w, int64_t first, double tau) {
    const int64_t n = w->size, m = n - first;
    double *v = w->v, *p = w->p;
    for (int64_t i = 0; i < m; i++)
        p[i] = tau * fac_matrix_dot(w->a + (first + i) * n + first, v, m);
    const double along = 0.5 * tau * fac_matrix_dot(p, v, m);
    for (int64_t i = 0; i < m; i++) p[i] -= along * v[i];
    for (int64_t i = 0; i < m; i++) {
        double *row = w->a + (first + i) * n + first;
        for (int64_t j = 0; j < m; j++) row[j] -= v[i] * p[j] + p[i] * v[j];
    }
    memset(p, 0, (size_t)n * sizeof *p);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) p[j] += tau * v[i] * w->q[(first + i) * n + j];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) w->q[(first + i) * n + j] -= v[i] * p[j];
}

/* By Householder's reflections, which act on the rows of q in turn. */
static void make_tridiagonal(work *w) {
    const int64_t n = w->size;
    memset(w->q, 0, (size_t)(n * n) * sizeof *w->q);
    for (int64_t i = 0; i < n; i++) w->q[i * n + i] = 1;
    for (int64_t k = 0; k + 1 < n; k++) {
        const double *row = w->a + k * n + k + 1;
        const int64_t m = n - k - 1;
        const double rest = m > 1 ? fac_matrix_dot(row + 1, row + 1, m - 1) : 0;
        w->d[k] = w->a[k * n + k];
        w->e[k] = row[0];
        if (rest == 0) continue;
        memcpy(w->v, row, (size_t)m * sizeof *w->v);
        w->e[k] = -copysign(sqrt(row[0] * row[0] + rest), row[0]);
        w->v[0] -= w->e[k];
        reflect(w, k + 1, 2 / fac_matrix_dot(w->v, w->v, m));
    }
    if (n) w->d[n - 1] = w->a[n * n - 1];
}

/* The eigenvalue of the last two rows of a part that is nearer to the last number. */
static double shift(const work *w, int64_t last) {
    const double half = 0.5 * (w->d[last - 1] - w->d[last]), e = w->e[last - 1],
                 root = half + copysign(hypot(half, e), half);
    return root == 0 ? w->d[last] : w->d[last] - e * e / root;
}

/* One step of the QR algorithm on rows first to last: rotations move a bulge down the diagonal. */
static void step(work *w, int64_t first, int64_t last) {
    double x = w->d[first] - shift(w, last), z = w->e[first], *d = w->d, *e = w->e;
    for (int64_t k = first; k < last; k++) {
        const double r = hypot(x, z), c = r > 0 ? x / r : 1;
        const double s = r > 0 ? z / r : 0;
        const double a = d[k], b = e[k], g = d[k + 1];
        if (k > first) e[k - 1] = r;
        d[k] = c * c * a + 2 * c * s * b + s * s * g;
        d[k + 1] = s * s * a - 2 * c * s * b + c * c * g;
        e[k] = c * s * (g - a) + (c * c - s * s) * b;
        x = e[k];
        if (k + 1 < last) {
            z = s * e[k + 1];
            e[k + 1] *= c;
        }
        fac_matrix_rotate(w->q + k * w->size, w->q + (k + 1) * w->size, w->size, c, s);
    }
}

/* Until nothing beside the diagonal counts; false: never. */
static bool make_diagonal(work *w) {
    int64_t last = w->size - 1, turns = 0;
    while (last > 0) {
        int64_t first = last;
        while (first > 0 &&
               fabs(w->e[first - 1]) > DBL_EPSILON * (fabs(w->d[first - 1]) + fabs(w->d[first])) &&
               fabs(w->e[first - 1]) > DBL_MIN)
            first--;
        if (first == last) {
            last--;
            turns = 0;
            continue;
        }
        if (turns++ == 100) return false;
        step(w, first, last);
    }
    return true;
}

/* The largest element of a vector becomes positive. */
static double sign_of(const double *v, int64_t n) {
    int64_t most = 0;
    for (int64_t k = 1; k < n; k++)
        if (fabs(v[k]) > fabs(v[most]) * (1 + 1e-9)) most = k;
    return n && v[most] < 0 ? -1 : 1;
}

/* In rising order; the vectors become columns. */
static void write_sorted(work *w, double *values, double *vectors) {
    const int64_t n = w->size;
    for (int64_t k = 0; k < n; k++) {
        int64_t least = k;
        for (int64_t j = k + 1; j < n; j++)
            if (w->d[j] < w->d[least]) least = j;
        double *from = w->q + least * n, *to = w->q + k * n;
        const double d = w->d[least], sign = sign_of(from, n);
        w->d[least] = w->d[k];
        w->d[k] = d;
        for (int64_t i = 0; i < n; i++) {
            const double x = sign * from[i];
            from[i] = to[i];
            to[i] = x;
            if (vectors) vectors[i * n + k] = x;
        }
        if (values) values[k] = d;
    }
}

static fac_status solve(work *w, const double *x, int64_t index, fac_error *err) {
    const int64_t n = w->size;
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            w->a[i * n + j] = 0.5 * (x[i * n + j] + x[j * n + i]);
            most = fmax(most, fabs(w->a[i * n + j]));
        }
    if (!fac_matrix_is_finite(w->a, n * n))
        return fac_raise(err, FAC_E_ARGUMENT, "eigh: matrix %lld has an element that is not finite",
                         (long long)index);
    const double scale = most > 0 ? ldexp(1, -ilogb(most)) : 1;
    for (int64_t i = 0; i < n * n; i++) w->a[i] *= scale;
    make_tridiagonal(w);
    if (!make_diagonal(w))
        return fac_raise(err, FAC_E_ARGUMENT, "eigh: matrix %lld: no eigenvalues were found",
                         (long long)index);
    for (int64_t i = 0; i < n; i++) w->d[i] /= scale;
    return FAC_OK;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_matrices m = fac_matrices_of(&r->in[0].type.dims);
    const int64_t n = m.rows;
    double *all = fac_alloc((size_t)(2 * n * n + 4 * n) + 1, sizeof *all);
    if (!all) return fac_raise_memory(err, "a matrix of %lld x %lld", (long long)n, (long long)n);
    double *rest = all + 2 * n * n;
    work w = { n, all, all + n * n, rest, rest + n, rest + 2 * n, rest + 3 * n };
    fac_status status = FAC_OK;
    for (int64_t k = 0; k < m.count && !status; k++) {
        status = solve(&w, r->in[0].f + k * n * n, k, err);
        if (!status)
            write_sorted(&w, r->out[0].f ? r->out[0].f + k * n : NULL,
                         r->out[1].f ? r->out[1].f + k * n * n : NULL);
    }
    fac_release(all);
    return status;
}

/* v (dw + v' dv / (w_j - w_i)) v' */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *w = n->out[0], *v = n->out[1], *middle = NULL;
    fac_value *ones = fac_full(fac_shape_of(v), v->type.dtype, 1);
    if (dy[1]) {
        fac_value *apart = fac_sub(fac_matrix_row(w), fac_matrix_column(w));
        middle = fac_matrix_rest(fac_matmul(fac_grad_swap(v), dy[1]));
        middle = fac_div(middle, fac_add(apart, fac_matrix_diagonal(ones)));
    }
    if (dy[0]) middle = fac_grad_plus(middle, fac_matrix_of_diagonal(dy[0], v));
    fac_value *g = fac_matmul(fac_matmul(v, middle), fac_grad_swap(v));
    dx[0] = fac_grad_times(fac_add(g, fac_grad_swap(g)), 0.5);
}

static void cost(const fac_node *n, fac_cost *c) {
    const fac_dims *d = &n->in[0]->type.dims;
    fac_cost_bytes(n, c);
    c->macs = 8 * fac_cost_count(n->in[0]) * fac_cost_size(d->d[d->n - 1]);
    c->other = 0;
}

static const fac_case cases[] = { { "eigh(f32[2,2]{1,0,0,0})", -1, 1, 1e-5 },
                                  { "eigh(f64[2,2,2]{1,0,0,0,0,0,0,1})", -1, 1, 1e-12 },
                                  { "eigh(f16[2,2]{0,0,0,1})", -1, 1, 4e-3 },
                                  { "eigh(f32[1,1]{1})", -1, 1, 1e-6 },
                                  { "eigh(f32[0,3,3])", 0, 0, 0 },
                                  { "eigh(f32[2,0,0])", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_eigh = {
    .name = "eigh",
    .doc = "eigenvalues and eigenvectors of symmetric matrices",
    .in = fac_ports_x,
    .out = out,
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_eigh(fac_value *x) { return fac_emit(&fac_op_eigh, NULL, 1, &x); }
