/* A model that computes, beside each of its results y, a bound e of |y computed - y exact|: u is the rounding unit, 2^-24 for
 * f32, and gamma_n = n u / (1 - n u) (Higham 2002, "Accuracy and stability of numerical algorithms", section 3.1).
 *
 *   sum of K products    e = gamma_(K+2) |a||b| + e_a |b| + |a| e_b + e_a e_b, the same product with other operands
 *   a + b                e = e_a + e_b + u |y|
 *   a b                  e = e_a |b| + |a| e_b + e_a e_b + u |y|
 *   what moves or picks  e goes the same way; a maximum of windows takes the largest e
 *   f with |f'| <= L     e = L e_x + rounding of f, taken as 8 u (1 + |y|)
 *   softmax              e = y (exp(2 max e_x) - 1) + gamma_n y
 * Bounds are computed in f32 themselves; SLACK covers that, and what kernels do besides (Winograd's F(2,3), fused additions).
 * Ops on 16-bit floats sum in f32 at least and round their result once; one that is too small for the type loses half of its
 * smallest step. */
#include <math.h>
#include <string.h>
#include "base/memory.h"
#include "facula/ops.h"
#include "passes/attr.h"
#include "report/verify.h"

static const double UNIT = 0x1p-24, SLACK = 4;

/* The rounding unit of a type, and half of its smallest step. */
static double unit_of(fac_dtype t) { return t == FAC_F16 ? 0x1p-11 : t == FAC_BF16 ? 0x1p-8 : t == FAC_F64 ? 0x1p-53 : UNIT; }
static double tiny_of(fac_dtype t) { return t == FAC_F16 ? 0x1p-25 : 0; }
static bool   is_coarse(fac_dtype t) { return t == FAC_F16 || t == FAC_BF16; }

enum { RESULTS = 64 };

/* error: by id of a value of the new graph; NULL: exact */
typedef struct bounds { fac_value **error; const char *unknown; size_t ids; bool coarse; } bounds;

static double gamma_of(double n) { return SLACK * n * UNIT / (1 - n * UNIT); }
static fac_value *number(fac_graph *g, double x) { return fac_number(g, FAC_F32, x); }
static fac_value *times(fac_value *x, double by) { return fac_mul(x, number(x->graph, by)); }
static fac_value *plus(fac_value *a, fac_value *b) { return a && b ? fac_add(a, b) : a ? a : b; }

/* Errors are f32, whatever their values are. */
static fac_value *wide(fac_value *v) { return v->type.dtype == FAC_F32 ? v : fac_cast(v, FAC_F32); }
static fac_value *size_of(fac_value *v) { return fac_abs(wide(v)); }

/* Ids grow with the graph: the array follows them. */
static bool remember(bounds *b, const fac_value *y, fac_value *e) {
    if (y->id >= b->ids) {
        const size_t need = 2 * ((size_t)y->id + 1024);
        fac_value **more = fac_resize(b->error, need, sizeof *more);
        if (!more) return false;
        memset(more + b->ids, 0, (need - b->ids) * sizeof *more);
        b->error = more;
        b->ids = need;
    }
    b->error[y->id] = e;
    return true;
}

/* What rounding to its type may do to y. */
static fac_value *rounded(fac_value *y) {
    const fac_dtype t = y->type.dtype;
    fac_value *e = times(size_of(y), 2 * unit_of(t));
    return tiny_of(t) > 0 ? fac_add(e, number(y->graph, tiny_of(t))) : e;
}

static fac_value *error_of(bounds *b, fac_value *v) {
    fac_value *e = v && v->id < b->ids ? b->error[v->id] : NULL;
    if (e || !v || !b->coarse || !is_coarse(v->type.dtype) || (v->leaf != FAC_PARAM && v->leaf != FAC_STATE)) return e;
    e = rounded(v);
    return remember(b, v, e) ? e : (b->unknown = "(no memory)", NULL);
}

/* The same op with other operands; optional ones may be left out. */
static fac_value *same_op(fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *a, fac_value *b, fac_value *c) {
    fac_value *args[16], *out[8];
    if (n->nin > 16 || n->nout > 8) return NULL;
    for (int i = 0; i < n->nin; i++) args[i] = in[i];
    args[0] = a;
    if (n->nin > 1 && b) args[1] = b;
    if (n->nin > 2) args[2] = c;
    fac_node_copy(to, n, args, out);
    return out[0];
}

