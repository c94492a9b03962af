/* A model that computes, beside each of its results y, a bound e of |y computed - y exact|: u = 2^-24 is the rounding unit and
 * gamma_n = n u / (1 - n u) (Higham 2002, "Accuracy and stability of numerical algorithms", section 3.1).
 *
 *   sum of K products    e = gamma_(K+2) |a||b| + e_a |b| + |a| e_b + e_a e_b, the same product with other operands
 *   a + b                e = e_a + e_b + u |y|
 *   a b                  e = e_a |b| + |a| e_b + e_a e_b + u |y|
 *   what moves or picks  e goes the same way; a maximum of windows takes the largest e
 *   f with |f'| <= L     e = L e_x + rounding of f, taken as 8 u (1 + |y|)
 *   softmax              e = y (exp(2 max e_x) - 1) + gamma_n y
 * Bounds are computed in f32 themselves; SLACK covers that, and what kernels do besides (Winograd's F(2,3), fused additions). */
#include <math.h>
#include <string.h>
#include "base/memory.h"
#include "facula/ops.h"
#include "passes/attr.h"
#include "report/verify.h"

static const double UNIT = 0x1p-24, SLACK = 4;

enum { OPERANDS = 512, RESULTS = 64 };

/* error: by id of a value of the new graph; NULL: exact */
typedef struct bounds { fac_value **error; const char *unknown; size_t ids; } bounds;

static double gamma_of(double n) { return SLACK * n * UNIT / (1 - n * UNIT); }
static fac_value *number(fac_graph *g, double x) { return fac_number(g, FAC_F32, x); }
static fac_value *times(fac_value *x, double by) { return fac_mul(x, number(x->graph, by)); }
static fac_value *plus(fac_value *a, fac_value *b) { return a && b ? fac_add(a, b) : a ? a : b; }

static fac_value *error_of(const bounds *b, const fac_value *v) { return v && v->id < b->ids ? b->error[v->id] : NULL; }

