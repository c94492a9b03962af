/* What conv_transpose1d, 2d and 3d share: resolved geometry, infer, the reference and the cost. */
#include "op_list.h"
#include "ops/conv_transpose.h"
#include "ops/cost.h"
#include "ops/known.h"

/* The attributes of the three ops under one form. */
typedef struct attrs {
    int rank;
    const int64_t *stride, *pad, *dilation, *output_pad, *output_size;
    int64_t groups;
    fac_auto_pad auto_pad;
} attrs;

static attrs attrs_of(int rank, const void *a) {
    const fac_conv_transpose1d_opts *o = a;
    const fac_conv_transpose2d_opts *p = a;
    const fac_conv_transpose3d_opts *q = a;
    if (rank == 1)
        return (attrs){ 1,
                        &o->stride,
                        o->pad,
                        &o->dilation,
                        &o->output_pad,
                        &o->output_size,
                        o->groups,
                        (fac_auto_pad)o->auto_pad };
    if (rank == 2)
        return (attrs){ 2,
                        p->stride,
                        p->pad,
                        p->dilation,
                        p->output_pad,
                        p->output_size,
                        p->groups,
                        (fac_auto_pad)p->auto_pad };
    return (attrs){ 3,
                    q->stride,
                    q->pad,
                    q->dilation,
                    q->output_pad,
                    q->output_size,
                    q->groups,
                    (fac_auto_pad)q->auto_pad };
}

static int rank_of(const fac_node *n) {
    if (n->op == &fac_op_conv_transpose1d) return 1;
    if (n->op == &fac_op_conv_transpose2d) return 2;
    return n->op == &fac_op_conv_transpose3d ? 3 : 0;
}

/* The window of dim k with `in` (of y) and `out` (of x) settled; `out` must be a number.
 *   in = (out - 1) stride + span + output_pad - pad - pad_end
 * A wanted size (output_size, or out stride for SAME) decides the padding; when even without
 * padding the windows end before it, the rest is what output_pad would have made.  NULL, or what is
 * wrong. */
static const char *settle(const attrs *a, const fac_dims *x, const fac_dims *w, int k,
                          fac_window *to) {
    fac_window v = { 0,         w->d[2 + k],         a->stride[k], a->dilation[k],
                     a->pad[k], a->pad[a->rank + k], x->d[2 + k] };
    int64_t span, full;
    bool upper = a->auto_pad == FAC_AUTO_SAME_UPPER,
         same = upper || a->auto_pad == FAC_AUTO_SAME_LOWER;
    if (v.kernel < 1 || __builtin_mul_overflow(v.kernel - 1, v.dilation, &span) ||
        __builtin_mul_overflow(v.out ? v.out - 1 : 0, v.stride, &full) ||
        __builtin_add_overflow(full, span + 1, &full) ||
        __builtin_add_overflow(full, a->output_pad[k], &full))
        return "an empty or absurdly large kernel, dilation or stride";
    int64_t wanted = same ? v.out * v.stride : -1;
    if (a->output_size[k]) wanted = a->output_size[k];
    if (a->auto_pad == FAC_AUTO_VALID) v.pad = v.pad_end = 0;
    if (wanted >= 0) {
        int64_t total = full > wanted ? full - wanted : 0;
        v.pad = upper ? total / 2 : total - total / 2;
        v.pad_end = total - v.pad;
        v.in = wanted;
    } else
        v.in = v.out ? full - v.pad - v.pad_end : 0;
    if (v.in < 0) return "more padding than output";
    *to = v;
    return NULL;
}

static bool geometry(const attrs *a, const fac_dims *x, const fac_dims *w, fac_conv_geom *out) {
    fac_conv_geom g = {
        .rank = a->rank, .N = x->d[0], .K = x->d[1], .C = w->d[1] * a->groups, .groups = a->groups
    };
    for (int k = 0; k < x->n; k++)
        if (x->d[k] < 0 || w->d[k] < 0) return false;
    for (int k = 0; k < 3; k++) {
        fac_window v = { 1, 1, 1, 1, 0, 0, 1 };
        int at = k - (3 - a->rank);
        if (at >= 0 && settle(a, x, w, at, &v)) return false;
        fac_conv_window_put(&g, k, &v);
    }
    *out = g;
    return true;
}

bool fac_conv_transpose_geometry(const fac_node *n, fac_conv_geom *g) {
    int rank = rank_of(n);
    if (!rank) return false;
    attrs a = attrs_of(rank, n->attrs);
    return geometry(&a, &n->in[0]->type.dims, &n->in[1]->type.dims, g);
}