/* Dims of C numbers beside N,C,...: C,1,1 */
static fac_dims by_channel(const fac_value *c, const fac_value *x) {
    fac_dims d = { .n = x->type.dims.n - 1 };
    for (int k = 0; k < d.n; k++) d.d[k] = k ? 1 : fac_dims_count(&c->type.dims);
    return d;
}

/* |c| takes part in the rounding, e_c in the error. */
static fac_value *product_error(bounds *b, fac_graph *to, const fac_node *n, fac_value *const in[]) {
    fac_value *ea = error_of(b, in[0]), *eb = error_of(b, in[1]), *c = n->nin > 2 ? in[2] : NULL, *ec = error_of(b, c);
    fac_value *absolute = size_of(in[0]), *other = size_of(in[1]);
    fac_value *e = times(same_op(to, n, in, absolute, other, c ? size_of(c) : NULL), gamma_of(fac_product_depth(n) + 2));
    if (ea) e = fac_add(e, same_op(to, n, in, ea, other, NULL));
    if (eb) e = fac_add(e, same_op(to, n, in, ea ? fac_add(absolute, ea) : absolute, eb, NULL));
    if (ec && !strncmp(n->op->name, "conv", 4)) ec = fac_reshape(ec, by_channel(ec, e));
    return ec ? fac_add(e, ec) : e;                     /* beta is at most what |c| says: 1 in all that tiles */
}

/* 1 / sqrt(v + epsilon) may be off by as much as a variance that is e smaller makes it. */
static fac_value *rate_error(fac_value *variance, fac_value *e, fac_value *epsilon, fac_value *rate) {
    fac_value *least = fac_max(fac_sub(variance, e), number(e->graph, 0));
    return fac_sub(fac_div(number(e->graph, 1), fac_sqrt(fac_add(least, epsilon))), rate);
}

/* y = (x - m) r s + t with r = 1 / sqrt(v + epsilon): the rounding of both sums, then what the operands' own errors do. */
static fac_value *norm_error(bounds *b, fac_value *const in[], const fac_node *n) {
    fac_value *x = wide(in[0]), *epsilon = number(x->graph, fac_attr_real(n, "epsilon", 1e-5)), *variance = wide(in[4]);
    fac_value *es = error_of(b, in[1]), *et = error_of(b, in[2]), *em = error_of(b, in[3]), *ev = error_of(b, in[4]);
    fac_value *rate = fac_div(number(x->graph, 1), fac_sqrt(fac_add(variance, epsilon)));
    fac_value *er = ev ? rate_error(variance, ev, epsilon, rate) : NULL, *scale = size_of(in[1]), *product = NULL;
    if (es || er) {                                     /* of r s: e_r (|s| + e_s) + r e_s */
        product = er ? fac_mul(er, plus(scale, es)) : NULL;
        product = plus(product, es ? fac_mul(rate, es) : NULL);
    }
    const fac_dims d = by_channel(in[1], x);
    fac_value *sum = fac_add(fac_abs(x), fac_reshape(size_of(in[3]), d));
    fac_value *off = plus(times(sum, 8 * SLACK * UNIT), plus(error_of(b, in[0]), em ? fac_reshape(em, d) : NULL));
    fac_value *e = fac_mul(off, fac_reshape(plus(fac_mul(scale, rate), product), d));
    if (product) e = fac_add(e, fac_mul(fac_abs(fac_sub(x, fac_reshape(wide(in[3]), d))), fac_reshape(product, d)));
    return fac_add(e, fac_reshape(plus(times(size_of(in[2]), SLACK * UNIT), et), d));
}

static fac_value *softmax_error(bounds *b, const fac_node *n, fac_value *const in[], fac_value *y) {
    fac_value *e = error_of(b, in[0]);
    const fac_attr *a = fac_attr_find(n->op, "axis");
    const int64_t axis = a ? *(const int64_t *)(const void *)((const char *)n->attrs + a->at) : -1,
        at = axis < 0 ? axis + y->type.dims.n : axis;
    fac_value *round = times(wide(y), gamma_of((double)y->type.dims.d[at] + 16));
    if (!e) return round;
    fac_value *most = fac_reduce_max(e, fac_shape(at), true);
    return fac_add(round, fac_mul(wide(y), fac_sub(fac_exp(times(most, 2)), number(y->graph, 1 - UNIT))));
}

