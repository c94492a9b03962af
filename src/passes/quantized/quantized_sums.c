/* Sums of bytes join the convolution that makes one of them, where nothing else reads it:
 *
 *     qlinear_add(qlinear_conv(x, w, b), z)   ->   qlinear_conv_add(x, w, b, z)
 *
 * The same bits; what the convolution makes is written once and never read. */
#include "facula/ops.h"
#include "op_list.h"
#include "ops/qlinear_conv_add.h"
#include "ops/quant_pair.h"
#include "passes/common/each.h"
#include "passes/passes.h"
#include "passes/common/single.h"

enum { CONV_PORTS = 9 };

static bool same_scalar(const fac_value *a, const fac_value *b) {
    double x, y;
    if (a == b) return true;
    return a->type.dtype == b->type.dtype && fac_const_number(a, &x) && fac_const_number(b, &y) &&
           x == y;
}

/* The convolution whose result is operand `port` of the sum, read there as it was written. */
static fac_node *convolution(const fac_node *sum, int port) {
    const fac_value *v = sum->in[port];
    fac_node *n = v->node;
    if (!FAC_IS(n, qlinear_conv) || n->body[0] || n->nin != CONV_PORTS || n->stage != sum->stage)
        return NULL;
    if (!fac_used_once(v) || v->time != FAC_RUN) return NULL;
    const bool as_written = same_scalar(n->in[FAC_QSUM_V_SCALE], sum->in[port + 1]) &&
                            same_scalar(n->in[FAC_QSUM_V_ZERO], sum->in[port + 2]);
    return as_written ? n : NULL;
}

static fac_value *fused(const fac_node *sum, const fac_node *conv, bool z_first) {
    const int z = z_first ? FAC_PAIR_A : FAC_PAIR_B;
    fac_value *in[FAC_QSUM_PORTS];
    for (int k = 0; k < CONV_PORTS; k++) in[k] = conv->in[k];
    for (int k = 0; k < 3; k++) in[FAC_QSUM_Z + k] = sum->in[z + k];
    in[FAC_QSUM_Y_SCALE] = sum->in[FAC_PAIR_Y_SCALE];
    in[FAC_QSUM_Y_ZERO] = sum->in[FAC_PAIR_Y_ZERO];
    const fac_qlinear_conv_add_attrs a = { *(const fac_conv2d_opts *)conv->attrs, z_first };
    return fac_emit(&fac_op_qlinear_conv_add, &a, FAC_QSUM_PORTS, in);
}

static void visit(fac_graph *to, fac_node *n, const fac_judge *by) {
    (void)to;
    if (!FAC_IS(n, qlinear_add) || n->body[0] || n->out[0]->time != FAC_RUN) return;
    if (!fac_dims_equal(&n->in[FAC_PAIR_A]->type.dims, &n->in[FAC_PAIR_B]->type.dims)) return;
    fac_node *const convs[] = { convolution(n, FAC_PAIR_A), convolution(n, FAC_PAIR_B) };
    for (int k = 0; k < 2; k++) {
        fac_node *conv = convs[k];
        fac_value *y = conv ? fused(n, conv, k > 0) : NULL;
        if (!y || !y->node || !by->accept(by->self, y->node)) continue; /* it is swept away */
        fac_node_stands_for(y->node, conv);
        fac_replace(n->out[0], y);
        return;
    }
}

fac_graph *fac_pass_quantized_sums(const fac_graph *g, fac_accept *accept, void *self) {
    return fac_pass_each(g, visit, &(fac_judge){ .accept = accept, .self = self });
}
