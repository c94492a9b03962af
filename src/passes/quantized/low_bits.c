/* Convolutions and linear layers between quantizers become conv2d_basis, whose kernels count bits:
 *
 *     conv2d(quantize_basis(x, u), quantize_basis(w, v), b)   -> conv2d_basis(x, pack_basis(w, v),
                                                                               b, u, v)
 *     conv2d(binarize(x), unpack_basis(bits, v), b)           -> conv2d_basis(x, bits, b, -, v)
 *
 * where price(self, node) is less than that of what it replaces.  A relu in front of the quantizer,
 * a batch norm of inference and a factor after the layer go along.  Weights that are signs, alone
 * or with a factor, are levels, too, and so are sums of them. */
#include <math.h>
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "ops/conv_basis.h"
#include "passes/common/each.h"
#include "passes/passes.h"
#include "passes/common/single.h"

typedef struct work {
    fac_price *price;
    void *self;
} work;

/* Through what only gradients see. */
static fac_value *seen_through(fac_value *v) {
    while (v && v->node &&
           (FAC_IS(v->node, surrogate) || FAC_IS(v->node, identity) || FAC_IS(v->node, stop)))
        v = v->node->in[0];
    return v;
}

static bool early(const fac_value *v) { return !v || v->time != FAC_RUN; }

/* ---- the two operands ---- */

typedef struct levels {
    fac_value *x, *basis; /* basis NULL: signs */
    fac_value *factor;    /* of signs, or NULL */
    bool relu;
} levels;

/* A product of something with factors that are there before the run: one number,
    or one for each index
 * of dim 0 of the other. */
static fac_value *factor_of(fac_value *v, fac_value **other) {
    const fac_node *n = v->node;
    for (int i = 0; FAC_IS(n, mul) && i < 2; i++) {
        const fac_dims *s = &n->in[i]->type.dims, *d = &v->type.dims;
        const int64_t count = fac_dims_count(s);
        if (!early(n->in[i]) || !n->in[1 - i]->node || !fac_dims_equal(&n->in[1 - i]->type.dims, d))
            continue;
        if (count != 1 && (s->n != d->n || count != s->d[0] || count != d->d[0])) continue;
        *other = seen_through(n->in[1 - i]);
        return fac_reshape_sizes(n->in[i], fac_shape(count));
    }
    return NULL;
}

static bool read_levels(fac_value *v, levels *to) {
    fac_value *signs = NULL, *factor = factor_of(v = seen_through(v), &signs);
    const bool one = factor && FAC_IS(signs->node, binarize) && factor->type.dims.d[0] == 1;
    const fac_node *n = one ? signs->node : v->node;
    if (!n || v->type.dtype != FAC_F32) return false;
    *to = (levels){ .x = seen_through(n->in[0]), .factor = one ? factor : NULL };
    if (FAC_IS(n, quantize_basis)) {
        if (!fac_attr_flag(n, "positive") || n->in[1]->type.dims.n != 1 || !early(n->in[1]))
            return false;
        to->basis = n->in[1];
    } else if (!FAC_IS(n, binarize))
        return false;
    if (FAC_IS(to->x->node, relu)) {
        to->x = to->x->node->in[0];
        to->relu = true;
    }
    return true;
}

enum { PARTS = 16 }; /* of a weight, one in the other: sums and factors */

typedef struct weight {
    fac_value *bits, *basis;
    fac_dims dims;
} weight;

/* [M] as [M,K]. */
static fac_value *for_all(fac_value *basis, int64_t channels) {
    if (basis->type.dims.n == 2) return basis;
    const fac_dims column = fac_shape(basis->type.dims.d[0], 1);
    return fac_tile(fac_reshape_sizes(basis, column), fac_shape(1, channels));
}

static fac_value *ones(const fac_value *w) {
    return for_all(fac_reshape(fac_number(w->graph, FAC_F32, 1), fac_shape(1)), w->type.dims.d[0]);
}

static bool read_weight(fac_value *v, int depth, weight *to);

static fac_value *joined(fac_value *a, fac_value *b) {
    return fac_concat((fac_value *[]){ a, b }, 2, 0);
}

