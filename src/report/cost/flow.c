/* What goes from layer to layer: for drawings of a model, and for pictures of its memory over time.
 */
#include "report/cost/report.h"

/* Nodes keep their order, and layers are some of them: found by halves.  -1: it is no layer (a
 * shape that is known). */
static int layer_of(const fac_analysis *a, const fac_node *n) {
    int from = 0, to = a->totals.layers;
    while (from < to) {
        const int mid = from + (to - from) / 2;
        if (a->nodes[mid]->order < n->order)
            from = mid + 1;
        else
            to = mid;
    }
    return from < a->totals.layers && a->nodes[from] == n ? from : -1;
}

int fac_analysis_reads(const fac_analysis *a, int i, fac_alive *to, int max) {
    if (i < 0 || i >= a->totals.layers) return 0;
    const fac_node *n = a->nodes[i];
    int count = 0;
    for (int k = 0; k < n->nin; k++) {
        const fac_value *v = n->in[k];
        bool again = !v || !fac_is_data(v);
        for (int j = 0; j < k && !again; j++) again = n->in[j] == v;
        const int from = again || !v->node ? -1 : layer_of(a, v->node);
        if (again || (from < 0 && v->leaf != FAC_INPUT)) continue;
        if (count < max)
            to[count] =
                (fac_alive){ from, from < 0 ? v->name : a->layers[from].name, fac_data_bytes(v) };
        count++;
    }
    return count;
}

bool fac_analysis_life(const fac_analysis *a, int k, fac_lifetime *out) {
    if (k < 0 || k >= a->nlives) return false;
    const fac_life *l = &a->lives[k];
    const fac_value *v = l->value;
    *out =
        (fac_lifetime){ v->leaf == FAC_INPUT || l->first < 0 ? v->name : a->layers[l->first].name,
                        l->first, l->last, l->bytes };
    return true;
}
