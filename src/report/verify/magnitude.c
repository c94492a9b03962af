/* How large the numbers of a model can become, from the largest of its inputs and weights: node by
 * node, by what is known of an op.  What is not known may be infinite. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "passes/common/frozen.h"
#include "report/verify/verify.h"

/* Of a sum of K products or the like: far below what the type holds. */
static const double F64_LIMIT = 1e290, F32_LIMIT = 1e36;
enum { OPERANDS = 16, PIECE = 1024 };

/* ---- sums and products ---- */

/* The most that an elementwise op makes of numbers up to these: it is linear in each, so at a
 * corner. */
static double corner(const fac_node *n, const double *in) {
    double most = 0;
    for (unsigned corners = 0; corners < 1u << n->op->map->inputs; corners++) {
        const void *args[3];
        double x[3], y = 0;
        for (int i = 0; i < n->op->map->inputs; i++) {
            x[i] = corners >> i & 1 ? -in[i] : in[i];
            args[i] = &x[i];
        }
        n->op->map->f64[FAC_ISA_BASE](1, args, NULL, &y);
        most = fmax(most, fabs(y));
    }
    return most;
}

/* Numbers in one sum. */
static double terms(const fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    const double from = (double)fac_dims_count(x),
                 to = (double)fac_dims_count(&n->out[0]->type.dims);
    double longest = 1;
    if (to > 0 && to < from) return from / to;
    for (int k = 0; k < x->n; k++) longest = fmax(longest, (double)x->d[k]);
    return longest;
}

bool fac_reads_data(const fac_node *n, int i) {
    return !(fac_port_flags(n, i) & (FAC_HOST | FAC_INDEX | FAC_SHAPE_ONLY));
}

bool fac_multiplies(const fac_node *n) {
    return !n->op->map && n->nports > 1 && n->in[1] && fac_is_float(n->in[1]) &&
           fac_reads_data(n, 1);
}

double fac_ring_bound(const fac_node *n, const double *in) {
    const double alpha = fac_attr_real(n, "alpha", 1), beta = fac_attr_real(n, "beta", 1);
    if (n->op->map) return corner(n, in);
    if (!fac_multiplies(n)) return terms(n) * in[0];
    const double product = fac_product_depth(n) * in[0] * in[1];
    return fmax(1, fabs(alpha)) * product + (n->nin > 2 ? fmax(1, fabs(beta)) * in[2] : 0);
}

/* ---- other ops ---- */

static double largest_of(const fac_node *n, const double *in) {
    double most = 1;
    for (int i = 0; i < n->nin && i < OPERANDS; i++)
        if (n->in[i] && fac_reads_data(n, i)) most = fmax(most, in[i]);
    return most;
}

static double smooth(const fac_node *n, double x) {
    const double zero = 0;
    const void *args[] = { &zero };
    double y = 0;
    if (!n->op->map || n->op->map->inputs != 1 || n->op->attrs) return INFINITY;
    n->op->map->f64[FAC_ISA_BASE](1, args, NULL, &y);
    return fabs(y) + n->op->rounding.slope * x;
}

static double smallest(const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    const int64_t n = fac_dims_count(&type.dims);
    double x[PIECE], least = INFINITY;
    for (int64_t from = 0, here; from < n; from += here) {
        here = n - from < PIECE ? n - from : PIECE;
        fac_tensor_doubles(t, from, here, x);
        for (int64_t k = 0; k < here; k++) least = x[k] < least ? x[k] : least;
    }
    return least;
}

/* (x - mean) / sqrt(var + epsilon) scale + bias */
static double batch_norm(const fac_node *n, const double *in) {
    if (fac_attr_flag(n, "training_mode") || n->nin != 5 || !n->in[4] || !n->in[4]->tensor)
        return INFINITY;
    const double var = smallest(n->in[4]->tensor) + fac_attr_real(n, "epsilon", 0);
    return var > 0 ? (in[0] + in[3]) / sqrt(var) * in[1] + in[2] : INFINITY;
}

/* No number is further from the mean of n than sqrt(n) times their deviation; squares of all are
 * added on the way. */
static double layer_norm(const fac_node *n, const double *in) {
    const double count = (double)fac_dims_count(&n->in[0]->type.dims);
    const double scale = n->nin > 1 && n->in[1] ? in[1] : 1;
    const double bias = n->nin > 2 && n->in[2] ? in[2] : 0;
    return count * 4 * in[0] * in[0] < F64_LIMIT ? sqrt(count) * scale + bias : INFINITY;
}

