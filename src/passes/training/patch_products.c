/* The gradient by the weights of a convolution that cuts an image into patches, whose stride is its
 * kernel, is a product of all patches and dy:
 *
 *     dw[k, crs] = sum over patches n,p,q of dy[n,k,p,q] x[n, c, p R + r, q S + s]
 *
 * So the first layer of a vision transformer begins.  Where price(self, node) of the product, with
 * what moving the operands takes, is less. */
#include "facula/ops.h"
#include "op_list.h"
#include "ops/conv_grad.h"
#include "passes/common/each.h"
#include "passes/passes.h"

typedef struct work {
    fac_price *price;
    void *self;
} work;

/* Moving operands takes about as long as the product: both read all of them. */
static const double besides = 2;

static bool is_patches(const fac_conv_geom *g) {
    return g->groups == 1 && g->R == g->stride[1] && g->S == g->stride[2] && g->R * g->S > 1 &&
           g->dilation[1] == 1 && g->dilation[2] == 1 && !g->pad[1] && !g->pad[2] &&
           g->P * g->R == g->H && g->Q * g->S == g->W && g->N * g->P * g->Q > 0 && g->C > 0;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    const work *k = self;
    fac_conv_geom g;
    (void)to;
    if (!FAC_IS(n, conv2d_grad_w) || n->body[0] || fac_dims_count(&n->out[0]->type.dims) < 1 ||
        !fac_conv_grad_geometry(n, &g) || !is_patches(&g))
        return false;
    const int64_t all = g.N * g.P * g.Q, each = g.C * g.R * g.S;
    fac_value *x = fac_reshape_sizes(in[0], fac_shape(g.N, g.C, g.P, g.R, g.Q, g.S));
    x = fac_transpose(x, fac_shape(0, 2, 4, 1, 3, 5));
    x = fac_reshape_sizes(x, fac_shape(all, each));
    fac_value *dy =
        fac_reshape_sizes(fac_transpose(in[1], fac_shape(1, 0, 2, 3)), fac_shape(g.K, all));
    fac_value *y = fac_matmul(dy, x);
    if (!y->node || k->price(k->self, y->node) * besides >= k->price(k->self, n)) return false;
    fac_node_named_as(y->node, n);
    out[0] = fac_reshape_sizes(y, n->out[0]->type.dims);
    return true;
}

fac_graph *fac_pass_patch_products(const fac_graph *g, fac_price *price, void *self) {
    work w = { price, self };
    return fac_graph_rebuild(g, &(fac_rebuild){ .self = &w, .visit = visit }, NULL);
}