/* A sum of weights of few planes, as QONNX has bases. */
static bool read_sum(const fac_node *n, int depth, weight *to) {
    weight more;
    if (!FAC_IS(n, add) || !fac_dims_equal(&n->in[0]->type.dims, &n->in[1]->type.dims))
        return false;
    if (!read_weight(n->in[0], depth, to) || !read_weight(n->in[1], depth, &more)) return false;
    if (to->basis->type.dims.d[0] + more.basis->type.dims.d[0] > 4) return false;
    to->bits = joined(to->bits, more.bits);
    to->basis = joined(to->basis, more.basis);
    return true;
}

static bool read_weight(fac_value *v, int depth, weight *to) {
    if (!depth--) return false;
    fac_value *w = seen_through(v), *other = NULL;
    const fac_node *n = w->node;
    fac_value *factor = n && early(w) ? factor_of(w, &other) : NULL;
    if (factor && read_weight(other, depth, to)) {
        to->basis = fac_mul(to->basis, factor);
        return true;
    }
    if (!n || !early(w) || w->type.dtype != FAC_F32 || fac_dims_count(&w->type.dims) < 1)
        return false;
    to->dims = w->type.dims;
    if (FAC_IS(n, add)) return read_sum(n, depth, to);
    if (FAC_IS(n, unpack_basis)) {
        to->bits = n->in[0];
        to->basis = n->in[1];
    } else if (FAC_IS(n, quantize_basis)) {
        const int64_t axis = fac_attr_int(n, "axis", 0);
        if (fac_attr_flag(n, "positive") || (n->in[1]->type.dims.n == 2 && axis != 0)) return false;
        to->basis = for_all(n->in[1], w->type.dims.d[0]);
        to->bits = fac_pack_basis(n->in[0], to->basis);
    } else if (FAC_IS(n, binarize)) {
        to->basis = ones(w);
        to->bits = fac_pack_basis(w, to->basis);
    } else
        return false;
    return true;
}

/* ---- the layer ---- */

static fac_value *emit(fac_graph *g, const levels *x, const weight *w, fac_value *b,
                       const fac_conv2d_opts *o) {
    fac_conv_basis_attrs a = { .dims = w->dims, .relu = x->relu };
    if (o) a.conv = *o;
    fac_value *in[FAC_CB_PORTS] = { x->x, w->bits, b, x->basis, w->basis, NULL };
    (void)g;
    return fac_emit(&fac_op_conv2d_basis, &a, FAC_CB_PORTS, in);
}

/* A linear layer is a convolution of images of one pixel; rows of sequences are rows. */
static fac_value *linear(fac_graph *g, const fac_node *n, levels *x, weight *w, fac_value *b) {
    const fac_dims d = n->out[0]->type.dims, *from = &x->x->type.dims;
    const int64_t all = fac_dims_count(from);
    if (from->n < 2 || w->dims.n != 2 || (from->n > 2 && all < 1)) return NULL;
    w->dims = fac_shape(w->dims.d[0], w->dims.d[1], 1, 1);
    if (from->n > 2) x->x = fac_reshape_sizes(x->x, fac_shape(all / w->dims.d[1], w->dims.d[1]));
    x->x = fac_unsqueeze(x->x, fac_shape(2, 3));
    return fac_reshape_sizes(emit(g, x, w, b, NULL), d);
}

static const fac_node *maker(const fac_value *v) {
    while (v && v->node && FAC_IS(v->node, reshape)) v = v->node->in[0];
    return v && FAC_IS(v->node, conv2d_basis) ? v->node : NULL;
}

static bool is_linear(const fac_node *n) {
    if (FAC_IS(n, linear)) return true;
    return FAC_IS(n, gemm) && fac_attr_flag(n, "trans_b") && !fac_attr_flag(n, "trans_a") &&
           fac_attr_real(n, "alpha", 1) == 1 && fac_attr_real(n, "beta", 1) == 1;
}