/* in stride + (span + output_pad - stride - pad - pad_end), named by its formula. */
static int64_t symbolic(fac_graph *g, const attrs *a, int64_t in, int64_t kernel, int k) {
    bool same = a->auto_pad == FAC_AUTO_SAME_UPPER || a->auto_pad == FAC_AUTO_SAME_LOWER;
    if (a->output_size[k]) return a->output_size[k];
    if (kernel < 0 && !same) return fac_symbol(g, NULL);
    int64_t pads = a->auto_pad == FAC_AUTO_VALID ? 0 : a->pad[k] + a->pad[a->rank + k];
    int64_t add =
        same ? 0 : (kernel - 1) * a->dilation[k] + 1 + a->output_pad[k] - a->stride[k] - pads;
    int64_t full = fac_size_product(g, in, a->stride[k]);
    return add < 0 ? fac_size_difference(g, full, -add) : fac_size_sum(g, full, add);
}

bool fac_conv_transpose_infer(fac_node *n) {
    static const char *const names[] = { "depth", "height", "width" };
    attrs a = attrs_of(rank_of(n), n->attrs);
    const fac_type *x = &n->in[0]->type, *w = &n->in[1]->type;
    if (!fac_conv_operands(n, a.rank)) return false;
    int64_t C = x->dims.d[1], from = w->dims.d[0], each = w->dims.d[1], K = each;
    if (C >= 0 && from >= 0 && C != from)
        return fac_fail(n, FAC_E_SHAPE, "w has %lld input channels, x has %lld", (long long)from,
                        (long long)C);
    if (from >= 0 && from % a.groups)
        return fac_fail(n, FAC_E_SHAPE, "%lld input channels do not divide into %lld groups",
                        (long long)from, (long long)a.groups);
    if (each >= 0 && __builtin_mul_overflow(each, a.groups, &K))
        return fac_fail(n, FAC_E_SHAPE, "absurdly many output channels");
    if (each < 0) K = fac_size_product(n->graph, each, a.groups);
    if (!fac_conv_bias(n, K)) return false;
    fac_type y = { x->dtype, { x->dims.n, { x->dims.d[0], K } } };
    for (int k = 0; k < a.rank; k++) {
        int64_t in = x->dims.d[2 + k], kernel = w->dims.d[2 + k];
        fac_window v;
        if (in < 0 || kernel < 0) {
            y.dims.d[2 + k] = symbolic(n->graph, &a, in, kernel, k);
            continue;
        }
        const char *wrong = settle(&a, &x->dims, &w->dims, k, &v);
        if (wrong) return fac_fail(n, FAC_E_SHAPE, "%s: %s", names[3 - a.rank + k], wrong);
        y.dims.d[2 + k] = v.in;
    }
    n->out[0]->type = y;
    return true;
}

static fac_status ref(int rank, const fac_ref *r) {
    const fac_array *x = &r->in[0], *w = &r->in[1], *b = &r->in[2];
    attrs a = attrs_of(rank, r->attrs);
    fac_conv_geom g;
    if (!geometry(&a, &x->type.dims, &w->type.dims, &g)) return FAC_E_INTERNAL;
    int64_t plane = g.D * g.H * g.W, taps = g.T * g.R * g.S, image = g.O * g.P * g.Q,
            each = g.K / g.groups, c = g.C / g.groups;
    for (int64_t n = 0; n < g.N; n++)
        for (int64_t i = 0; i < g.C; i++) {
            double *y = r->out[0].f + (n * g.C + i) * plane;
            for (int64_t k = 0; k < plane; k++) y[k] = b->f ? b->f[i] : 0;
            for (int64_t k = i / c * each; k < (i / c + 1) * each; k++)
                fac_conv_planes(&g, FAC_CONV_X, NULL, w->f + (k * c + i % c) * taps,
                                x->f + (n * g.K + k) * image, y);
        }
    return FAC_OK;
}

fac_status fac_conv_transpose2d_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return ref(2, r);
}
fac_status fac_conv_transpose3d_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return ref(3, r);
}

/* y is the gradient of a convolution by its input, as its linear form has it: with v = y's shape,
 *   dx = conv(dy, w),   dw = conv_grad_w(dy, x).
 * That convolution has the padding of this op, but what output_pad added is seen by no window, so
 * it is taken from the padding after.  Padding that follows from sizes (output_size, SAME) needs
 * the sizes. */
