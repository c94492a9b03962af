#include "passes/common/each.h"
#include "facula/ops.h"

fac_graph *fac_pass_each(const fac_graph *g, fac_visit *visit, const fac_judge *by) {
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ 0 }, NULL);
    if (!to || to->error.status) return to;
    fac_node *last = to->last;
    for (fac_node *n = to->first, *next; n && !to->error.status; n = n == last ? NULL : next) {
        next = n->next;
        visit(to, n, by);
    }
    if (!to->error.status) fac_graph_sweep(to);
    return to;
}

void fac_node_named_as(fac_node *n, const fac_node *as) {
    n->name = as->name;
    n->scope = as->scope;
}

void fac_node_stands_for(fac_node *n, const fac_node *as) {
    fac_node_named_as(n, as);
    n->stage = as->stage;
}

void fac_split_among(fac_value *y, int axis, fac_node *const *all, int n) {
    int64_t from = 0;
    for (int i = 0; i < n; i++) {
        const int64_t to = from + all[i]->out[0]->type.dims.d[axis];
        fac_replace(all[i]->out[0], fac_slice(y, axis, from, to, 1));
        from = to;
    }
}
