/* Which axis of a value counts channels: 1 in the order N,C,H,W, the last one in N,H,W,C.
 *
 * Tensors do not say, but some ops do: convolutions, pools and batch norms have their channels at
 * axis 1, linear layers and layer norms at the last.  Between them elementwise ops leave axes alone
 * and a transpose says where each goes, so we walk back along first inputs to the next op that
 * knows, or ahead along first readers. */
#include <string.h>
#include "graph/graph_internal.h"
#include "graph/attr.h"
#include "op_list.h"
#include "ops/families.h"
#include "report/cost/channels.h"

enum { FAR = 64, UNKNOWN = -1 };

/* The axis of the channels of input 0 and output 0 of an op that knows. */
static int known_by(const fac_node *n, int rank) {
    static const fac_op *const last[] = { &fac_op_linear, &fac_op_layer_norm, &fac_op_rms_norm,
                                          NULL };
    static const fac_op *const first[] = { &fac_op_avg_pool1d,
                                           &fac_op_avg_pool2d,
                                           &fac_op_avg_pool2d_grad,
                                           &fac_op_avg_pool3d,
                                           &fac_op_avg_pool3d_grad,
                                           &fac_op_batch_norm,
                                           &fac_op_batch_norm_act_grad,
                                           &fac_op_batch_norm_given,
                                           &fac_op_batch_norm_given_relu,
                                           &fac_op_batch_norm_grad,
                                           &fac_op_batch_norm_grad_given,
                                           &fac_op_batch_norm_grad_pair,
                                           &fac_op_batch_norm_pair,
                                           &fac_op_batch_norm_pair_relu,
                                           &fac_op_batch_norm_sums,
                                           &fac_op_depth_to_space,
                                           &fac_op_fused_conv,
                                           &fac_op_group_norm,
                                           &fac_op_instance_norm,
                                           &fac_op_lrn,
                                           &fac_op_max_pool1d,
                                           &fac_op_max_pool2d,
                                           &fac_op_max_pool2d_grad,
                                           &fac_op_max_pool2d_relu_grad,
                                           &fac_op_max_pool3d,
                                           &fac_op_max_pool3d_grad,
                                           &fac_op_prelu,
                                           &fac_op_space_to_depth,
                                           NULL };
    if (fac_op_convolves(n->op) || fac_op_is_one_of(n->op, first)) return 1;
    return fac_op_is_one_of(n->op, last) ? rank - 1 : UNKNOWN;
}

/* Which dim of its input dim k of a transpose is. */
static int source(const fac_node *n, int k) {
    const fac_attr *a = fac_attr_find(n->op, "perm");
    const fac_dims *perm = a ? (const void *)((const char *)n->attrs + a->at) : NULL;
    const int rank = n->out[0]->type.dims.n;
    if (!perm || !perm->n) return rank - 1 - k;
    return (int)perm->d[k] + (perm->d[k] < 0 ? rank : 0);
}

/* Axis k of x is still axis k of y: one for one, or a reshape that leaves all before it, or all
 * after it, as it was. */
static bool keeps(const fac_node *n, const fac_dims *x, const fac_dims *y, int k) {
    if (x->n != y->n && k >= y->n) return false;
    if (x->n == y->n && !FAC_IS(n, reshape)) return true;
    bool before = true;
    for (int j = 0; j <= k; j++) before &= x->d[j] == y->d[j];
    return before;
}

static int back(const fac_value *v, int far) {
    const fac_node *n = v->node;
    const int rank = v->type.dims.n;
    if (!n || !far) return UNKNOWN;
    const int own = known_by(n, rank);
    const fac_value *x = n->nin ? n->in[0] : NULL;
    for (int i = 1; i < n->nin && x && (!x->node || x->type.dims.n != rank) && n->op->map;
         i++) /* a broadcast, a constant */
        if (n->in[i] && n->in[i]->node && n->in[i]->type.dims.n == rank) x = n->in[i];
    if (own != UNKNOWN || !x) return own;
    const int k = back(x, far - 1);
    if (k == UNKNOWN) return UNKNOWN;
    if (FAC_IS(n, transpose)) {
        for (int j = 0; j < rank; j++)
            if (source(n, j) == k) return j;
        return UNKNOWN;
    }
    if (k == x->type.dims.n - 1 && x->type.dims.n != rank &&
        x->type.dims.d[k] == v->type.dims.d[rank - 1])
        return rank - 1;
    return keeps(n, &x->type.dims, &v->type.dims, k) ? k : UNKNOWN;
}

static int ahead(const fac_value *v, int far) {
    for (const fac_use *u = v->uses; u && far; u = u->next) {
        const fac_node *n = u->node;
        if (u->input && !n->op->map) continue;
        const int own = known_by(n, v->type.dims.n);
        if (own != UNKNOWN) return own;
        const fac_value *y = n->out[0];
        if (y->type.dims.n != v->type.dims.n) continue;
        const int k = ahead(y, far - 1);
        if (k == UNKNOWN)
            return UNKNOWN; /* the first that goes on: all of them would take too long */
        if (FAC_IS(n, transpose)) return source(n, k);
        return keeps(n, &v->type.dims, &y->type.dims, k) ? k : UNKNOWN;
    }
    return UNKNOWN;
}

int fac_channel_axis(const fac_value *v) {
    const int rank = v->type.dims.n;
    if (rank < 2) return -1;
    if (rank == 2) return 1;
    int k = back(v, FAR);
    if (k == UNKNOWN) k = ahead(v, FAR);
    if (k != UNKNOWN && k < rank) return k;
    return rank == 3 ? 2 : 1;
}
