/* Singular values and vectors of matrices. */
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
/* x = u diag(s) v, for the matrices in the last two dims: x [..,M,N] -> u [..,M,K], s [..,K],
 * v [..,K,N], K = min(M, N), with orthonormal columns of u and rows of v and s falling, none below
 * 0.  s is output 1, v output 2 (fac_value_other).  The gradient through u and v divides by
 * differences of squares of singular values.  A run fails with FAC_E_ARGUMENT where an element is
 * not finite.  Floats. */
fac_value *fac_svd(fac_value *x);
#endif

static const fac_port out[] = { { "u", FAC_FLOATS, 0 },
                                { "s", FAC_FLOATS, FAC_OPTIONAL },
                                { "v", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type;
    if (!fac_has_matrices(n, 0)) return false;
    const int last = x->dims.n - 1;
    const int64_t rows = x->dims.d[last - 1], columns = x->dims.d[last];
    int64_t size = rows < columns ? rows : columns;
    if (rows != columns && (rows < 0 || columns < 0)) size = fac_symbol(n->graph, NULL);
    for (int k = 0; k < 3; k++) n->out[k]->type = *x;
    n->out[0]->type.dims.d[last] = size;
    n->out[1]->type.dims.n = last;
    n->out[1]->type.dims.d[last - 1] = size;
    n->out[2]->type.dims.d[last - 1] = size;
    return true;
}

/* `size` rows of `length` numbers, which rotations make orthogonal, and beside them what has been
 * rotated with them, from the identity on. */
typedef struct work {
    int64_t size, length;
    double *a, *v, *s;
} work;

/* One-sided Jacobi (Hestenes, 1958): rows i and j become orthogonal; false: they are. */
static bool rotate(work *w, int64_t i, int64_t j) {
    double *x = w->a + i * w->length, *y = w->a + j * w->length;
    const double xx = fac_matrix_dot(x, x, w->length), yy = fac_matrix_dot(y, y, w->length),
                 xy = fac_matrix_dot(x, y, w->length);
    if (fabs(xy) <= 4 * DBL_EPSILON * sqrt(xx) * sqrt(yy) || fabs(xy) < DBL_MIN) return false;
    const double half = (yy - xx) / (2 * xy), t = copysign(1, half) / (fabs(half) + hypot(1, half)),
                 c = 1 / hypot(1, t);
    fac_matrix_rotate(x, y, w->length, c, -c * t);
    fac_matrix_rotate(w->v + i * w->size, w->v + j * w->size, w->size, c, -c * t);
    return true;
}

static bool make_orthogonal(work *w) {
    memset(w->v, 0, (size_t)(w->size * w->size) * sizeof *w->v);
    for (int64_t i = 0; i < w->size; i++) w->v[i * w->size + i] = 1;
    for (int turn = 0; turn < 60; turn++) {
        bool moved = false;
        for (int64_t i = 0; i < w->size; i++)
            for (int64_t j = i + 1; j < w->size; j++) moved = rotate(w, i, j) || moved;
        if (!moved) return true;
    }
    return false;
}

/* The longest row first. */
static void sort(work *w) {
    for (int64_t i = 0; i < w->size; i++) {
        const double *row = w->a + i * w->length;
        w->s[i] = sqrt(fac_matrix_dot(row, row, w->length));
    }
    for (int64_t i = 0; i < w->size; i++) {
        int64_t most = i;
        for (int64_t j = i + 1; j < w->size; j++)
            if (w->s[j] > w->s[most]) most = j;
        if (most == i) continue;
        fac_matrix_swap(w->s + i, w->s + most, 1);
        fac_matrix_swap(w->a + i * w->length, w->a + most * w->length, w->length);
        fac_matrix_swap(w->v + i * w->size, w->v + most * w->size, w->size);
    }
}

/* Row k without what lies along the rows before it; twice, since the first leaves rounding. */
static double separate(work *w, int64_t k) {
    double *row = w->a + k * w->length;
    for (int turn = 0; turn < 2; turn++)
        for (int64_t i = 0; i < k; i++) {
            const double *other = w->a + i * w->length,
                         along = fac_matrix_dot(row, other, w->length);
            for (int64_t j = 0; j < w->length; j++) row[j] -= along * other[j];
        }
    return sqrt(fac_matrix_dot(row, row, w->length));
}

/* Rows of length 1; where one is as good as nothing, any that is orthogonal to those before it. */
static void make_unit(work *w) {
    for (int64_t k = 0; k < w->size; k++) {
        double *row = w->a + k * w->length, length = w->s[k];
        const bool sure = length > w->s[0] * 0x1p-40;
        for (int64_t j = 0; j < w->length && length > 0; j++) row[j] /= length;
        if (!sure && length > 0) length = separate(w, k);
        for (int64_t unit = 0; !sure && !(length > 0.5) && unit < w->length; unit++) {
            memset(row, 0, (size_t)w->length * sizeof *row);
            row[unit] = 1;
            length = separate(w, k);
            if (length * length * (double)w->length >= 0.5) break;
        }
        for (int64_t j = 0; j < w->length && !sure; j++) row[j] /= length;
    }
}

/* tall: rows of a are columns of x, else its rows. */
static fac_status decompose(work *w, const double *x, bool tall, int64_t index, fac_error *err) {
    double most = 0;
    for (int64_t i = 0; i < w->size; i++)
        for (int64_t j = 0; j < w->length; j++) {
            const double at = tall ? x[j * w->size + i] : x[i * w->length + j];
            w->a[i * w->length + j] = at;
            most = fmax(most, fabs(at));
        }
    if (!fac_matrix_is_finite(w->a, w->size * w->length))
        return fac_raise(err, FAC_E_ARGUMENT, "svd: matrix %lld has an element that is not finite",
                         (long long)index);
    const double scale = most > 0 ? ldexp(1, -ilogb(most)) : 1;
    for (int64_t i = 0; i < w->size * w->length; i++) w->a[i] *= scale;
    if (!make_orthogonal(w))
        return fac_raise(err, FAC_E_ARGUMENT, "svd: matrix %lld: no singular values were found",
                         (long long)index);
    sort(w);
    make_unit(w);
    for (int64_t i = 0; i < w->size; i++) w->s[i] /= scale;
    return FAC_OK;
}

static void put(const double *from, int64_t rows, int64_t columns, bool transposed, double *to) {
    for (int64_t i = 0; i < rows && to; i++)
        for (int64_t j = 0; j < columns; j++)
            to[transposed ? j * rows + i : i * columns + j] = from[i * columns + j];
}

static double *part(const fac_array *y, int64_t at) { return y->f ? y->f + at : NULL; }

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_matrices m = fac_matrices_of(&r->in[0].type.dims);
    const bool tall = m.rows >= m.columns;
    const int64_t size = tall ? m.columns : m.rows;
    const int64_t length = m.rows + m.columns - size;
    double *all = fac_alloc((size_t)(size * (length + size + 1)) + 1, sizeof *all);
    if (!all)
        return fac_raise_memory(err, "a matrix of %lld x %lld", (long long)m.rows,
                                (long long)m.columns);
    work w = { size, length, all, all + size * length, all + size * (length + size) };
    fac_status status = FAC_OK;
    for (int64_t k = 0; k < m.count && !status; k++) {
        status = decompose(&w, r->in[0].f + k * m.rows * m.columns, tall, k, err);
        if (status) break;
        put(tall ? w.a : w.v, size, m.rows, true, part(&r->out[0], k * m.rows * size));
        put(w.s, 1, size, false, part(&r->out[1], k * size));
        put(tall ? w.v : w.a, size, m.columns, false, part(&r->out[2], k * size * m.columns));
    }
    fac_release(all);
    return status;
}

