/* The gradient of a convolution by its input is, for stride 1, itself a convolution: of dy with the kernel turned around and its
 * channels exchanged,
 *   dx[n,c,i,j] = sum over k,r,s of dy[n,k, i + pad - r dilation, ...] w[k,c,r,s]
 * with the padding dilation - pad.  Convolutions have the faster kernels, where there are pixels enough to pay for turning
 * the weights in every step. */
#include "facula/ops.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "ops/conv_grad.h"
#include "passes/passes.h"

enum { PIXELS = 200 };                  /* of all images, from where on it is worth it: measured */

/* w[groups K, c, R, S] -> [groups c, K, R, S], each kernel turned by half a turn. */
static fac_value *turned(fac_value *w, const fac_conv_geom *g) {
    int64_t k = g->K / g->groups, c = g->C / g->groups;
    if (g->groups == 1) w = fac_transpose(w, fac_shape(1, 0, 2, 3));
    else if (k > 1 || c > 1) {
        w = fac_transpose(fac_reshape(w, fac_shape(g->groups, k, c, g->R, g->S)), fac_shape(0, 2, 1, 3, 4));
        w = fac_reshape(w, fac_shape(g->groups * c, k, g->R, g->S));
    }
    for (int axis = 2; axis < 4; axis++)
        if (g->kernel[axis - 1] > 1) w = fac_slice(w, axis, -1, INT64_MIN, -1);
    return w;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    fac_conv_geom g;
    fac_conv2d_opts o = { .stride = { 1, 1 } };
    (void)self, (void)to;
    if (n->op != &fac_op_conv2d_grad_x || n->body[0] || n->out[0]->type.dtype != FAC_F32) return false;
    if (!fac_conv_grad_geometry(n, &g) || g.stride[1] != 1 || g.stride[2] != 1 || g.N * g.P * g.Q < PIXELS || !g.C || !g.K)
        return false;
    for (int k = 0; k < 2; k++) {
        int64_t reach = (g.kernel[k + 1] - 1) * g.dilation[k + 1];
        o.dilation[k] = g.dilation[k + 1];
        o.pad[k] = reach - g.pad[k + 1];
        o.pad[2 + k] = g.in[k + 1] - g.out[k + 1] + reach - o.pad[k];
        if (o.pad[k] < 0 || o.pad[2 + k] < 0) return false;
    }
    o.groups = g.groups;
    out[0] = fac_conv2d(in[0], turned(in[1], &g), NULL, &o);
    if (out[0]->node) {
        out[0]->node->name = fac_arena_text(&out[0]->graph->arena, n->name);        /* n goes away with its graph */
        out[0]->node->scope = fac_arena_text(&out[0]->graph->arena, n->scope);
    }
    return true;
}

fac_graph *fac_pass_conv_grad(const fac_graph *g) { return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL); }