static bool put_layer(const work *k, fac_graph *to, const fac_node *n, fac_value *const in[],
                      fac_value *out[]) {
    levels x;
    weight w;
    if (!read_levels(in[0], &x) || !read_weight(in[1], PARTS, &w)) return false;
    if (x.factor) w.basis = fac_mul(w.basis, x.factor);
    fac_value *b = n->nin > 2 ? in[2] : NULL;
    if (b && (b->type.dims.n != 1 || b->type.dims.d[0] != w.dims.d[0])) return false;
    fac_value *y = FAC_IS(n, conv2d) ? emit(to, &x, &w, b, n->attrs) : linear(to, n, &x, &w, b);
    const fac_node *made = y ? maker(y) : NULL;
    if (!made || !(k->price(k->self, made) < k->price(k->self, n))) return to->error.status != 0;
    fac_node *named = (fac_node *)(uintptr_t)made;
    named->name = fac_arena_text(&to->arena, n->name);
    named->scope = fac_arena_text(&to->arena, n->scope);
    out[0] = y;
    return true;
}

/* ---- what follows it ---- */

/* conv2d_basis with y s + t after it; shape: of a linear layer, or NULL. */
static fac_value *scaled(const fac_node *conv, fac_value *s, fac_value *t, const fac_dims *shape) {
    fac_value *in[FAC_CB_PORTS], *old_s = conv->in[FAC_CB_SCALE], *old_b = conv->in[FAC_CB_B];
    for (int k = 0; k < FAC_CB_PORTS; k++) in[k] = conv->in[k];
    in[FAC_CB_SCALE] = old_s ? fac_mul(old_s, s) : s;
    in[FAC_CB_B] = old_b ? fac_add(fac_mul(old_b, s), t) : t;
    fac_value *y = fac_emit(conv->op, conv->attrs, FAC_CB_PORTS, in);
    if (y->node) fac_node_named_as(y->node, conv);
    return shape ? fac_reshape_sizes(y, *shape) : y;
}

/* A linear layer's result of two dims, whose second one are the channels. */
static bool is_row_of(const fac_node *conv, const fac_value *v) {
    const fac_dims *d = &conv->out[0]->type.dims;
    return v->type.dims.n == 2 && d->d[2] == 1 && d->d[3] == 1;
}

static bool put_norm(fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    const fac_node *conv = maker(in[0]);
    if (!conv || fac_attr_flag(n, "training_mode") || !fac_used_once(n->in[0])) return false;
    if (FAC_IS(in[0]->node, reshape) && !is_row_of(conv, in[0])) return false;
    for (int i = 1; i < 5; i++)
        if (!early(in[i]) || in[i]->type.dtype != FAC_F32) return false;
    for (int k = 1; k < n->nout; k++)
        if (n->out[k]->uses || n->out[k]->roots) return false;
    fac_value *epsilon = fac_number(to, FAC_F32, fac_attr_real(n, "epsilon", 1e-5));
    fac_value *s = fac_div(in[1], fac_sqrt(fac_add(in[4], epsilon)));
    fac_value *t = fac_sub(in[2], fac_mul(in[3], s));
    const fac_dims d = in[0]->type.dims;
    out[0] = scaled(conv, s, t, FAC_IS(in[0]->node, reshape) ? &d : NULL);
    for (int k = 1; k < n->nout; k++) out[k] = in[2 + k];
    return true;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    if (n->out[0]->time != FAC_RUN || to->error.status) return false;
    if (FAC_IS(n, batch_norm)) return put_norm(to, n, in, out);
    if ((!FAC_IS(n, conv2d) && !is_linear(n)) || n->body[0]) return false;
    return put_layer(self, to, n, in, out);
}

static bool is_any(const fac_graph *g) {
    for (const fac_node *n = g->first; n; n = n->next)
        if (FAC_IS(n, quantize_basis) || FAC_IS(n, binarize)) return true;
    return false;
}

fac_graph *fac_pass_low_bits(const fac_graph *g, fac_price *price, void *self) {
    work k = { price, self };
    if (!is_any(g)) return (fac_graph *)(uintptr_t)g;
    return fac_graph_rebuild(g, &(fac_rebuild){ .self = &k, .visit = visit }, NULL);
}