static bool is_one_of(const fac_node *n, const char *const *names) {
    while (*names && !fac_node_is(n, *names)) names++;
    return *names != NULL;
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

static double depth(const fac_node *n) {
    const fac_dims *w = &n->in[1]->type.dims;
    double k = 1;
    if (!strncmp(n->op->name, "conv", 4))
        for (int i = 1; i < w->n; i++) k *= (double)w->d[i];
    else if (fac_node_is(n, "gemm")) k = (double)n->in[0]->type.dims.d[!fac_attr_flag(n, "trans_a")];
    else k = (double)n->in[0]->type.dims.d[n->in[0]->type.dims.n - 1];
    return k;
}

/* |c| takes part in the rounding, e_c in the error. */
static fac_value *product_error(const bounds *b, fac_graph *to, const fac_node *n, fac_value *const in[]) {
    fac_value *ea = error_of(b, in[0]), *eb = error_of(b, in[1]), *c = n->nin > 2 ? in[2] : NULL, *ec = error_of(b, c);
    fac_value *absolute = fac_abs(in[0]), *other = fac_abs(in[1]);
    fac_value *e = times(same_op(to, n, in, absolute, other, c ? fac_abs(c) : NULL), gamma_of(depth(n) + 2));
    if (ea) e = fac_add(e, same_op(to, n, in, ea, other, NULL));
    if (eb) e = fac_add(e, same_op(to, n, in, ea ? fac_add(absolute, ea) : absolute, eb, NULL));
    return ec ? fac_add(e, ec) : e;                     /* beta is at most what |c| says: 1 in all that tiles */
}

static fac_value *norm_error(const bounds *b, fac_value *const in[], const fac_node *n) {
    fac_value *x = in[0], *e = error_of(b, x);
    fac_dims d = { .n = x->type.dims.n - 1 };
    for (int k = 0; k < d.n; k++) d.d[k] = k ? 1 : x->type.dims.d[1];
    fac_value *scale = fac_abs(fac_div(in[1], fac_sqrt(fac_add(in[4], number(x->graph, fac_attr_real(n, "epsilon", 1e-5))))));
    scale = fac_reshape(scale, d);
    fac_value *around = times(fac_add(fac_abs(x), fac_reshape(fac_abs(in[3]), d)), 8 * SLACK * UNIT);
    fac_value *sum = fac_mul(plus(around, e), scale);
    return fac_add(sum, fac_reshape(times(fac_abs(in[2]), SLACK * UNIT), d));
}

static fac_value *softmax_error(const bounds *b, const fac_node *n, fac_value *const in[], fac_value *y) {
    fac_value *e = error_of(b, in[0]);
    const fac_attr *a = fac_attr_find(n->op, "axis");
    const int64_t axis = a ? *(const int64_t *)(const void *)((const char *)n->attrs + a->at) : -1,
        at = axis < 0 ? axis + y->type.dims.n : axis;
    fac_value *round = times(y, gamma_of((double)y->type.dims.d[at] + 16));
    if (!e) return round;
    fac_value *most = fac_reduce_max(e, fac_shape(at), true);
    return fac_add(round, fac_mul(y, fac_sub(fac_exp(times(most, 2)), number(y->graph, 1 - UNIT))));
}

/* Functions of one number that change by at most L times as much. */
static const struct { const char *op; double L; } smooth[] = {
    { "sigmoid", 0.25 }, { "tanh", 1 }, { "gelu", 1.13 }, { "gelu_tanh", 1.13 }, { "silu", 1.1 }, { "erf", 1.13 },
        { "hard_sigmoid", 1 }, { "hard_swish", 1.5 },
    { "elu", 1 }, { "softplus", 1 }, { "softsign", 1 }, { "sin", 1 }, { "cos", 1 }, { "leaky_relu", 1 }, { "mish", 1.1 } };

static fac_value *smooth_error(const bounds *b, const fac_node *n, fac_value *const in[], fac_value *y, bool *known) {
    for (size_t k = 0; k < sizeof smooth / sizeof *smooth; k++) {
        if (!fac_node_is(n, smooth[k].op)) continue;
        fac_value *e = error_of(b, in[0]), *round = times(fac_add(fac_abs(y), number(y->graph, 1)), 8 * UNIT);
        *known = true;
        return e ? fac_add(round, times(e, smooth[k].L)) : round;
    }
    return NULL;
}

/* Moved, picked or left alone: the errors of data go the way of the data. */
static bool passes_on(const fac_node *n) {
    static const char *const names[] = { "relu", "clip", "identity", "dropout", "neg", "abs", "stop", NULL };
    return n->op->move || n->op->view || is_one_of(n, names);
}

/* The op on errors instead of data; where an operand is exact, on zeros. */
static fac_value *moved_error(bounds *b, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *e_out[]) {
    fac_value *args[OPERANDS];
    bool any = false;
    if (fac_node_is(n, "relu") || fac_node_is(n, "clip") || fac_node_is(n, "neg") || fac_node_is(n, "abs"))
        return error_of(b, in[0]);
    for (int i = 0; i < n->nin; i++) {
        fac_value *e = error_of(b, in[i]);
        const bool data = in[i] && in[i]->type.dtype == FAC_F32 &&
            !(fac_port_flags(n, i) & (FAC_INDEX | FAC_HOST | FAC_SHAPE_ONLY));
        any |= e != NULL;
        args[i] = !in[i] ? NULL : !data ? in[i] : e ? e : times(in[i], 0);
    }
    if (!any) return NULL;
    fac_node_copy(to, n, args, e_out);
    return e_out[0];
}

/* Of result 0; e_out has room for all, and gets those of the others where there are some. */
static fac_value *find_error(bounds *b, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *y,
                             fac_value *e_out[]) {
    static const char *const products[] = { "linear", "gemm", "matmul", "conv1d", "conv2d", "conv3d", NULL };
    bool known = false;
    fac_value *ea = error_of(b, in[0]), *eb = n->nin > 1 ? error_of(b, in[1]) : NULL;
    if (is_one_of(n, products)) return product_error(b, to, n, in);
    if (fac_node_is(n, "add") || fac_node_is(n, "sub")) return plus(plus(ea, eb), times(fac_abs(y), SLACK * UNIT));
    if (fac_node_is(n, "mul")) {
        fac_value *e = times(fac_abs(y), SLACK * UNIT);
        if (ea) e = fac_add(e, fac_mul(ea, fac_abs(in[1])));
        return eb ? fac_add(e, fac_mul(ea ? fac_add(fac_abs(in[0]), ea) : fac_abs(in[0]), eb)) : e;
    }
    if (fac_node_is(n, "div") && !eb) {
        fac_value *e = times(fac_abs(y), SLACK * UNIT);
        return ea ? fac_add(e, fac_div(ea, fac_abs(in[1]))) : e;
    }
    if (fac_node_is(n, "batch_norm")) return norm_error(b, in, n);
    if (fac_node_is(n, "softmax")) return softmax_error(b, n, in, y);
    if (!strncmp(n->op->name, "max_pool", 8)) return ea ? same_op(to, n, in, ea, NULL, NULL) : NULL;
    if (!strncmp(n->op->name, "avg_pool", 8) || fac_node_is(n, "mean") || fac_node_is(n, "sum")) {
        const double terms = (double)fac_dims_count(&in[0]->type.dims);
        fac_value *e = times(same_op(to, n, in, fac_abs(in[0]), NULL, n->nin > 2 ? in[2] : NULL),
                             gamma_of(terms < 65536 ? terms : 65536));
        return ea ? fac_add(e, same_op(to, n, in, ea, NULL, n->nin > 2 ? in[2] : NULL)) : e;
    }
    fac_value *e = smooth_error(b, n, in, y, &known);
    if (known) return e;
    if (passes_on(n)) return moved_error(b, to, n, in, e_out);
    bool exact = true;
    for (int i = 0; i < n->nin; i++) exact &= !error_of(b, in[i]);
    if ((!exact || strchr("f", fac_dtype_get(y->type.dtype)->kind)) && !b->unknown) b->unknown = n->op->name;
    return NULL;
}

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

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    bounds *b = self;
    fac_value *e[RESULTS] = { NULL };
    if (n->out[0]->type.dtype != FAC_F32 || n->out[0]->time != FAC_RUN || b->unknown) return false;
    if (n->nin > OPERANDS || n->nout > RESULTS) return b->unknown = n->op->name, false;
    fac_node_copy(to, n, in, out);
    if (fac_graph_check(to, NULL)) return true;
    e[0] = find_error(b, to, n, in, out[0], e);
    for (int k = 0; k < n->nout; k++)
        if (e[k] && !remember(b, out[k], e[k])) b->unknown = "(no memory)";
    return true;
}

fac_graph *fac_error_bounds(const fac_graph *g, const char **unknown) {
    bounds b = { 0 };
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .self = &b, .visit = visit, .keep_dead = true }, NULL);
    const size_t outputs = to ? to->noutputs : 0;
    for (size_t k = 0; k < outputs && !b.unknown && !fac_graph_check(to, NULL); k++) {
        char name[300];
        fac_value *y = to->outputs[k].value, *e = error_of(&b, y);
        snprintf(name, sizeof name, "%s.error", to->outputs[k].name);
        fac_output(to, name, e ? e : fac_mul(fac_abs(y), number(to, 0)));
    }
    if (to) fac_graph_sweep(to);
    *unknown = b.unknown;
    fac_release(b.error);
    return to;
}
