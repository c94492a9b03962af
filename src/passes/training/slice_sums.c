/* The gradient of a tensor that is read in slices is the sum of a tensor for each, zeros around
 * what the slice was.  Where the slices are neighbours and together all of it, as queries, keys and
 * values are of one product, the sum is a concat: slice_grad(x, 0..a, p) + slice_grad(x, a..n, q)
 * ->   concat(p, q) The same bits, but for the sign of zeros. */
#include "facula/ops.h"
#include "op_list.h"
#include "passes/passes.h"
#include "passes/common/part.h"
#include "passes/common/single.h"

enum { MOST = 64, DY = 5 };

typedef struct part {
    int64_t first;
    fac_value *dy;
} part;

typedef struct parts {
    int n, axis;
    int64_t covered;
    part of[MOST];
} parts;

static bool add_slice(const fac_node *n, parts *p) {
    fac_part_range r;
    if (p->n == MOST || !fac_part_of(n->in, &n->out[0]->type.dims, &r)) return false;
    if (p->n && p->axis != r.axis) return false;
    int k = p->n++;
    for (; k > 0 && p->of[k - 1].first > r.first; k--) p->of[k] = p->of[k - 1];
    p->of[k] = (part){ r.first, n->in[DY] };
    p->axis = r.axis;
    p->covered += r.count;
    return true;
}

/* The slices in a sum of sums that nothing else reads. */
static bool collect(fac_both v, parts *p) {
    if (!fac_used_once(v.was)) return false;
    if (fac_both_made_by(v, &fac_op_slice_grad)) return add_slice(v.now->node, p);
    return fac_both_made_by(v, &fac_op_add) && collect(fac_both_in(v, 0), p) &&
           collect(fac_both_in(v, 1), p);
}

/* Does each begin where the one before it ends? */
static bool touch(const parts *p) {
    int64_t at = 0;
    for (int k = 0; k < p->n; k++) {
        if (p->of[k].first != at) return false;
        at += p->of[k].dy->type.dims.d[p->axis];
    }
    return at == p->covered;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    fac_value *list[MOST];
    parts p = { 0 };
    (void)self, (void)to;
    if (!FAC_IS(n, add) || n->body[0]) return false;
    for (int i = 0; i < 2; i++)
        if (!collect((fac_both){ n->in[i], in[i] }, &p)) return false;
    if (p.covered != n->out[0]->type.dims.d[p.axis] || !touch(&p)) return false;
    for (int k = 0; k < p.n; k++) list[k] = p.of[k].dy;
    out[0] = fac_concat(list, p.n, p.axis);
    return true;
}

fac_graph *fac_pass_slice_sums(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL);
}
