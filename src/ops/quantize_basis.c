/* Numbers to the nearest level that a basis spans: LQ-Nets' quantizer. */
#include <math.h>
#include "ops/basis.h"
#include "ops/cost.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* y = the level nearest to x; the upper one only where x is larger than the middle of both.  Levels
 * are the sums of +-v_j, or with `positive` of some of the v_j.
 *   x any dims   basis K, or K,C: one for each index of `axis`   1 <= K <= 4   y like x
 * It has no gradient: fac_quantize_through() lets one pass.  opts may be NULL.
 * LQ-Nets, Zhang et al. 2018. */
fac_value *fac_quantize_basis(fac_value *x, fac_value *basis, const fac_basis_opts *opts);
#endif

static bool infer(fac_node *n) {
    const fac_basis_opts *o = n->attrs;
    n->out[0]->type = n->in[0]->type;
    return fac_basis_fits(n, n->in[0], n->in[1], o->axis);
}

static void line(const fac_basis *b, const double *x, int64_t n, double *y) {
    for (int64_t i = 0; i < n; i++) y[i] = b->level[fac_basis_find(b, x[i])];
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_basis_opts *o = r->attrs;
    const fac_basis_grid g = fac_basis_grid_of(&r->in[0].type.dims, &r->in[1].type.dims, o->axis);
    const bool single = r->in[0].type.dtype != FAC_F64;
    for (int64_t c = 0; c < g.channels; c++) {
        fac_basis b;
        fac_basis_of(r->in[1].f + c, g.channels, g.bits, o->positive, single, &b);
        for (int64_t k = 0; k < g.outer; k++) {
            const int64_t at = (k * g.channels + c) * g.inner;
            line(&b, r->in[0].f + at, g.inner, r->out[0].f + at);
        }
    }
    return FAC_OK;
}

/* All levels [2^K, ...] in the order of their codes, each sum made digit by digit. */
static fac_value *levels(fac_value *basis, bool positive) {
    const int bits = (int)basis->type.dims.d[0];
    fac_value *all = NULL;
    for (int j = 0; j < bits; j++) {
        fac_value *v = fac_slice(basis, 0, j, j + 1, 1);
        fac_value *zero = fac_number(v->graph, v->type.dtype, 0);
        fac_value *low, *high = all ? fac_add(all, v) : v;
        if (all)
            low = positive ? all : fac_sub(all, v);
        else
            low = positive ? fac_mul(v, zero) : fac_neg(v);
        all = fac_concat((fac_value *[]){ low, high }, 2, 0);
    }
    return all;
}

/* Level k of those that are sorted, so that it broadcasts against x. */
static fac_value *pick(fac_value *sorted, int64_t k, const fac_value *x, int64_t axis) {
    fac_dims d = { 0 };
    if (sorted->type.dims.n == 2) {
        d.n = x->type.dims.n - fac_axis(axis, x->type.dims.n);
        for (int i = 0; i < d.n; i++) d.d[i] = 1;
        d.d[0] = sorted->type.dims.d[1];
    }
    return fac_reshape_sizes(fac_slice(sorted, 0, k, k + 1, 1), d);
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_basis_opts *o = n->attrs;
    fac_value *x = n->in[0], *basis = n->in[1];
    const fac_dtype own = x->type.dtype;
    const bool wide = own == FAC_F64 || own == FAC_F32;
    const int count = 1 << basis->type.dims.d[0];
    if (!wide) {
        x = fac_cast(x, FAC_F32);
        basis = fac_cast(basis, FAC_F32);
    }
    fac_value *sorted = fac_top_k(levels(basis, o->positive), count, 0, true);
    fac_value *half = fac_number(x->graph, x->type.dtype, 0.5);
    fac_value *below = pick(sorted, 0, x, o->axis), *sum = below;
    for (int k = 1; k < count; k++) {
        fac_value *level = pick(sorted, k, x, o->axis);
        fac_value *above = fac_greater(x, fac_mul(fac_add(below, level), half));
        sum = fac_where(above, level, sum);
        below = level;
    }
    y[0] = wide ? sum : fac_cast(sum, own);
}
static int64_t expands(const fac_node *n) {
    const int64_t bits = n->in[1]->type.dims.d[0];
    return 16 + 6 * ((int64_t)1 << bits);
}

static void cost(const fac_node *n, fac_cost *to) {
    fac_cost_each(n, ldexp(1, (int)n->in[1]->type.dims.d[0]), to);
}

static const fac_case cases[] = { { "quantize_basis(f32[3,37], f32{0.5})", -2, 2, 0 },
                                  { "quantize_basis(f32[3,37], f32{0.5, 1}) positive", -1, 3, 0 },
                                  { "quantize_basis(f32[4,5,3,3], f32[2,4])", -1, 1, 0 },
                                  { "quantize_basis(f32[2,5,3], f32[3,5]) axis=1", -1, 1, 0 },
                                  { "quantize_basis(f32[9,7], f32{1, 0.5, 0.25, 2})", -4, 4, 0 },
                                  { "quantize_basis(f32[9,7], f32[4,7]) axis=-1 positive", -1, 4,
                                    0 },
                                  { "quantize_basis(f64[9], f64{0.75, -0.25})", -2, 2, 0 },
                                  { "quantize_basis(f32[], f32[1])", -2, 2, 0 },
                                  { "quantize_basis(f32[0,3], f32[2,3]) axis=1", 0, 0, 0 },
                                  { 0 } };

extern const fac_op fac_op_quantize_basis;
const fac_op fac_op_quantize_basis = {
    .name = "quantize_basis",
    .doc = "to the nearest level that a basis spans (LQ-Nets)",
    .in = fac_basis_in,
    .out = fac_ports_y,
    .attrs = fac_basis_table,
    .attrs_size = sizeof(fac_basis_opts),
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .expands = expands,
    .cost = cost,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .mixed = FAC_MIXED_WIDE,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_quantize_basis(fac_value *x, fac_value *basis, const fac_basis_opts *opts) {
    return fac_emit(&fac_op_quantize_basis, opts, 2, (fac_value *[]){ x, basis });
}
