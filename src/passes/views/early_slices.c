/* Slices go before the views that they follow, up to what computes their elements:
 *   slice(transpose(reshape(product)))   ->   transpose(reshape(slice(product)))
 * as where queries, keys and values are split off.  The gradient of the product is then the slices'
 * gradients side by side (slice_sums.c), where it was a stack of them in another order, to be
 * copied into the product's. */
#include "facula/ops.h"
#include "op_list.h"
#include "ops/transpose.h"
#include "passes/passes.h"
#include "passes/common/part.h"

enum { DEPTH = 8 };

static bool is_reshape(const fac_node *n) {
    static const fac_op *const names[] = { &fac_op_reshape, &fac_op_squeeze, &fac_op_unsqueeze,
                                           &fac_op_flatten, NULL };
    return fac_op_is_one_of(n->op, names);
}

/* Are the dims of a from i to m those of b from j to n, but for dims of 1? */
static bool same(const fac_dims *a, int i, int m, const fac_dims *b, int j, int n) {
    for (;;) {
        while (i < m && a->d[i] == 1) i++;
        while (j < n && b->d[j] == 1) j++;
        if (i == m || j == n) return i == m && j == n;
        if (a->d[i++] != b->d[j++]) return false;
    }
}

/* The range of what was reshaped: one dim of it holds those of the result from r->axis on, some or
 * all of them. */
static bool before_reshape(const fac_node *n, fac_part_range *r) {
    const fac_dims *to = &n->out[0]->type.dims, *from = &n->in[0]->type.dims;
    for (int e = 0; e < from->n; e++) {
        if (from->d[e] < 2 || !same(to, 0, r->axis, from, 0, e)) continue;
        int64_t inner = 1;
        for (int j = r->axis + 1; j <= to->n; inner *= to->d[j++]) {
            if (to->d[r->axis] * inner == from->d[e] && same(to, j, to->n, from, e + 1, from->n)) {
                *r = (fac_part_range){ e, r->first * inner, r->count * inner };
                return true;
            }
            if (j == to->n || to->d[j] < 1) break;
        }
    }
    return false;
}

/* The part r of v, cut off as early as views allow; NULL: right at v. */
static fac_value *cut(fac_value *v, fac_part_range r, int depth) {
    const fac_node *n = v->node;
    fac_dims dims = v->type.dims, perm;
    fac_part_range before = r;
    if (!n || !depth || v->time != FAC_RUN || n->body[0]) return NULL;
    dims.d[r.axis] = r.count;
    const bool turns = fac_transpose_order(n, &perm);
    if (turns)
        before.axis = (int)perm.d[r.axis];
    else if (!is_reshape(n) || !before_reshape(n, &before))
        return NULL;
    fac_value *x = cut(n->in[0], before, depth - 1);
    if (!x) x = fac_slice(n->in[0], before.axis, before.first, before.first + before.count, 1);
    return turns ? fac_transpose(x, perm) : fac_reshape_sizes(x, dims);
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    fac_part_range r;
    (void)self, (void)to;
    if (!FAC_IS(n, slice) || n->out[0]->time != FAC_RUN || !fac_part_of(in, &in[0]->type.dims, &r))
        return false;
    out[0] = cut(in[0], r, DEPTH);
    return out[0] != NULL;
}

fac_graph *fac_pass_early_slices(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL);
}
