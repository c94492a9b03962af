/* A model over small integers: see facula/verify.h.
 *
 * Weights: w becomes one of -2, -1, 1, 2 by a hash of its bits, and 0 stays 0.  The rule looks at nothing but the number itself,
 * so a slice of the weights becomes the slice of the integers; constants that are no integers, the scale of attention say, do
 * the same.  Ops: what only moves or adds or multiplies stays; x mod 7 stands for every function of one number, so that results
 * stay small and any change of an input still changes most of what follows. */
#include <math.h>
#include <string.h>
#include "base/memory.h"
#include "facula/ops.h"
#include "passes/attr.h"
#include "report/verify.h"

enum { MODULUS = 7, OTHER = 11 };         /* OTHER does not divide 5040 */

static float as_integer(float w) {
    uint32_t bits;
    if (w == 0) return 0;
    memcpy(&bits, &w, sizeof bits);
    bits ^= bits >> 16, bits *= 0x85ebca6bu, bits ^= bits >> 13, bits *= 0xc2b2ae35u, bits ^= bits >> 16;    /* MurmurHash3 */
    const int w4 = (int)(bits % 4);
    return (float)(w4 < 2 ? w4 - 2 : w4 - 1);
}

/* Constants of the graph too, but for integers. */
static fac_value *leaf(void *self, fac_graph *to, const fac_value *v) {
    const bool constant = v->leaf == FAC_CONST && v->tensor, param = v->leaf == FAC_PARAM || v->leaf == FAC_STATE;
    bool *changed = self;
    if ((!param && !constant) || v->type.dtype != FAC_F32) return NULL;
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    const int64_t n = fac_dims_count(&v->type.dims);
    fac_status status = fac_tensor_new(NULL, FAC_F32, v->type.dims, &t, &err);
    float *x = status ? NULL : (float *)(uintptr_t)fac_tensor_data(t);
    if (!status) status = fac_tensor_read(v->tensor, x, (size_t)n * sizeof *x, &err);
    for (int64_t i = 0; i < n && !status; i++) {
        if (constant && (x[i] == rintf(x[i]) || !isfinite(x[i]))) continue;
        *changed |= constant;
        x[i] = as_integer(x[i]);
    }
    fac_value *made = status ? fac_graph_raise(to, status, "%s", err.text) : param ? fac_param(to, v->name, t) : fac_const(to, t);
    fac_tensor_free(t);
    return made;
}

/* Functions of one number, and what is like them. */
static bool becomes_modulo(const fac_node *n) {
    static const char *const names[] = {
        "relu", "sigmoid", "tanh", "gelu", "gelu_tanh", "silu", "erf", "exp", "log", "sqrt", "reciprocal", "elu", "selu", "celu",
        "leaky_relu", "hard_sigmoid", "hard_swish", "softplus", "softsign", "mish", "softmax", "log_softmax", "lrn", "sin", "cos",
        "tan", "clip", "thresholded_relu", NULL };
    return fac_op_is_one_of(n->op, names);
}

static fac_value *number(fac_graph *g, double x) { return fac_number(g, FAC_F32, x); }
static fac_value *modulo(fac_value *x) { return fac_mod(x, number(x->graph, MODULUS)); }

/* C numbers against N,C,...: C,1,1 */
static fac_value *by_channel(fac_value *c, const fac_value *x) {
    fac_dims d = { .n = x->type.dims.n - 1 };
    for (int k = 0; k < d.n; k++) d.d[k] = k ? 1 : fac_dims_count(&c->type.dims);
    return fac_reshape_sizes(c, d);
}

static fac_value *scaled(fac_value *x, fac_value *scale, fac_value *bias, bool channels) {
    if (scale) x = fac_mul(x, channels ? by_channel(scale, x) : scale);
    return bias ? fac_add(x, channels ? by_channel(bias, x) : bias) : x;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    (void)self;
    if (n->out[0]->type.dtype != FAC_F32 || n->out[0]->time != FAC_RUN || n->body[0]) return false;
    if (becomes_modulo(n)) {
        out[0] = modulo(in[0]);
    } else if (fac_node_is(n, "batch_norm") || fac_node_is(n, "instance_norm") || fac_node_is(n, "group_norm")) {
        out[0] = scaled(modulo(in[0]), in[1], in[2], in[1] && fac_dims_count(&in[1]->type.dims) == in[0]->type.dims.d[1]);
    } else if (fac_node_is(n, "layer_norm") || fac_node_is(n, "rms_norm")) {
        out[0] = scaled(modulo(in[0]), in[1], n->nin > 2 ? in[2] : NULL, false);
    } else if (!strncmp(n->op->name, "avg_pool", 8) || fac_node_is(n, "mean")) {
        fac_node_copy(to, n, in, out);          /* sums / counts: times all counts that occur, and rounded, it is the sum again */
        const double x = (double)fac_dims_count(&in[0]->type.dims), y = (double)fac_dims_count(&out[0]->type.dims);
        fac_value *whole = fac_round(fac_mul(out[0], number(to, fac_node_is(n, "mean") && y > 0 ? x / y : 5040)));
        out[0] = fac_mod(whole, number(to, OTHER));
    } else {
        return false;
    }
    return true;
}