/* Functions of one number that change by at most L times as much. */
static const struct { const char *op; double L; } smooth[] = {
    { "sigmoid", 0.25 }, { "tanh", 1 }, { "gelu", 1.13 }, { "gelu_tanh", 1.13 }, { "silu", 1.1 }, { "erf", 1.13 },
        { "hard_sigmoid", 1 }, { "hard_swish", 1.5 },
    { "elu", 1 }, { "softplus", 1 }, { "softsign", 1 }, { "sin", 1 }, { "cos", 1 }, { "leaky_relu", 1 }, { "mish", 1.1 } };

static fac_value *smooth_error(bounds *b, const fac_node *n, fac_value *const in[], fac_value *y, bool *known) {
    for (size_t k = 0; k < sizeof smooth / sizeof *smooth; k++) {
        if (!fac_node_is(n, smooth[k].op)) continue;
        fac_value *e = error_of(b, in[0]), *round = times(fac_add(size_of(y), number(y->graph, 1)), 8 * UNIT);
        *known = true;
        return e ? fac_add(round, times(e, smooth[k].L)) : round;
    }
    return NULL;
}

/* Zeros, also where x is infinite. */
static fac_value *zeros_like(fac_value *x) {
    fac_value *zero = number(x->graph, 0);
    return fac_max(fac_min(x, zero), zero);
}

/* Moved, picked or left alone: the errors of data go the way of the data. */
static bool passes_on(const fac_node *n) {
    static const char *const names[] = { "relu", "clip", "identity", "dropout", "neg", "abs", "stop", NULL };
    return n->op->move || n->op->view || fac_node_among(n, names);
}

/* The op on errors instead of data; where an operand is exact, on zeros. */
static fac_value *moved_error(bounds *b, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *e_out[]) {
    fac_value **args = fac_arena_alloc(&to->arena, (size_t)n->nin + 1, sizeof *args);
    bool any = false;
    if (!args) return fac_graph_raise(to, FAC_E_NOMEM, "no memory for %d operands", n->nin);
    if (fac_node_is(n, "relu") || fac_node_is(n, "clip") || fac_node_is(n, "neg") || fac_node_is(n, "abs"))
        return error_of(b, in[0]);
    for (int i = 0; i < n->nin; i++) {
        fac_value *e = error_of(b, in[i]);
        const bool data = in[i] && fac_is_float(in[i]) && !(fac_port_flags(n, i) & (FAC_INDEX | FAC_HOST | FAC_SHAPE_ONLY));
        any |= e != NULL;
        args[i] = !in[i] ? NULL : !data ? in[i] : e ? e : zeros_like(wide(in[i]));
    }
    if (!any) return NULL;
    fac_node_copy(to, n, args, e_out);
    return e_out[0];
}

static fac_value *mul_error(bounds *b, fac_value *const in[], fac_value *y) {
    fac_value *ea = error_of(b, in[0]), *eb = error_of(b, in[1]), *e = times(size_of(y), SLACK * UNIT);
    if (ea) e = fac_add(e, fac_mul(ea, size_of(in[1])));
    return eb ? fac_add(e, fac_mul(ea ? fac_add(size_of(in[0]), ea) : size_of(in[0]), eb)) : e;
}

/* (e_a + |y| e_b) / (|b| - e_b); where b may be zero the quotient says nothing: a tiny number in its place gives a huge bound. */
static fac_value *div_error(bounds *b, fac_value *const in[], fac_value *y) {
    fac_value *ea = error_of(b, in[0]), *eb = error_of(b, in[1]), *e = times(size_of(y), SLACK * UNIT), *below = size_of(in[1]);
    if (!ea && !eb) return e;
    fac_value *above = plus(ea, eb ? fac_mul(size_of(y), eb) : NULL);
    if (eb) below = fac_max(fac_sub(below, eb), number(y->graph, 1e-30));
    return fac_add(e, fac_div(above, below));
}

