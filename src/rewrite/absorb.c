/* What is done by channel to the result of a convolution or product goes into its weights, for
 * good:
 *   batch_norm(y) = y s + t,   s = scale / sqrt(var + epsilon),  t = bias - mean s
 *   y f, y / f, y + f, y - f   with one f for each channel, or one for all
 * after a convolution, transposed convolution, Gemm, or product with a constant matrix that only it
 * reads:
 *   w' = w s (by output channel),  b' = b s + t
 * and zeros around the image of a convolution become its padding.  w' and b' are ops on parameters,
 * which baking computes. batch_norm.c does the first of these for plans, at prepare time; here
 * nodes must not become more, so that a batch norm without a convolution before it stays.  Changes
 * rounding. */
#include <string.h>
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/frozen.h"
#include "passes/passes.h"
#include "passes/common/single.h"

static bool early(const fac_value *v) { return v && v->time != FAC_RUN; }

/* ---- what absorbs ---- */

typedef struct layer {
    const fac_node *node;
    int channel; /* dim of the result that has the channels             */
    int weight;  /* dim of the weights that has them                    */
    bool bias;   /* takes one: Gemm and convolutions                    */
} layer;

static bool is_conv(const fac_node *n) { return n->op->layer == FAC_CLASS_CONV; }
static bool is_transposed(const fac_node *n) {
    return FAC_IS(n, conv_transpose1d) || FAC_IS(n, conv_transpose2d) ||
           FAC_IS(n, conv_transpose3d);
}

/* The layer whose result is `v`, which one node alone reads. */
static bool layer_of(const fac_value *old, const fac_value *v, layer *l) {
    const fac_node *m = v ? v->node : NULL;
    if (!m || m->body[0] || !fac_used_once(old) || m->nin < 2 || !early(m->in[1]) ||
        (m->nin > 2 && m->in[2] && !early(m->in[2])))
        return false;
    *l = (layer){ .node = m, .channel = 1, .bias = true };
    if (is_conv(m)) return true;
    if (is_transposed(m)) {
        l->weight = 1;
        return fac_attr_int(m, "groups", 1) == 1;
    }
    l->channel = v->type.dims.n - 1;
    if (FAC_IS(m, gemm)) {
        l->weight = !fac_attr_flag(m, "trans_b");
        return !m->in[2] || fac_attr_real(m, "beta", 1) == 1;
    }
    l->weight = 1;
    l->bias = false;
    return FAC_IS(m, matmul) && m->in[1]->type.dims.n == 2 && v->type.dims.n >= 2;
}

/* ---- factors and summands ---- */

/* f as [channels]: given for each channel of y, or once for all; NULL. */
static fac_value *by_channel(fac_value *f, const fac_value *y, const layer *l) {
    const fac_dims *d = &f->type.dims;
    const int64_t channels = y->type.dims.d[l->channel], count = fac_dims_count(d);
    const int axis = d->n - (y->type.dims.n - l->channel);
    if (!early(f) || f->type.dtype != y->type.dtype || channels < 1 || d->n > y->type.dims.n)
        return NULL;
    if (count == 1) return fac_expand(fac_reshape_sizes(f, fac_shape(1)), fac_shape(channels));
    return axis >= 0 && d->d[axis] == channels && count == channels
               ? fac_reshape_sizes(f, fac_shape(channels))
               : NULL;
}

/* [C] -> [C,1,..] so that it scales dim `at` of `rank`. */
static fac_value *along(fac_value *v, int rank, int at) {
    fac_dims d = { .n = rank };
    for (int k = 0; k < rank; k++) d.d[k] = k == at ? v->type.dims.d[0] : 1;
    return fac_reshape_sizes(v, d);
}

/* The layer with y s + t instead of y; s or t may be NULL. */
static fac_value *absorbed(const layer *l, fac_value *s, fac_value *t) {
    const fac_node *m = l->node;
    fac_value *w = m->in[1], *b = m->nin > 2 ? m->in[2] : NULL;
    if (s) w = fac_mul(w, along(s, w->type.dims.n, l->weight));
    if (s && b) b = fac_mul(b, s);
    if (t) b = b ? fac_add(b, t) : t;
    fac_value *args[3] = { m->in[0], w, b };
    fac_value *y = fac_emit(m->op, m->attrs, b ? 3 : 2, args);
    if (y->node) {
        y->node->name = m->name;
        y->node->scope = m->scope;
    }
    return y;
}

