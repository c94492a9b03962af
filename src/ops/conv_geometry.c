/* What conv1d, conv2d and conv3d share: resolved geometry, infer, the reference and the cost. */
#include "ops/conv.h"
#include "ops/cost.h"
#include "op_list.h"

const fac_port fac_conv_in[] = {
    { "x", FAC_FLOATS, 0 }, { "w", FAC_FLOATS, 0 }, { "b", FAC_FLOATS, FAC_OPTIONAL }, { 0 }
};

/* The attributes of the three ops under one form. */
typedef struct attrs {
    int rank;
    const int64_t *stride, *pad, *dilation;
    int64_t groups;
    fac_auto_pad auto_pad;
} attrs;

static attrs attrs_of(int rank, const void *a) {
    const fac_conv1d_opts *a1 = a;
    const fac_conv2d_opts *a2 = a;
    const fac_conv3d_opts *a3 = a;
    if (rank == 1)
        return (attrs){ 1,          &a1->stride,
                        a1->pad,    &a1->dilation,
                        a1->groups, (fac_auto_pad)a1->auto_pad };
    if (rank == 2)
        return (
            attrs){ 2, a2->stride, a2->pad, a2->dilation, a2->groups, (fac_auto_pad)a2->auto_pad };
    return (attrs){ 3, a3->stride, a3->pad, a3->dilation, a3->groups, (fac_auto_pad)a3->auto_pad };
}

static int rank_of(const fac_node *n) {
    return n->op == &fac_op_conv1d   ? 1
           : n->op == &fac_op_conv2d ? 2
           : n->op == &fac_op_conv3d ? 3
                                     : 0;
}

static fac_window window_of(const attrs *a, const fac_dims *x, const fac_dims *w, int k) {
    return (fac_window){
        x->d[2 + k], w->d[2 + k], a->stride[k], a->dilation[k], a->pad[k], a->pad[a->rank + k], 0
    };
}

static bool geometry(const attrs *a, const fac_dims *x, const fac_dims *w, fac_conv_geom *out) {
    fac_conv_geom g = {
        .rank = a->rank, .N = x->d[0], .C = x->d[1], .K = w->d[0], .groups = a->groups
    };
    for (int k = 0; k < x->n; k++)
        if (x->d[k] < 0 || w->d[k] < 0) return false;
    for (int k = 0; k < 3; k++) {
        fac_window v = { 1, 1, 1, 1, 0, 0, 1 };
        int at = k - (3 - a->rank);
        if (at >= 0) {
            v = window_of(a, x, w, at);
            if (fac_window_settle(&v, a->auto_pad, false)) return false;
        }
        fac_conv_window_put(&g, k, &v);
    }
    *out = g;
    return true;
}

bool fac_conv_geometry_of(int rank, const void *attributes, const fac_dims *x, const fac_dims *w,
                          fac_conv_geom *g) {
    attrs a = attrs_of(rank, attributes);
    return geometry(&a, x, w, g);
}

bool fac_conv_geometry(const fac_node *n, fac_conv_geom *g) {
    int rank = rank_of(n);
    return rank &&
           fac_conv_geometry_of(rank, n->attrs, &n->in[0]->type.dims, &n->in[1]->type.dims, g);
}

bool fac_conv_operands(fac_node *n, int rank) {
    const fac_type *x = &n->in[0]->type, *w = &n->in[1]->type,
                   *b = n->in[2] ? &n->in[2]->type : NULL;
    if (x->dims.n != 2 + rank || w->dims.n != 2 + rank)
        return fac_fail(n, FAC_E_SHAPE, "x and w must have %d dims", 2 + rank);
    if (w->dtype != x->dtype || (b && b->dtype != x->dtype))
        return fac_fail(n, FAC_E_DTYPE, "x, w and b must have one dtype");
    return true;
}

bool fac_conv_bias(fac_node *n, int64_t K) {
    const fac_dims *b = n->in[2] ? &n->in[2]->type.dims : NULL;
    if (b && (b->n != 1 || (b->d[0] != K && b->d[0] >= 0 && K >= 0)))
        return fac_fail(n, FAC_E_SHAPE,
                        "b must have one number for each of the %lld output channels",
                        (long long)K);
    return true;
}

bool fac_conv_infer(fac_node *n) {
    static const char *const names[] = { "depth", "height", "width" };
    attrs a = attrs_of(rank_of(n), n->attrs);
    const fac_type *x = &n->in[0]->type, *w = &n->in[1]->type;
    if (!fac_conv_operands(n, a.rank)) return false;
    int64_t C = x->dims.d[1], K = w->dims.d[0], c = w->dims.d[1], all;
    if (c >= 0 && (__builtin_mul_overflow(c, a.groups, &all) || (C >= 0 && all != C)))
        return fac_fail(n, FAC_E_SHAPE,
                        "w has %lld input channels in each of %lld groups, x has %lld channels",
                        (long long)c, (long long)a.groups, (long long)C);
    if (K >= 0 && K % a.groups)
        return fac_fail(n, FAC_E_SHAPE, "%lld output channels do not divide into %lld groups",
                        (long long)K, (long long)a.groups);
    if (!fac_conv_bias(n, K)) return false;
    fac_type y = { x->dtype, { x->dims.n, { x->dims.d[0], K } } };
    for (int k = 0; k < a.rank; k++) {
        fac_window v = window_of(&a, &x->dims, &w->dims, k);
        if (!fac_window_infer(n, names[3 - a.rank + k], &v, a.auto_pad, false)) return false;
        y.dims.d[2 + k] = v.out;
    }
    n->out[0]->type = y;
    return true;
}

static fac_status ref(int rank, const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_array *x = &r->in[0], *w = &r->in[1], *b = &r->in[2];
    attrs a = attrs_of(rank, r->attrs);
    fac_conv_geom g;
    if (!geometry(&a, &x->type.dims, &w->type.dims, &g)) return FAC_E_INTERNAL;
    int64_t plane = g.D * g.H * g.W, taps = g.T * g.R * g.S, image = g.O * g.P * g.Q,
            c = g.C / g.groups, each = g.K / g.groups;
    for (int64_t n = 0; n < g.N; n++)
        for (int64_t k = 0; k < g.K; k++) {
            double *y = r->out[0].f + (n * g.K + k) * image;
            for (int64_t i = 0; i < image; i++) y[i] = b->f ? b->f[k] : 0;
            for (int64_t i = 0; i < c; i++)
                fac_conv_planes(&g, FAC_CONV_Y, x->f + (n * g.C + k / each * c + i) * plane,
                                w->f + (k * c + i) * taps, NULL, y);
        }
    return FAC_OK;
}

fac_status fac_conv2d_ref(const fac_ref *r, fac_error *err) { return ref(2, r, err); }
fac_status fac_conv3d_ref(const fac_ref *r, fac_error *err) { return ref(3, r, err); }

void fac_conv_macs(const fac_node *n, const fac_value *seen, fac_cost *cost) {
    const fac_dims *w = &n->in[1]->type.dims;
    double each = 1;
    for (int k = 1; k < w->n; k++) each *= w->d[k] > 0 ? (double)w->d[k] : 0;
    fac_cost_bytes(n, cost);
    cost->macs = fac_cost_count(seen) * each;
    cost->other = n->in[2] ? fac_cost_count(n->out[0]) : 0;
}

/* One multiply-add for each weight that an output sees, padding included; the bias counts apart. */
void fac_conv_cost(const fac_node *n, fac_cost *cost) { fac_conv_macs(n, n->out[0], cost); }
