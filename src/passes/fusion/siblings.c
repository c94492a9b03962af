/* Convolutions of 1 x 1 that read the same image become one, as the reductions before the larger
 * kernels of an inception block:
 *   a = conv(x, u), b = conv(x, w)   ->   y = conv(x, [u; w]),  a = y[:, :K],  b = y[:, K:]
 * One pass over x, and narrow results fill whole vectors.  The weights are joined before the run;
 * the slices are views where every one but the last has whole channel blocks.  Results that a
 * concat joins stay as they are: they are written to their place in it.  Preserves the sums of each
 * output. */
#include <string.h>
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/body_chain.h"
#include "passes/fusion/join_siblings.h"
#include "passes/passes.h"

enum { BLOCK = 16 }; /* channels of the widest vectors */

/* All that read it are convolutions and pools, which read slices of channels as they are. */
static bool read_in_blocks(const fac_value *v) {
    static const fac_op *const readers[] = { &fac_op_conv2d, &fac_op_conv2d_max_pool,
                                             &fac_op_max_pool2d, &fac_op_avg_pool2d, NULL };
    for (const fac_use *u = v->uses; u; u = u->next)
        if (u->input || !fac_op_is_one_of(u->node->op, readers)) return false;
    return v->uses && !v->roots;
}

static bool candidate(const fac_node *n) {
    if (!FAC_IS(n, conv2d) || n->nin != n->nports || n->out[0]->time != FAC_RUN) return false;
    if (fac_attr_int(n, "groups", 1) != 1) return false;
    const fac_value *w = n->in[1], *b = n->in[2];
    if (n->in[0]->type.dims.n != 4 || w->time == FAC_RUN || w->type.dims.d[2] != 1 ||
        w->type.dims.d[3] != 1)
        return false;
    return (!b || b->time != FAC_RUN) && fac_body_is_chain(n->body[0]) && read_in_blocks(n->out[0]);
}

static bool same_bodies(const fac_graph *a, const fac_graph *b) {
    if (!a || !b) return a == b;
    const fac_node *m = a->first, *n = b->first;
    for (; m && n; m = m->next, n = n->next) {
        if (m->op != n->op || m->nin != n->nin) return false;
        if (m->op->attrs_size && memcmp(m->attrs, n->attrs, m->op->attrs_size)) return false;
        for (int i = 0; i < m->nin; i++) {
            const fac_value *x = m->in[i], *y = n->in[i];
            if (!x != !y || (x && (x->leaf == FAC_CONST) != (y->leaf == FAC_CONST))) return false;
            if (x && x->leaf == FAC_CONST &&
                !fac_hash_equal(fac_const_hash(fac_hash_start(5), x),
                                fac_const_hash(fac_hash_start(5), y)))
                return false;
        }
    }
    return !m && !n;
}

static bool alike(const fac_node *a, const fac_node *b) {
    return a->op == b->op && !memcmp(a->attrs, b->attrs, a->op->attrs_size) &&
           !a->in[2] == !b->in[2] && a->in[1]->type.dtype == b->in[1]->type.dtype &&
           same_bodies(a->body[0], b->body[0]);
}

/* Slices that begin with a block are views. */
static bool whole(const fac_node *n) { return n->in[1]->type.dims.d[0] % BLOCK == 0; }

static fac_value *join(fac_graph *g, fac_node *const *all, int n, int *axis) {
    fac_value *w[FAC_SIBLINGS], *b[FAC_SIBLINGS];
    int64_t K = 0;
    for (int i = 0; i < n; i++) {
        w[i] = all[i]->in[1];
        b[i] = all[i]->in[2];
        K += w[i]->type.dims.d[0];
    }
    *axis = 1;
    fac_type type = all[0]->out[0]->type;
    type.dims.d[1] = K;
    fac_graph *body = all[0]->body[0] ? fac_body_resized(g, all[0]->body[0], type) : NULL;
    if (all[0]->body[0] && !body) return NULL;
    fac_value *args[3] = { all[0]->in[0], fac_concat(w, n, 0), b[0] ? fac_concat(b, n, 0) : NULL };
    return fac_emit_body(g, all[0]->op, all[0]->attrs, 3, 3, args, body, NULL);
}

static void visit(fac_graph *to, fac_node *n, const fac_judge *by) {
    static const fac_siblings of = { candidate, alike, whole, join };
    fac_join_siblings(to, n, &of, by);
}

fac_graph *fac_pass_siblings(const fac_graph *g, fac_accept *accept, void *self) {
    return fac_pass_each(g, visit, &(fac_judge){ .accept = accept, .self = self });
}