/* Of the arithmetic in f32, before the result is rounded to its type; e_out gets those of other results where there are some. */
static fac_value *find_error(bounds *b, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *y,
                             fac_value *e_out[]) {
    static const char *const products[] = { "linear", "gemm", "matmul", "conv1d", "conv2d", "conv3d", NULL };
    bool known = false;
    fac_value *ea = n->nin ? error_of(b, in[0]) : NULL, *eb = n->nin > 1 ? error_of(b, in[1]) : NULL;
    if (fac_node_among(n, products)) return product_error(b, to, n, in);
    if (fac_node_is(n, "add") || fac_node_is(n, "sub")) return plus(plus(ea, eb), times(size_of(y), SLACK * UNIT));
    if (fac_node_is(n, "mul")) return mul_error(b, in, y);
    if (fac_node_is(n, "div")) return div_error(b, in, y);
    if (fac_node_is(n, "cast") && fac_is_float(in[0])) return ea;
    if (fac_node_is(n, "batch_norm")) return norm_error(b, in, n);
    if (fac_node_is(n, "softmax")) return softmax_error(b, n, in, y);
    if (!strncmp(n->op->name, "max_pool", 8)) return ea ? same_op(to, n, in, ea, NULL, NULL) : NULL;
    if (!strncmp(n->op->name, "avg_pool", 8) || fac_node_is(n, "mean") || fac_node_is(n, "sum")) {
        const double terms = (double)fac_dims_count(&in[0]->type.dims);
        fac_value *e = times(same_op(to, n, in, size_of(in[0]), NULL, n->nin > 2 ? in[2] : NULL),
                             gamma_of(terms < 65536 ? terms : 65536));
        return ea ? fac_add(e, same_op(to, n, in, ea, NULL, n->nin > 2 ? in[2] : NULL)) : e;
    }
    fac_value *e = smooth_error(b, n, in, y, &known);
    if (known) return e;
    if (passes_on(n)) return moved_error(b, to, n, in, e_out);
    bool exact = true;
    for (int i = 0; i < n->nin; i++) exact &= !error_of(b, in[i]);
    if ((!exact || fac_is_float(y)) && !b->unknown) b->unknown = n->op->name;
    return NULL;
}

/* What only moves or picks numbers rounds nothing. */
static bool rounds(const fac_node *n) {
    if (!is_coarse(n->out[0]->type.dtype)) return false;
    return fac_node_is(n, "cast") || (!passes_on(n) && strncmp(n->op->name, "max_pool", 8));
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    bounds *b = self;
    fac_value *e[RESULTS] = { NULL };
    if (n->out[0]->time == FAC_COMPILE || b->unknown) return false;
    bool any = false;                                   /* integers that were made of floats count too */
    for (int i = 0; i < n->nin; i++) any |= in[i] && error_of(b, in[i]);
    if (!fac_is_float(n->out[0]) && !any) return false;
    if (n->nout > RESULTS) return b->unknown = n->op->name, false;
    fac_node_copy(to, n, in, out);
    if (fac_graph_check(to, NULL)) return true;
    e[0] = find_error(b, to, n, in, out[0], e);
    if (rounds(n)) e[0] = plus(e[0], rounded(out[0]));
    for (int k = 0; k < n->nout; k++)
        if (e[k] && !remember(b, out[k], e[k])) b->unknown = "(no memory)";
    return true;
}

fac_graph *fac_error_bounds(const fac_graph *g, bool coarse, int *error_at, const char **unknown) {
    bounds b = { .coarse = coarse };
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .self = &b, .visit = visit, .keep_dead = true }, NULL);
    const size_t outputs = to ? to->noutputs : 0;
    for (size_t k = 0; k < outputs && !b.unknown && !fac_graph_check(to, NULL); k++) {
        char name[48];
        fac_value *e = error_of(&b, to->outputs[k].value);
        error_at[k] = e ? (int)to->noutputs : -1;
        snprintf(name, sizeof name, "verify.error.%zu", k);
        if (e) fac_output(to, name, e);
    }
    if (to) fac_graph_sweep(to);
    *unknown = b.unknown;
    fac_release(b.error);
    return to;
}
