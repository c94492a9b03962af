/* What the files of bound.c share: a rule says how far an operator's result, computed in floats,
 * may be from the exact one. */
#ifndef FACULA_REPORT_BOUND_H
#define FACULA_REPORT_BOUND_H
#include <math.h>
#include "facula/ops.h"
#include "report/verify/verify.h"

/* error: by id of a value of the new graph; NULL: exact.  unknown: the first op without a rule. */
typedef struct fac_bounds {
    fac_value **error;
    const char *unknown;
    size_t ids;
    bool coarse;
} fac_bounds;

/* The bound of output 0 of a node: n is the node of the model, in its operands and y its result in
 * the new graph.  Rounding of f32 arithmetic, not that to a narrower result type.  NULL: exact, or
 * b->unknown was set. */
typedef fac_value *fac_bound_rule(fac_bounds *b, const fac_node *n, fac_value *const in[],
                                  fac_value *y);

/* bound_sums.c */
fac_bound_rule fac_bound_product, fac_bound_add, fac_bound_mul, fac_bound_div, fac_bound_sum,
    fac_bound_largest, fac_bound_softmax, fac_bound_log_softmax, fac_bound_log_sum_exp;
/* bound_norm.c */
fac_bound_rule fac_bound_batch_norm, fac_bound_layer_norm, fac_bound_rms_norm, fac_bound_group_norm,
    fac_bound_lrn;
/* bound_map.c: functions of one number, and of few */
fac_bound_rule fac_bound_smooth, fac_bound_monotone, fac_bound_cosh, fac_bound_reciprocal,
    fac_bound_pow, fac_bound_pick, fac_bound_prelu, fac_bound_whole;

/* ---- bound.c, for rules ---- */

/* That of an operand; NULL: exact, or absent. */
fac_value *fac_bound_of(fac_bounds *b, fac_value *v);
/* The same op with other operands; absent ones are NULL. */
fac_value *fac_bound_again(const fac_node *n, fac_value *const in[], fac_value *a, fac_value *b,
                           fac_value *c);
/* Says that nothing can be said. */
static inline fac_value *fac_bound_unknown(fac_bounds *b, const fac_node *n) {
    if (!b->unknown) b->unknown = n->op->name;
    return NULL;
}

/* ---- writing bounds: they are f32, whatever their values are ---- */

/* u of f32; SLACK: for the bounds' own rounding, and for what kernels do besides (Winograd's
 * F(2,3), fused additions). */
static const double UNIT = 0x1p-24, SLACK = 4;

static inline double gamma_of(double n) {
    return n * UNIT < 0.5 ? SLACK * n * UNIT / (1 - n * UNIT) : INFINITY;
}
static inline fac_value *number(fac_graph *g, double x) { return fac_number(g, FAC_F32, x); }
static inline fac_value *times(fac_value *x, double by) { return fac_mul(x, number(x->graph, by)); }
static inline fac_value *plus(fac_value *a, fac_value *b) {
    if (a && b) return fac_add(a, b);
    return a ? a : b;
}
static inline fac_value *wide(fac_value *v) {
    return v->type.dtype == FAC_F32 ? v : fac_cast(v, FAC_F32);
}
static inline fac_value *size_of(fac_value *v) { return fac_abs(wide(v)); }
static inline fac_value *at_least(fac_value *x, double least) {
    return fac_max(x, number(x->graph, least));
}
/* Zeros, also where x is infinite. */
static inline fac_value *zeros_like(fac_value *x) {
    return fac_max(fac_min(x, number(x->graph, 0)), number(x->graph, 0));
}
/* |v| + e: as large as the exact operand may be. */
static inline fac_value *reach(fac_value *v, fac_value *e) { return plus(size_of(v), e); }

/* Dims of C numbers beside N,C,...: C,1,1 */
static inline fac_dims by_channel(const fac_value *c, const fac_value *x) {
    fac_dims d = { .n = x->type.dims.n - 1 };
    for (int k = 0; k < d.n; k++) d.d[k] = k ? 1 : fac_dims_count(&c->type.dims);
    return d;
}
#endif
