/* Known contents: what is known of a small integer value while the graph is built.  Constants learn
 * theirs in leaf.c, ops set them in their infer. */
#include "graph/build.h"

bool fac_known(const fac_value *v, fac_contents *contents) {
    if (!v || !v->known) return false;
    *contents = *v->known;
    return true;
}

bool fac_known_numbers(const fac_value *v, fac_contents *contents) {
    if (!v || !v->known || v->known->symbolic) return false;
    *contents = *v->known;
    return true;
}

void fac_knows(fac_value *v, const fac_contents *contents) {
    fac_graph *g = v->graph;
    if (v->leaf == FAC_POISON || contents->n < 0 || contents->n > FAC_KNOWN) return;
    fac_contents *copy = fac_arena_alloc(&g->arena, 1, sizeof *copy);
    if (!copy) {
        fac_graph_raise(g, FAC_E_NOMEM, "no memory for the known contents of a value");
        return;
    }
    *copy = *contents;
    v->known = copy;
}