void fac_conv_transpose_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    attrs a = attrs_of(rank_of(n), n->attrs);
    fac_dims pads = { .n = 2 * a.rank };
    fac_conv_geom g;
    bool numbers = fac_conv_transpose_geometry(n, &g), given = a.auto_pad == FAC_AUTO_NONE;
    for (int k = 0; k < a.rank; k++) given &= !a.output_size[k];
    if (!given && !numbers) {
        dx[0] = fac_fail_graph(n->graph, FAC_E_UNSUPPORTED,
                               "%s: its gradient needs sizes that are known, or pads", n->op->name);
        return;
    }
    for (int k = 0; k < a.rank; k++) {
        int at = 3 - a.rank + k;
        int64_t after = given ? a.pad[a.rank + k] : g.pad_end[at],
                more = given ? a.output_pad[k] : 0;
        pads.d[k] = given ? a.pad[k] : g.pad[at];
        pads.d[a.rank + k] = after > more ? after - more : 0;
    }
    fac_value *v[3] = { dy[0], n->in[1], NULL }, *u[3] = { dy[0], n->in[0], n->in[1] };
    const int64_t *p = pads.d, *s = a.stride, *d = a.dilation;
    fac_conv2d_opts two = { .groups = a.groups };
    fac_conv3d_opts three = { .groups = a.groups };
    for (int k = 0; k < a.rank; k++) {
        if (a.rank == 2) {
            two.stride[k] = s[k];
            two.dilation[k] = d[k];
            two.pad[k] = p[k];
            two.pad[2 + k] = p[2 + k];
        } else {
            three.stride[k] = s[k];
            three.dilation[k] = d[k];
            three.pad[k] = p[k];
            three.pad[3 + k] = p[3 + k];
        }
    }
    bool flat = a.rank == 2;
    const void *opts = flat ? (const void *)&two : (const void *)&three;
    if (fac_needs(n, 0)) dx[0] = fac_emit(flat ? &fac_op_conv2d : &fac_op_conv3d, opts, 3, v);
    if (fac_needs(n, 1))
        dx[1] = fac_emit(flat ? &fac_op_conv2d_grad_w : &fac_op_conv3d_grad_w, opts, 3, u);
    if (fac_needs(n, 2))
        dx[2] = fac_sum(dy[0], flat ? fac_shape(0, 2, 3) : fac_shape(0, 2, 3, 4), false);
}

/* The padding after each dim of that convolution, without what output_pad added; false where its
 * windows would not be as many as x has elements. */
static bool ends_of(const fac_conv_geom *g, const attrs *a, int64_t ends[3]) {
    for (int k = 0; k < a->rank; k++) {
        const int at = 3 - a->rank + k;
        const int64_t span = (g->kernel[at] - 1) * g->dilation[at] + 1;
        const int64_t least = (g->out[at] - 1) * g->stride[at] + span - g->in[at] - g->pad[at];
        ends[at] = least > 0 ? least : 0;
        const int64_t rest = g->in[at] + g->pad[at] + ends[at] - span;
        if (rest < 0 || rest / g->stride[at] + 1 != g->out[at]) return false;
    }
    return true;
}

static bool turns(const fac_node *n, fac_conv_geom *g, int64_t ends[3]) {
    const attrs a = attrs_of(rank_of(n), n->attrs);
    return a.rank > 1 && fac_conv_transpose_geometry(n, g) && ends_of(g, &a, ends);
}

/* Only once all sizes are numbers. */
int64_t fac_conv_transpose_expands(const fac_node *n) {
    enum { NODES = 4 };
    fac_conv_geom g;
    int64_t ends[3];
    return turns(n, &g, ends) && fac_dims_count(&n->out[0]->type.dims) > 0 ? NODES : 0;
}

/* The gradient of that convolution by its input, plus the bias. */
void fac_conv_transpose_expand(const fac_node *n, fac_value *y[]) {
    fac_conv_geom g;
    int64_t ends[3];
    if (!turns(n, &g, ends)) return;
    const int rank = g.rank, first = 3 - rank;
    fac_conv2d_opts two = { .groups = g.groups };
    fac_conv3d_opts three = { .groups = g.groups };
    int64_t *stride = rank == 2 ? two.stride : three.stride,
            *dilation = rank == 2 ? two.dilation : three.dilation,
            *pad = rank == 2 ? two.pad : three.pad;
    for (int k = 0; k < rank; k++) {
        stride[k] = g.stride[first + k];
        dilation[k] = g.dilation[first + k];
        pad[k] = g.pad[first + k];
        pad[rank + k] = ends[first + k];
    }
    const fac_type type = n->out[0]->type;
    fac_value *like = fac_expand(fac_number(n->graph, type.dtype, 0), type.dims);
    y[0] = rank == 2 ? fac_conv2d_grad_x(n->in[0], n->in[1], like, &two)
                     : fac_conv3d_grad_x(n->in[0], n->in[1], like, &three);
    fac_value *b = n->nin > 2 ? n->in[2] : NULL;
    if (b) y[0] = fac_add(y[0], fac_unsqueeze(b, rank == 2 ? fac_shape(1, 2) : fac_shape(1, 2, 3)));
}

/* One multiply-add for each weight that an input element meets, also where padding cuts the result
 * off. */
void fac_conv_transpose_cost(const fac_node *n, fac_cost *cost) {
    fac_conv_macs(n, n->in[0], cost);
}