static fac_value *norm(fac_graph *to, const fac_node *n, fac_value *const in[]) {
    layer l;
    if (!FAC_IS(n, batch_norm) || fac_attr_flag(n, "training_mode") ||
        !layer_of(n->in[0], in[0], &l))
        return NULL;
    for (int i = 1; i < 5; i++)
        if (!early(in[i]) || in[i]->type.dtype != in[0]->type.dtype) return NULL;
    for (int k = 1; k < n->nout; k++)
        if (n->out[k]->uses || n->out[k]->roots) return NULL;
    if (!l.bias || l.channel != 1) return NULL;
    fac_value *e = fac_number(to, in[0]->type.dtype, fac_attr_real(n, "epsilon", 1e-5));
    fac_value *s = fac_div(in[1], fac_sqrt(fac_add(in[4], e)));
    return absorbed(&l, s, fac_sub(in[2], fac_mul(in[3], s)));
}

static fac_value *affine(const fac_node *n, fac_value *const in[]) {
    const bool mul = FAC_IS(n, mul), add = FAC_IS(n, add), div = FAC_IS(n, div),
               sub = FAC_IS(n, sub);
    layer l;
    for (int i = 0; i < 2 && (mul || add || div || sub); i++) {
        if (i && (div || sub)) break; /* 1 / y and 1 - y are no such things */
        if (!layer_of(n->in[i], in[i], &l) || (!l.bias && (add || sub))) continue;
        if (!fac_dims_equal(&in[i]->type.dims, &n->out[0]->type.dims)) continue;
        fac_value *f = by_channel(in[1 - i], in[i], &l);
        if (!f) continue;
        if (mul || div) return absorbed(&l, mul ? f : fac_reciprocal(f), NULL);
        return absorbed(&l, NULL, add ? f : fac_neg(f));
    }
    return NULL;
}

/* ---- padding ---- */

/* Zeros that a pad puts around the spatial dims: before[k], after[k]. */
static bool zeros_around(const fac_node *n, int spatial, int64_t before[3], int64_t after[3]) {
    fac_contents pads, axes = { 0 };
    const fac_attr *mode = fac_attr_find(n->op, "mode");
    const int rank = spatial + 2;
    if (*(const int *)(const void *)((const char *)n->attrs + mode->at) != FAC_PAD_CONSTANT)
        return false;
    if (n->in[2] && !fac_frozen_is(n->in[2], 0)) return false;
    if (!fac_known_numbers(n->in[1], &pads) || (n->in[3] && !fac_known_numbers(n->in[3], &axes)))
        return false;
    const int count = n->in[3] ? axes.n : rank;
    memset(before, 0, 3 * sizeof *before), memset(after, 0, 3 * sizeof *after);
    for (int k = 0; k < count && pads.n == 2 * count; k++) {
        const int axis = n->in[3] ? fac_axis(axes.v[k], rank) : k;
        const int64_t a = pads.v[k], b = pads.v[count + k];
        if (a < 0 || b < 0 || axis < 0 || (axis < 2 && (a || b))) return false;
        if (axis >= 2) {
            before[axis - 2] = a;
            after[axis - 2] = b;
        }
    }
    return pads.n == 2 * count;
}

static fac_value *padded(fac_graph *to, const fac_node *n, fac_value *const in[]) {
    enum { LARGEST = 1 << 20 };
    const fac_node *p = in[0] ? in[0]->node : NULL;
    int64_t before[3], after[3];
    if (!FAC_IS(p, pad) || !is_conv(n) || n->body[0] || !fac_used_once(n->in[0])) return NULL;
    const int spatial = in[1]->type.dims.n - 2;
    const fac_attr *a = fac_attr_find(n->op, "pad"), *automatic = fac_attr_find(n->op, "auto_pad");
    if (!a || a->count != 2 * spatial || !zeros_around(p, spatial, before, after)) return NULL;
    if (automatic && *(const int *)(const void *)((const char *)n->attrs + automatic->at))
        return NULL;
    char *attrs = fac_arena_alloc(&to->arena, 1, n->op->attrs_size);
    if (!attrs) return NULL;
    memcpy(attrs, n->attrs, n->op->attrs_size);
    int64_t *pad = (int64_t *)(void *)(attrs + a->at);
    for (int k = 0; k < spatial; k++) {
        if (before[k] > LARGEST || after[k] > LARGEST || pad[k] > LARGEST ||
            pad[spatial + k] > LARGEST)
            return NULL;
        pad[k] += before[k];
        pad[spatial + k] += after[k];
    }
    fac_value *args[3] = { p->in[0], in[1], in[2] };
    fac_value *y = fac_emit(n->op, attrs, in[2] ? 3 : 2, args);
    fac_named_like(y, n);
    return y;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    (void)self;
    if (n->nin < 2 || !in[0] || !in[1] || n->out[0]->time != FAC_RUN) return false;
    fac_value *y = norm(to, n, in);
    if (!y) y = affine(n, in);
    if (!y) y = padded(to, n, in);
    if (!y) return false;
    out[0] = y;
    for (int k = 1; k < n->nout; k++) out[k] = in[2 + k]; /* statistics, which nothing reads */
    return true;
}

fac_graph *fac_pass_absorb(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL);
}
