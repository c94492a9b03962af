/* Which axis of a value counts channels: 1 in the order N,C,H,W, the last one in N,H,W,C.
 *
 * Tensors do not say, but some ops do: convolutions, pools and batch norms have their channels at axis 1, linear layers and layer
 * norms at the last.  Between them elementwise ops leave axes alone and a transpose says where each goes, so we walk back
 * along first inputs to the next op that knows, or ahead along first readers. */
#include <string.h>
#include "graph/graph_internal.h"
#include "passes/attr.h"
#include "report/cost/channels.h"

enum { FAR = 64, UNKNOWN = -1 };

static bool begins(const fac_node *n, const char *with) { return !strncmp(n->op->name, with, strlen(with)); }

/* The axis of the channels of input 0 and output 0 of an op that knows. */
static int known_by(const fac_node *n, int rank) {
    static const char *const last[] = { "linear", "layer_norm", "rms_norm", NULL };
    static const char *const first[] = { "conv", "fused_conv", "max_pool", "avg_pool", "batch_norm", "instance_norm", "group_norm",
                                         "lrn", "depth_to_space", "space_to_depth", "prelu", NULL };
    for (const char *const *s = first; *s; s++)
        if (begins(n, *s)) return 1;
    for (const char *const *s = last; *s; s++)
        if (fac_node_is(n, *s)) return rank - 1;
    return UNKNOWN;
}

/* Which dim of its input dim k of a transpose is. */
static int source(const fac_node *n, int k) {
    const fac_attr *a = fac_attr_find(n->op, "perm");
    const fac_dims *perm = a ? (const void *)((const char *)n->attrs + a->at) : NULL;
    const int rank = n->out[0]->type.dims.n;
    if (!perm || !perm->n) return rank - 1 - k;
    return (int)perm->d[k] + (perm->d[k] < 0 ? rank : 0);
}

/* Axis k of x is still axis k of y: one for one, or a reshape that leaves all before it, or all behind it, as it was. */
static bool keeps(const fac_node *n, const fac_dims *x, const fac_dims *y, int k) {
    if (x->n != y->n && k >= y->n) return false;
    if (x->n == y->n && !fac_node_is(n, "reshape")) return true;
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
    for (int i = 1; i < n->nin && x && (!x->node || x->type.dims.n != rank) && n->op->map; i++)    /* a broadcast, a constant */
        if (n->in[i] && n->in[i]->node && n->in[i]->type.dims.n == rank) x = n->in[i];
    if (own != UNKNOWN || !x) return own;
    const int k = back(x, far - 1);
    if (k == UNKNOWN) return UNKNOWN;
    if (fac_node_is(n, "transpose")) {
        for (int j = 0; j < rank; j++)
            if (source(n, j) == k) return j;
        return UNKNOWN;
    }
    if (k == x->type.dims.n - 1 && x->type.dims.n != rank && x->type.dims.d[k] == v->type.dims.d[rank - 1]) return rank - 1;
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
        if (k == UNKNOWN) return UNKNOWN;                       /* the first that goes on: all of them would take too long */
        if (fac_node_is(n, "transpose")) return source(n, k);
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