/* ---- how large sums may become ---- */

static double largest_of(const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    fac_tensor *wide = NULL;
    double most = 0;
    if (type.dtype == FAC_TEXT || fac_tensor_convert(t, FAC_F64, &wide, NULL)) return INFINITY;
    const double *x = fac_tensor_data(wide);
    for (int64_t i = 0; x && i < fac_dims_count(&type.dims); i++) most = fmax(most, fabs(x[i]));
    fac_tensor_free(wide);
    return most;
}

static double known_most(const fac_value *v) {
    double most = 0;
    for (int i = 0; v->known && i < v->known->n; i++) most = fmax(most, fabs((double)v->known->v[i]));
    return most;
}

static double bound_of(const fac_node *n, const double *in, bool *integer) {
    static const char *const products[] = { "linear", "gemm", "matmul", "conv1d", "conv2d", "conv3d", "conv_transpose2d", NULL };
    static const char *const kept[] = {
        "max", "min", "where", "neg", "abs", "round", "floor", "ceil", "cast", "max_pool1d", "max_pool2d", "max_pool3d",
        "reduce_max", "reduce_min", "gather", "pad", "dropout", "sum_like", "mean", "avg_pool1d", "avg_pool2d", "avg_pool3d", "sign",
        NULL };
    double most = 0, sum = 0, product = 1;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]) most = fmax(most, in[i]), sum += in[i], product *= in[i];
    if (fac_node_among(n, products)) return fac_product_depth(n) * in[0] * in[1] + (n->nin > 2 && n->in[2] ? in[2] : 0);
    if (fac_node_is(n, "add") || fac_node_is(n, "sub")) return sum;
    if (fac_node_is(n, "mul")) return product;
    if (fac_node_is(n, "mod")) return in[1];
    if (fac_node_is(n, "sum")) return most * (double)fac_dims_count(&n->in[0]->type.dims);
    *integer = n->op->move || n->op->view || fac_node_among(n, kept) || strchr("iub", fac_dtype_get(n->out[0]->type.dtype)->kind);
    return most;
}

enum { INPUTS = 3 };            /* inputs are from -3 to 3, weights from -2 to 2 */

static bool measure(const fac_graph *g, double *largest, const char **real) {
    double *bound = fac_alloc((size_t)g->ids + 1, sizeof *bound), *in = NULL;
    size_t room = 0;
    bool good = bound != NULL;
    for (size_t i = 0; good && i < g->ninputs; i++) bound[g->inputs[i]->id] = INPUTS;
    for (size_t i = 0; good && i < g->nparams; i++)
        bound[g->params[i]->id] = g->params[i]->type.dtype == FAC_F32 ? 2 : largest_of(g->params[i]->tensor);
    for (size_t i = 0; good && i < g->nconsts; i++)
        bound[g->consts[i]->id] = g->consts[i]->tensor ? largest_of(g->consts[i]->tensor) : known_most(g->consts[i]);
    for (const fac_node *n = g->first; good && n; n = n->next) {
        bool integer = true;
        if (!(good = fac_reserve(&in, &room, (size_t)n->nin + 1, sizeof *in))) break;
        for (int i = 0; i < n->nin; i++) in[i] = n->in[i] ? bound[n->in[i]->id] : 0;
        const double most = bound_of(n, in, &integer);
        for (int k = 0; k < n->nout; k++) bound[n->out[k]->id] = most;
        if (n->out[0]->type.dtype != FAC_F32 || n->out[0]->time != FAC_RUN) continue;
        if (!integer && !*real) *real = n->op->name;
        *largest = fmax(*largest, most);
    }
    fac_release(bound);
    fac_release(in);
    return good;
}

fac_graph *fac_abstract(const fac_graph *g, double *largest, const char **real) {
    bool changed = false;
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .self = &changed, .visit = visit, .leaf = leaf }, NULL);
    *largest = 0;
    *real = changed ? "a constant" : NULL;              /* 0.25 of one model may be 0.5 0.5 of the other */
    if (!to || fac_graph_check(to, NULL) || measure(to, largest, real)) return to;
    fac_graph_free(to);
    return NULL;
}
