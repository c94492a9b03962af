/* Systems of linear equations. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/matrix/matrix.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* y with a y = b, for the matrices in the last two dims: a [..,M,M], b [..,M,K] -> [..,M,K], with
 * equal dims in front.  A run fails with FAC_E_ARGUMENT where a matrix is singular.  Floats. */
fac_value *fac_solve(fac_value *a, fac_value *b);
#endif

static const fac_port in[] = { { "a", FAC_FLOATS, 0 }, { "b", FAC_FLOATS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    const fac_type *a = &n->in[0]->type, *b = &n->in[1]->type;
    if (!fac_has_square_matrices(n, 0) || !fac_has_matrices(n, 1)) return false;
    if (a->dtype != b->dtype) return fac_fail(n, FAC_E_DTYPE, "a and b have other dtypes");
    if (a->dims.n != b->dims.n)
        return fac_fail(n, FAC_E_SHAPE, "a has %d dims, b %d", a->dims.n, b->dims.n);
    for (int k = 0; k < a->dims.n - 1; k++)
        if (fac_differ(a->dims.d[k], b->dims.d[k]))
            return fac_fail(n, FAC_E_SHAPE, "dim %d of a is %lld, of b %lld", k,
                            (long long)a->dims.d[k], (long long)b->dims.d[k]);
    n->out[0]->type = *b;
    return true;
}

/* Rows of a and, beside them, of b. */
static bool one(const double *a, const double *b, double *y, double *m, int64_t size,
                int64_t columns) {
    const int64_t width = size + columns;
    for (int64_t i = 0; i < size; i++) {
        memcpy(m + i * width, a + i * size, (size_t)size * sizeof *m);
        memcpy(m + i * width + size, b + i * columns, (size_t)columns * sizeof *m);
    }
    const bool regular = fac_matrix_eliminate(m, size, width);
    for (int64_t i = 0; i < size; i++)
        memcpy(y + i * columns, m + i * width + size, (size_t)columns * sizeof *m);
    return regular;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_matrices b = fac_matrices_of(&r->in[1].type.dims);
    const int64_t size = b.rows;
    double *m = fac_alloc((size_t)(size * (size + b.columns)) + 1, sizeof *m);
    if (!m)
        return fac_raise_memory(err, "a matrix of %lld x %lld", (long long)size, (long long)size);
    int64_t k = 0;
    while (k < b.count && one(r->in[0].f + k * size * size, r->in[1].f + k * size * b.columns,
                              r->out[0].f + k * size * b.columns, m, size, b.columns))
        k++;
    fac_release(m);
    if (k == b.count) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT, "solve: matrix %lld is singular", (long long)k);
}

/* db = a'^-1 dy, da = -db y' */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *b = fac_solve(fac_grad_swap(n->in[0]), dy[0]);
    if (fac_needs(n, 0)) dx[0] = fac_neg(fac_matmul(b, fac_grad_swap(n->out[0])));
    if (fac_needs(n, 1)) dx[1] = b;
}

static void cost(const fac_node *n, fac_cost *c) {
    const fac_dims *d = &n->in[0]->type.dims;
    fac_cost_bytes(n, c);
    c->macs = (fac_cost_count(n->in[0]) + fac_cost_count(n->in[1])) * fac_cost_size(d->d[d->n - 1]);
    c->other = 0;
}

static const fac_case cases[] = {
    { "solve(f32[3,3]{1,1,0,0,1,1,1,0,1}, f32[3,2]{1,0,1,0,1,0})", -1, 1, 1e-5 },
    { "solve(f64[2,2,2]{0,1,1,0,1,1,0,1}, f64[2,2,1]{1,0,1,1})", -1, 1, 1e-12 },
    { "solve(f16[2,2]{1,1,0,1}, f16[2,2]{1,1,1,0})", -1, 1, 4e-3 },
    { "solve(f32[0,3,3], f32[0,3,2])", 0, 0, 0 },
    { "solve(f32[2,0,0], f32[2,0,3])", 0, 0, 0 },
    { "solve(f32[1,1]{1}, f32[1,0])", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_solve = {
    .name = "solve",
    .doc = "systems of linear equations",
    .in = in,
    .out = fac_ports_y,
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_solve(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_solve, NULL, 2, (fac_value *[]){ a, b });
}
