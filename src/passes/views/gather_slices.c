/* Gathers of one place along an axis become slices, which are views: exporters read queries, keys
 * and values so from what one product made of all three, and a loop over tiles that was unrolled
 * reads its tile so from a stack of weights. */
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/passes.h"
#include "passes/common/single.h"

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    double at;
    (void)self, (void)to;
    if (!FAC_IS(n, gather) || n->out[0]->time == FAC_COMPILE) return false;
    if (n->out[0]->time == FAC_RUN && !in[0]->node) return false;
    const fac_dims *d = &in[0]->type.dims;
    if (!d->n || in[1]->type.dims.n > 1 || !fac_const_number(in[1], &at)) return false;
    const int axis = fac_axis(fac_attr_int(n, "axis", 0), d->n);
    const int64_t place = (int64_t)at + (at < 0 ? d->d[axis] : 0);
    if (place < 0 || place >= d->d[axis]) return false;
    out[0] = fac_reshape_sizes(fac_slice(in[0], axis, place, place + 1, 1), n->out[0]->type.dims);
    return true;
}

fac_graph *fac_pass_gather_slices(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL);
}
