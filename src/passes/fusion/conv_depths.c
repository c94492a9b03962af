/* A convolution of three dims becomes a sum of such of two, one for each place of its kernel in
 * depth:
 *
 *     y[o] = sum over t of conv2d(x[o stride + t dilation - pad], w[t]) + b
 *
 * Depths go in front of images, so that those that one kernel sees are a slice, and the
 * convolutions of two dims have kernels that take far less time (Winograd's).  Images of zeros
 * stand for what lies outside.  Where price(self, node) of the parts is less. */
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

/* x N,C,D,H,W as D',N,C,H,W with images of zeros around it. */
static fac_value *depths_first(fac_value *x, const fac_conv_geom *g) {
    const int64_t needs = (g->O - 1) * g->stride[0] + (g->T - 1) * g->dilation[0] + 1;
    const int64_t more = needs - g->D - g->pad[0];
    if (g->pad[0] || more > 0)
        x = fac_pad(x, fac_ints(x->graph, fac_shape(g->pad[0], more > 0 ? more : 0)), NULL,
                    fac_ints(x->graph, fac_shape(2)), FAC_PAD_CONSTANT);
    return fac_transpose(x, fac_shape(2, 0, 1, 3, 4));
}

/* The convolution of place t of the kernel: O N,K,P,Q. */
static fac_value *part(const fac_node *n, const fac_conv_geom *g, fac_value *x, fac_value *w,
                       fac_value *b, int64_t t) {
    const fac_conv2d_opts o = { .stride = { g->stride[1], g->stride[2] },
                                .pad = { g->pad[1], g->pad[2], g->pad_end[1], g->pad_end[2] },
                                .dilation = { g->dilation[1], g->dilation[2] },
                                .groups = g->groups };
    const int64_t from = t * g->dilation[0], to = from + (g->O - 1) * g->stride[0] + 1;
    fac_value *seen = fac_slice(x, 0, from, to, g->stride[0]);
    seen = fac_reshape_sizes(seen, fac_shape(g->O * g->N, g->C, g->H, g->W));
    const fac_dims kernel = fac_shape(g->K, g->C / g->groups, g->R, g->S);
    fac_value *own = fac_reshape_sizes(fac_slice(w, 2, t, t + 1, 1), kernel);
    fac_value *y = fac_conv2d(seen, own, b, &o);
    if (y->node) fac_node_named_as(y->node, n);
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
    fac_value *x = depths_first(in[0], &g), *y = NULL;
    double seconds = 0;
    for (int64_t t = 0; t < g.T; t++) {
        fac_value *own = part(n, &g, x, in[1], t ? NULL : in[2], t);
        if (!own->node) return false;
        if (!t) seconds = besides * (double)g.T * k->price(k->self, own->node);
        if (!(seconds < k->price(k->self, n))) return false;
        y = y ? fac_add(y, own) : own;
    }
    y = fac_reshape_sizes(y, fac_shape(g.O, g.N, g.K, g.P, g.Q));
    out[0] = fac_transpose(y, fac_shape(1, 2, 0, 3, 4));
    return true;
}

fac_graph *fac_pass_conv_depths(const fac_graph *g, fac_price *price, void *self) {
    work k = { price, self };
    return fac_graph_rebuild(g, &(fac_rebuild){ .self = &k, .visit = visit }, NULL);
}
