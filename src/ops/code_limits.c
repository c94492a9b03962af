/* Where the sums of a layer of one base of weights change their code: whole numbers in place of a
 * scale, a bias and thresholds.  Made by src/passes/quantized/bits_between.c, computed before runs.
 * Has no prototype.
 *
 *     d = a sum of +-1 over pixels of 0 and 1, or of +-1, |d| <= reach; of several planes of
 * pixels, whose numbers are whole multiples of the least, each counts as often as its multiple says
 *     v = f32(d w_basis[0,k] min(x_basis) scale[k] + b[k])
 *     threshold t of y_basis lies below v (without y_basis: v is not below 0)
 *                                            where (d ^ y[0,k]) >= y[1 + t,k]
 *
 *   w_basis 1,K   x_basis A, or absent: 1   scale, b K, or absent   y_basis A   y i32 1 + T,K
 *   y[0,k] is 0, or -1 where v falls with d.   relu: of v. */
#include <limits.h>
#include "base/error.h"
#include "op_list.h"
#include "ops/code_limits.h"
#include "ops/cost.h"

static const fac_port in[] = { { "w_basis", FAC_FLOATS, 0 },
                               { "x_basis", FAC_FLOATS, FAC_OPTIONAL },
                               { "scale", FAC_FLOATS, FAC_OPTIONAL },
                               { "b", FAC_FLOATS, FAC_OPTIONAL },
                               { "y_basis", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };
enum { W, X, SCALE, B, Y };
static const fac_port out[] = { { "y", FAC_INTS, 0 }, { 0 } };

#define AT(field) offsetof(fac_code_limits_attrs, field)
static const fac_attr table[] = {
    { "reach", FAC_A_INT, AT(reach), 0, 1, 1, INT_MAX / 4, NULL, "no sum is larger" },
    { "relu", FAC_A_FLAG, AT(relu), 0, 0, 0, 0, NULL, "results below 0 are 0" },
    { 0 }
};
#undef AT

static bool is_row(const fac_value *v, int64_t n) {
    return !v || (v->type.dims.n == 1 && v->type.dims.d[0] == n);
}

static bool is_basis(const fac_value *v) {
    return !v ||
           (v->type.dims.n == 1 && v->type.dims.d[0] >= 1 && v->type.dims.d[0] <= FAC_BASIS_BITS);
}

static bool infer(fac_node *n) {
    const fac_dims *w = &n->in[W]->type.dims;
    const fac_value *y = n->in[Y];
    if (w->n != 2 || w->d[0] != 1 || w->d[1] < 0)
        return fac_fail(n, FAC_E_SHAPE, "w_basis must be 1,K");
    if (!is_basis(n->in[X]))
        return fac_fail(n, FAC_E_SHAPE, "x_basis must have 1 to %d numbers", FAC_BASIS_BITS);
    if (!is_row(n->in[SCALE], w->d[1]) || !is_row(n->in[B], w->d[1]))
        return fac_fail(n, FAC_E_SHAPE, "scale and b must have a number for each channel");
    if (!is_basis(y))
        return fac_fail(n, FAC_E_SHAPE, "y_basis must have 1 to %d numbers", FAC_BASIS_BITS);
    const int64_t levels = y ? (int64_t)1 << y->type.dims.d[0] : 2;
    n->out[0]->type = (fac_type){ FAC_I32, fac_shape(levels, w->d[1]) };
    return true;
}

typedef struct line {
    double factor, scale, b, threshold;
    bool relu, sign;
    int64_t invert;
} line;

/* d inverted where v falls with it: larger ones have larger results. */
static bool exceeds(const line *l, int64_t d) {
    double v = (double)(d ^ l->invert) * l->factor * l->scale + l->b;
    v = (double)(float)v;
    if (l->relu && v < 0) v = 0;
    return l->sign ? !(v < 0) : v > l->threshold;
}

/* The least d in -reach - 1 .. reach that does, which all above it do; INT_MAX: none. */
static int64_t least(const line *l, int64_t reach) {
    int64_t low = -reach - 1, high = reach;
    if (exceeds(l, low)) return INT_MIN;
    if (!exceeds(l, high)) return INT_MAX;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (exceeds(l, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

static double least_of(const fac_array *x) {
    double least = x->f ? x->f[0] : 1;
    for (int64_t i = 1; x->f && i < x->type.dims.d[0]; i++)
        if (x->f[i] < least) least = x->f[i];
    return least;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_code_limits_attrs *a = r->attrs;
    const fac_array *of = r->in;
    const int64_t K = r->out[0].type.dims.d[1];
    const double unit = least_of(&of[X]);
    fac_basis basis;
    fac_code_levels(&of[Y], true, &basis);
    for (int64_t k = 0; k < K; k++) {
        line l = { .factor = of[W].f[k] * unit, .scale = 1, .relu = a->relu, .sign = !of[Y].f };
        if (of[SCALE].f) l.scale = of[SCALE].f[k];
        if (of[B].f) l.b = of[B].f[k];
        l.invert = l.factor * l.scale < 0 ? -1 : 0;
        r->out[0].i[k] = l.invert;
        for (int t = 0; t + 1 < basis.levels; t++) {
            l.threshold = basis.threshold[t];
            r->out[0].i[(t + 1) * K + k] = least(&l, a->reach);
        }
    }
    return FAC_OK;
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 64, to); }

static const fac_case cases[] = {
    { "code_limits(f32[1,7], f32{0.5}, f32[7], f32[7], f32{0.5, 1}) reach=90", -1, 1, 0 },
    { "code_limits(f32[1,5], -, -, f32[5]) reach=27 relu", -1, 1, 0 },
    { "code_limits(f32[1,3], f32{0.25}, -, -, f32{1, -0.5, 2}) reach=1000", -1, 1, 0 },
    { "code_limits(f32[1,9], f32{1, 0.25, 0.5}, -, f32[9], f32{0.5, 1}) reach=700", -1, 1, 0 },
    { 0 }
};

const fac_op fac_op_code_limits = {
    .name = "code_limits",
    .doc = "where sums of one base change their code",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(fac_code_limits_attrs),
    .infer = infer,
    .ref = ref,
    .cost = cost,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .rounding = { .rule = FAC_ROUND_NONE },
};
