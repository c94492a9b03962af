/* Quantizers of files that do not name them: weights that have few levels, and numbers that are
 * compared with thresholds, as fac_graph_dequantize and others write them. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/quantize.h"
#include "graph/attr.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "ops/basis.h"
#include "quantize/quantize.h"
#include "train/train_internal.h"

/* ---- numbers: where(x > t3, q3, where(x > t2, q2, where(x > t1, q1, q0))) ---- */

bool fac_train_number(const fac_value *v, double *to) {
    float x;
    if (!v || !v->tensor || v->type.dtype != FAC_F32 || fac_dims_count(&v->type.dims) != 1)
        return false;
    if (fac_tensor_read(v->tensor, &x, sizeof x, NULL)) return false;
    *to = x;
    return true;
}

typedef struct chain {
    int n;
    double level[FAC_BASIS_LEVELS], threshold[FAC_BASIS_LEVELS];
    const fac_value *x;
} chain;

/* Levels from the highest on. */
static bool read_chain(const fac_value *v, chain *c) {
    c->n = 0;
    c->x = NULL;
    while (v->node && FAC_IS(v->node, where) && c->n < FAC_BASIS_LEVELS - 1) {
        const fac_node *above = v->node->in[0]->node;
        if (!above || !FAC_IS(above, greater) || (c->x && c->x != above->in[0])) return false;
        c->x = above->in[0];
        if (!fac_train_number(above->in[1], &c->threshold[c->n])) return false;
        if (!fac_train_number(v->node->in[1], &c->level[c->n])) return false;
        c->n++;
        v = v->node->in[2];
    }
    return c->n > 0 && fac_train_number(v, &c->level[c->n++]);
}

/* Are these the levels and thresholds of the basis? */
static bool fits(const chain *c, const double *v, int bits) {
    fac_basis b;
    fac_basis_of(v, 1, bits, true, true, &b);
    const double most = fabs(c->level[0]);
    for (int k = 0; k < c->n; k++)
        if (!fac_leveled_close(b.level[c->n - 1 - k], c->level[k], most)) return false;
    for (int k = 0; k + 1 < c->n; k++)
        if (!fac_leveled_close(b.threshold[c->n - 2 - k], c->threshold[k], most)) return false;
    return true;
}

/* Of the levels above 0,
    the numbers that span them all: chosen one after the other from `from` on. */
static bool span(const chain *c, int from, double *v, int have, int bits) {
    if (have == bits) return fits(c, v, bits);
    for (int k = from; k >= 0; k--) {
        v[have] = c->level[k];
        if (span(c, k - 1, v, have + 1, bits)) return true;
    }
    return false;
}

static int bits_of(int levels) {
    int bits = 1;
    while (1 << bits < levels) bits++;
    return bits;
}

static fac_value *basis_of(fac_graph *g, const float *v, fac_dims d) {
    fac_tensor *t;
    fac_error err = { 0 };
    fac_status status = fac_tensor_new(NULL, FAC_F32, d, &t, &err);
    if (status) return fac_graph_raise(g, status, "%s", err.text);
    status = fac_tensor_write(t, v, (size_t)fac_dims_count(&d) * sizeof *v, &err);
    fac_value *c = status ? fac_graph_raise(g, status, "%s", err.text) : fac_const(g, t);
    fac_tensor_free(t);
    return c;
}

/* The top of a chain that nobody goes on with. */
static bool is_top(const fac_node *n) {
    const fac_use *u = n->out[0]->uses;
    return !u || u->next || !FAC_IS(u->node, where) || u->input != 2;
}

/* x as the new graph has it: the input of the comparison. */
static bool put_chain(fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    chain c;
    double v[FAC_BASIS_BITS];
    float basis[FAC_BASIS_BITS];
    const fac_basis_opts positive = { .positive = true };
    if (!is_top(n) || !read_chain(n->out[0], &c) || c.level[c.n - 1] != 0) return false;
    const int bits = bits_of(c.n);
    if (1 << bits != c.n || bits > FAC_BASIS_BITS || !span(&c, c.n - 2, v, 0, bits)) return false;
    for (int j = 0; j < bits; j++) basis[j] = (float)v[j];
    fac_value *x = in[0]->node->in[0];
    out[0] = fac_quantize_basis(x, basis_of(to, basis, fac_shape(bits)), &positive);
    return true;
}

/* where(x < 0, -1, 1) */
static bool put_sign(const fac_node *n, fac_value *const in[], fac_value *out[]) {
    double zero, low, high;
    const fac_node *less = n->in[0]->node;
    if (!less || !FAC_IS(less, less) || !fac_train_number(less->in[1], &zero) || zero != 0)
        return false;
    if (!fac_train_number(n->in[1], &low) || !fac_train_number(n->in[2], &high) || low != -1 ||
        high != 1)
        return false;
    out[0] = fac_binarize(in[0]->node->in[0]);
    return true;
}

/* ---- weights ---- */

static bool is_weight(const fac_node *n, int i) {
    const bool layer =
        FAC_IS(n, conv2d) || FAC_IS(n, linear) || (FAC_IS(n, gemm) && fac_attr_flag(n, "trans_b"));
    return layer && i == 1;
}

/* The weight of a layer as a quantizer of itself; NULL: it has more levels. */
static fac_value *quantized(fac_graph *to, fac_value *w) {
    const fac_dims d = w->type.dims;
    fac_value *made = NULL;
    if (!w->tensor || w->type.dtype != FAC_F32 || d.n < 2 || fac_dims_count(&d) < 2) return NULL;
    const int64_t n = fac_dims_count(&d), channels = d.d[0];
    float *x = fac_alloc((size_t)n + (size_t)channels * FAC_BASIS_BITS, sizeof *x);
    if (!x) return fac_graph_raise(to, FAC_E_NOMEM, "no memory for the levels of a weight");
    const fac_rows rows = { NULL, x, channels, n / channels, n / channels, 1 };
    const bool good = !fac_tensor_read(w->tensor, x, (size_t)n * sizeof *x, NULL);
    const int bits = good ? fac_leveled_bits(&rows, x + n) : 0;
    if (bits) made = fac_quantize_basis(w, basis_of(to, x + n, fac_shape(bits, channels)), NULL);
    fac_release(x);
    return made;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    (void)self;
    if (to->error.status) return false;
    if (FAC_IS(n, where)) return put_sign(n, in, out) || put_chain(to, n, in, out);
    fac_value *w = is_weight(n, 1) ? quantized(to, in[1]) : NULL;
    if (!w) return false;
    fac_value *with[3] = { in[0], w, n->nin > 2 ? in[2] : NULL };
    fac_node_copy(to, n, with, out);
    return true;
}

fac_status fac_train_recognize(const fac_graph *model, fac_graph **out, fac_error *err) {
    fac_graph *g = fac_graph_rebuild(model, &(fac_rebuild){ .visit = visit }, NULL);
    if (!g) return fac_raise_memory(err, "a copy of the model");
    const fac_status status = fac_graph_check(g, err);
    if (status)
        fac_graph_free(g);
    else
        *out = g;
    return status;
}
