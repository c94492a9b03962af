/* A convolution of three dims becomes a sum of such of two, one for each place of its kernel in
 * depth:
 *
 *     y[o] = sum over t of conv2d(x[o stride + t dilation - pad], w[t]) + b
 *
 * Depths go in front of images, so that those that one kernel sees are a slice, and the
 * convolutions of two dims have kernels that take far less time (Winograd's).  Images of zeros
 * stand for what lies outside.  Or, where that takes less time, a single one of two dims: slices
 * next to each other are its channels,
 *
 *     y[o] = conv2d(concat over t of x[o stride + t dilation - pad], concat over t of w[t]) + b
 *
 * which suits few channels.  Where price(self, node) of the parts is less. */
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "ops/conv.h"
#include "passes/common/each.h"
#include "passes/passes.h"

typedef struct work {
    fac_price *price;
    void *self;
} work;

/* Moving operands to and fro takes a part of this besides. */
static const double besides = 1.25;

/* Of a single one: of more, rounding in Winograd's sums would be worse than that of the parts. */
enum { MOST_CHANNELS = 32 };

/* x N,C,D,H,W as D',N,C,H,W with images of zeros around it. */
static fac_value *depths_first(fac_value *x, const fac_conv_geom *g) {
    const int64_t needs = (g->O - 1) * g->stride[0] + (g->T - 1) * g->dilation[0] + 1;
    const int64_t more = needs - g->D - g->pad[0];
    if (g->pad[0] || more > 0)
        x = fac_pad(x, fac_ints(x->graph, fac_shape(g->pad[0], more > 0 ? more : 0)), NULL,
                    fac_ints(x->graph, fac_shape(2)), FAC_PAD_CONSTANT);
    return fac_transpose(x, fac_shape(2, 0, 1, 3, 4));
}

/* What place t of the kernel sees: O N,C,H,W. */
static fac_value *seen_by(fac_value *x, const fac_conv_geom *g, int64_t t) {
    const int64_t from = t * g->dilation[0], to = from + (g->O - 1) * g->stride[0] + 1;
    return fac_reshape_sizes(fac_slice(x, 0, from, to, g->stride[0]),
                             fac_shape(g->O * g->N, g->C, g->H, g->W));
}

/* O N,K,P,Q */
static fac_value *flat(const fac_node *n, const fac_conv_geom *g, fac_value *x, fac_value *w,
                       fac_value *b) {
    const fac_conv2d_opts o = { .stride = { g->stride[1], g->stride[2] },
                                .pad = { g->pad[1], g->pad[2], g->pad_end[1], g->pad_end[2] },
                                .dilation = { g->dilation[1], g->dilation[2] },
                                .groups = g->groups };
    fac_value *y = fac_conv2d(x, w, b, &o);
    if (y->node) fac_node_named_as(y->node, n);
    return y;
}

/* The convolution of place t of the kernel. */
static fac_value *part(const fac_node *n, const fac_conv_geom *g, fac_value *x, fac_value *w,
                       fac_value *b, int64_t t) {
    const fac_dims kernel = fac_shape(g->K, g->C / g->groups, g->R, g->S);
    fac_value *own = fac_reshape_sizes(fac_slice(w, 2, t, t + 1, 1), kernel);
    return flat(n, g, seen_by(x, g, t), own, b);
}

/* The one of all places. */
static fac_value *joined(const fac_node *n, const fac_conv_geom *g, fac_value *x, fac_value *w,
                         fac_value *b) {
    fac_value *seen[MOST_CHANNELS];
    for (int64_t t = 0; t < g->T; t++) seen[t] = seen_by(x, g, t);
    w = fac_reshape_sizes(fac_transpose(w, fac_shape(0, 2, 1, 3, 4)),
                          fac_shape(g->K, g->T * g->C, g->R, g->S));
    return flat(n, g, fac_concat(seen, (int)g->T, 1), w, b);
}

/* The sum of all places. */
static fac_value *summed(const fac_node *n, const fac_conv_geom *g, fac_value *x,
                         fac_value *const in[], fac_value *first) {
    fac_value *y = first;
    for (int64_t t = 1; t < g->T; t++) y = fac_add(y, part(n, g, x, in[1], NULL, t));
    return y;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    const work *k = self;
    fac_conv_geom g;
    (void)to;
    if (!FAC_IS(n, conv3d) || n->body[0] || n->out[0]->type.dtype != FAC_F32) return false;
    if (!fac_conv_geometry(n, &g) || fac_dims_count(&n->out[0]->type.dims) < 1 || g.C < 1)
        return false;
    fac_value *x = depths_first(in[0], &g), *first = part(n, &g, x, in[1], in[2], 0), *one = NULL;
    if (!first->node) return false;
    const double whole = k->price(k->self, n),
                 parts = besides * (double)g.T * k->price(k->self, first->node);
    double at_once = whole;
    if (g.groups == 1 && g.T > 1 && g.T * g.C <= MOST_CHANNELS)
        one = joined(n, &g, x, in[1], in[2]);
    if (one && one->node) at_once = besides * k->price(k->self, one->node);
    if (!(parts < whole) && !(at_once < whole)) return false;
    fac_value *y = at_once < parts ? one : summed(n, &g, x, in, first);
    y = fac_reshape_sizes(y, fac_shape(g.O, g.N, g.K, g.P, g.Q));
    out[0] = fac_transpose(y, fac_shape(1, 2, 0, 3, 4));
    return true;
}

fac_graph *fac_pass_conv_depths(const fac_graph *g, fac_price *price, void *self) {
    work k = { price, self };
    return fac_graph_rebuild(g, &(fac_rebuild){ .self = &k, .visit = visit }, NULL);
}