/* m - m' over the differences of squares of singular values. */
static fac_value *apart(fac_value *m, fac_value *s) {
    fac_value *square = fac_mul(s, s);
    fac_value *by = fac_sub(fac_matrix_row(square), fac_matrix_column(square));
    fac_value *ones = fac_full(fac_shape_of(m), m->type.dtype, 1);
    return fac_div(fac_matrix_rest(fac_sub(m, fac_grad_swap(m))),
                   fac_add(by, fac_matrix_diagonal(ones)));
}

/* Whether one dim is known not to be larger than another. */
static bool within(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a <= b; }

/* With F = 1 / (s_j^2 - s_i^2) beside the diagonal: u ((F (u' du - du' u)) s + s (F (v dv' - dv
 * v'))
 * + ds) v, and what du and dv have outside of the spaces of u and v, over s. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *u = n->out[0], *s = n->out[1], *v = n->out[2], *du = dy[0], *ds = dy[1], *dv = dy[2];
    const fac_dims *d = &n->in[0]->type.dims;
    const int64_t rows = d->d[d->n - 2], columns = d->d[d->n - 1];
    fac_value *middle = NULL, *rest = NULL, *ut = fac_grad_swap(u), *vt = fac_grad_swap(v);
    if (du) {
        fac_value *inside = fac_matmul(ut, du);
        middle = fac_mul(apart(inside, s), fac_matrix_row(s));
        if (!within(rows, columns)) {
            rest = fac_div(fac_sub(du, fac_matmul(u, inside)), fac_matrix_row(s));
            rest = fac_matmul(rest, v);
        }
    }
    if (dv) {
        fac_value *inside = fac_matmul(v, fac_grad_swap(dv));
        middle = fac_grad_plus(middle, fac_mul(fac_matrix_column(s), apart(inside, s)));
        if (!within(columns, rows)) {
            fac_value *out_of_it = fac_sub(dv, fac_matmul(fac_matmul(dv, vt), v));
            out_of_it = fac_matmul(u, fac_div(out_of_it, fac_matrix_column(s)));
            rest = fac_grad_plus(rest, out_of_it);
        }
    }
    fac_value *g = middle ? fac_matmul(fac_matmul(u, middle), v) : NULL;
    if (ds) g = fac_grad_plus(g, fac_matmul(fac_mul(u, fac_matrix_row(ds)), v));
    dx[0] = fac_grad_plus(g, rest);
}

static void cost(const fac_node *n, fac_cost *c) {
    const fac_dims *d = &n->in[0]->type.dims;
    const double rows = fac_cost_size(d->d[d->n - 2]), columns = fac_cost_size(d->d[d->n - 1]);
    fac_cost_bytes(n, c);
    c->macs = 30 * fac_cost_count(n->in[0]) * (rows < columns ? rows : columns);
    c->other = 0;
}

static const fac_case cases[] = { { "svd(f32[2,2]{0,1,0,0})", -1, 1, 1e-5 },
                                  { "svd(f64[3,2]{0,0,1,0,0,0})", -1, 1, 1e-12 },
                                  { "svd(f64[2,4]{1,0,0,0,0,0,0,0})", -1, 1, 1e-12 },
                                  { "svd(f16[2,2]{1,0,0,0})", -1, 1, 4e-3 },
                                  { "svd(f32[1,1]{1})", -1, 1, 1e-6 },
                                  { "svd(f32[0,3,3])", 0, 0, 0 },
                                  { "svd(f32[2,0,3])", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_svd = {
    .name = "svd",
    .doc = "singular values and vectors of matrices",
    .in = fac_ports_x,
    .out = out,
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_svd(fac_value *x) { return fac_emit(&fac_op_svd, NULL, 1, &x); }
