/* One step towards the basis that quantizes some numbers best: LQ-Nets' QEM. */
#include <math.h>
#include "ops/basis.h"
#include "ops/cost.h"

#if FAC_INTERFACE
/* The E step gives each x the code of its level by `basis`, the M step the least squares for these
 * codes B: (B B' + d I)^-1 (B x + d v), d = 1e-4, which holds what no code tells apart where it is.
 * Shapes as in fac_quantize_basis; y is a basis.  No gradient. */
fac_value *fac_fit_basis(fac_value *x, fac_value *basis, const fac_basis_opts *opts);
#endif

static const double ridge = 1e-4;

static bool infer(fac_node *n) {
    const fac_basis_opts *o = n->attrs;
    n->out[0]->type = n->in[1]->type;
    return fac_basis_fits(n, n->in[0], n->in[1], o->axis);
}

static void gather(const fac_basis *b, const double *x, int64_t n, fac_basis_cells *to) {
    for (int64_t i = 0; i < n; i++) {
        const int k = fac_basis_find(b, x[i]);
        to->count[k] += 1;
        to->sum[k] += x[i];
    }
}

/* Cholesky's factors of a, then a x = b. */
static void solve(int n, double a[][FAC_BASIS_BITS], double b[]) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double s = a[i][j];
            for (int k = 0; k < j; k++) s -= a[i][k] * a[j][k];
            a[i][j] = i == j ? sqrt(s) : s / a[j][j];
        }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) b[i] -= a[k][i] * b[k];
        b[i] /= a[i][i];
    }
}

void fac_basis_fit(const fac_basis *b, const fac_basis_cells *c, double y[]) {
    double a[FAC_BASIS_BITS][FAC_BASIS_BITS] = { { 0 } };
    for (int i = 0; i < b->bits; i++) {
        y[i] = ridge * b->v[i];
        a[i][i] = ridge;
    }
    for (int k = 0; k < b->levels; k++)
        for (int i = 0; i < b->bits; i++) {
            const double digit = fac_basis_digit(b, b->code[k], i);
            y[i] += digit * c->sum[k];
            for (int j = 0; j < b->bits; j++)
                a[i][j] += digit * fac_basis_digit(b, b->code[k], j) * c->count[k];
        }
    solve(b->bits, a, y);
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_basis_opts *o = r->attrs;
    const fac_basis_grid g = fac_basis_grid_of(&r->in[0].type.dims, &r->in[1].type.dims, o->axis);
    const bool single = r->in[0].type.dtype != FAC_F64;
    for (int64_t c = 0; c < g.channels; c++) {
        fac_basis b;
        fac_basis_cells all = { { 0 }, { 0 } };
        double y[FAC_BASIS_BITS];
        fac_basis_of(r->in[1].f + c, g.channels, g.bits, o->positive, single, &b);
        for (int64_t k = 0; k < g.outer; k++)
            gather(&b, r->in[0].f + (k * g.channels + c) * g.inner, g.inner, &all);
        fac_basis_fit(&b, &all, y);
        for (int j = 0; j < g.bits; j++) r->out[0].f[j * g.channels + c] = y[j];
    }
    return FAC_OK;
}

static void cost(const fac_node *n, fac_cost *to) {
    fac_cost_each(n, ldexp(1, (int)n->in[1]->type.dims.d[0]), to);
}

static const fac_case cases[] = { { "fit_basis(f32[30,37], f32{0.5})", -2, 2, 1e-5 },
                                  { "fit_basis(f32[30,37], f32{0.5, 1}) positive", 0, 3, 1e-5 },
                                  { "fit_basis(f32[4,5,3,3], f32[1,4])", -1, 1, 1e-5 },
                                  { "fit_basis(f32[2,5,30], f32[1,5]) axis=1", -1, 1, 1e-5 },
                                  { "fit_basis(f32[33,1100], f32{0.5, 1})", 0, 3, 1e-5 },
                                  { "fit_basis(f32[999], f32{0.25, 2, 0.5, 1})", -4, 4, 1e-5 },
                                  { "fit_basis(f32[7,17,3], f32[3,17]) axis=1", -2, 2, 1e-5 },
                                  { "fit_basis(f64[99], f64{0.25, 0.5, 1})", -2, 2, 1e-9 },
                                  { "fit_basis(f32[0,3], f32{0.5, 1})", 0, 0, 1e-5 },
                                  { 0 } };

extern const fac_op fac_op_fit_basis;
const fac_op fac_op_fit_basis = {
    .name = "fit_basis",
    .doc = "a step towards the best basis of some numbers (LQ-Nets' QEM)",
    .in = fac_basis_in,
    .out = fac_ports_y,
    .attrs = fac_basis_table,
    .attrs_size = sizeof(fac_basis_opts),
    .infer = infer,
    .ref = ref,
    .cost = cost,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .mixed = FAC_MIXED_WIDE,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_fit_basis(fac_value *x, fac_value *basis, const fac_basis_opts *opts) {
    return fac_emit(&fac_op_fit_basis, opts, 2, (fac_value *[]){ x, basis });
}