static double quotient(const fac_node *n, const double *in) {
    double by = 0;
    return fac_frozen_number(n->in[1], &by) && by != 0 ? in[0] / fabs(by) : INFINITY;
}

static double of_rule(const fac_node *n, const double *in) {
    switch (n->op->rounding.rule) {
    case FAC_ROUND_MOVES: /* dropout scales what it keeps */
        return fac_attr_flag(n, "training") ? INFINITY : largest_of(n, in);
    case FAC_ROUND_LARGEST:
    case FAC_ROUND_PICK:
        return largest_of(n, in);
    case FAC_ROUND_KEEPS:
        return n->op->attrs ? INFINITY : largest_of(n, in);
    case FAC_ROUND_SUM:
        return fmax(terms(n), 1) * in[0];
    case FAC_ROUND_SMOOTH:
        return smooth(n, in[0]);
    case FAC_ROUND_SOFTMAX:
        return 1;
    case FAC_ROUND_BATCH_NORM:
        return batch_norm(n, in);
    case FAC_ROUND_LAYER_NORM:
        return layer_norm(n, in);
    case FAC_ROUND_DIV:
        return quotient(n, in);
    default:
        return INFINITY;
    }
}

/* Of a value that is read: of whole numbers and bools, what their type holds. */
static double bound_of(const fac_value *v, const double *bounds) {
    if (!v) return 0;
    if (fac_is_float(v)) return bounds[v->id];
    const fac_dtype_info *t = fac_dtype_get(v->type.dtype);
    return t->kind == 'i' || t->kind == 'u' || t->kind == 'b' ? ldexp(1, t->bits) : INFINITY;
}

static double of_node(const fac_node *n, const double *bounds) {
    double in[OPERANDS] = { 0 };
    if (n->nin > OPERANDS) {
        double most = 1;
        for (int i = 0; i < n->nin; i++) most = fmax(most, bound_of(n->in[i], bounds));
        return n->op->rounding.rule == FAC_ROUND_MOVES ? most : INFINITY;
    }
    for (int i = 0; i < n->nin; i++) in[i] = bound_of(n->in[i], bounds);
    if (n->op->is & FAC_OP_RING) return fac_ring_bound(n, in);
    if (n->op->is & FAC_OP_PICKS) return largest_of(n, in);
    return of_rule(n, in);
}

/* ---- a model ---- */

/* Infinite where one of its numbers is no finite one. */
static double largest(const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    const int64_t n = fac_dims_count(&type.dims);
    double x[PIECE], most = 0;
    for (int64_t from = 0, here; from < n; from += here) {
        here = n - from < PIECE ? n - from : PIECE;
        fac_tensor_doubles(t, from, here, x);
        for (int64_t k = 0; k < here; k++)
            if (!(fabs(x[k]) <= most)) most = isfinite(x[k]) ? fabs(x[k]) : INFINITY;
        if (!isfinite(most)) break;
    }
    return most;
}

static double of_leaf(const fac_value *v) { return v->tensor ? largest(v->tensor) : INFINITY; }

static double limit_of(const fac_value *v) {
    if (v->type.dtype == FAC_F64) return F64_LIMIT;
    return v->type.dtype == FAC_F32 ? F32_LIMIT : 0;
}

fac_status fac_stays_finite(const fac_trial *t, const fac_graph *g, bool *yes) {
    double *bounds = fac_alloc((size_t)g->ids + 1, sizeof *bounds);
    if (!bounds) return fac_raise_memory(t->err, "bounds");
    for (size_t i = 0; i < g->ninputs; i++)
        if (fac_is_float(g->inputs[i])) bounds[g->inputs[i]->id] = largest(t->in[i]);
    for (size_t i = 0; i < g->nparams; i++)
        if (fac_is_float(g->params[i])) bounds[g->params[i]->id] = of_leaf(g->params[i]);
    for (size_t i = 0; i < g->nconsts; i++)
        if (fac_is_float(g->consts[i])) bounds[g->consts[i]->id] = of_leaf(g->consts[i]);
    *yes = true;
    for (const fac_node *n = g->first; n && *yes; n = n->next) {
        const double bound = n->body[0] ? INFINITY : of_node(n, bounds);
        for (int k = 0; k < n->nout; k++)
            if (fac_is_float(n->out[k])) bounds[n->out[k]->id] = bound;
        if (n->body[0] || n->op->is & (FAC_OP_RING | FAC_OP_GROWS))
            *yes = !fac_is_float(n->out[0]) || bound <= limit_of(n->out[0]);
    }
    fac_release(bounds);
    return FAC_OK;
}
