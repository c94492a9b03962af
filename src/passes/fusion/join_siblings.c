#include "passes/fusion/join_siblings.h"

/* Those that read what `first` reads. */
static int gather(const fac_siblings *of, fac_node *first, fac_node **all) {
    const int most = of->whole ? FAC_SIBLINGS - 1 : FAC_SIBLINGS;
    fac_node *odd = NULL;
    int n = 0;
    for (fac_use *u = first->in[0]->uses; u; u = u->next) {
        fac_node *m = u->node;
        if (u->input || !of->candidate(m) || !of->alike(first, m)) continue;
        if (!of->whole || of->whole(m)) {
            if (n < most) all[n++] = m;
        } else if (!odd || m->id < odd->id)
            odd = m;
    }
    if (odd && n) all[n++] = odd;
    return n;
}

void fac_join_siblings(fac_graph *g, fac_node *n, const fac_siblings *of, const fac_judge *by) {
    fac_node *all[FAC_SIBLINGS];
    const int count = of->candidate(n) ? gather(of, n, all) : 0;
    int axis = 0;
    fac_value *y = count > 1 ? of->join(g, all, count, &axis) : NULL;
    /* where it is not taken nothing reads it: the sweep takes it away */
    if (!y || !y->node || !by->accept(by->self, y->node)) return;
    fac_node_named_as(y->node, all[0]);
    fac_split_among(y, axis, all, count);
}
