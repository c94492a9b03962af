/* Fewer nodes: constants computed, what changes nothing dropped, what was made of parameters alone
 * made now. */
#include <limits.h>
#include "base/error.h"
#include "base/memory.h"
#include "edit/edit.h"
#include "passes/passes.h"
#include "ref/ref.h"

/* One pass after the other; what went in is freed. */
static fac_graph *then(fac_graph *g, fac_graph *made) {
    fac_graph_free(g);
    return made;
}

/* What depends on parameters alone is computed; errors are the new graph's. */
static fac_graph *baked(const fac_graph *g) {
    fac_graph *made = NULL;
    fac_error err = { 0 };
    if (!fac_graph_baked(g, NULL, &made, &err)) return made;
    if ((made = fac_graph_new())) made->error = err;
    return made;
}

static fac_graph *folded(const fac_graph *g) { return fac_pass_fold(g, fac_ref_evaluate); }

/* Each pass makes work for others, round after round; most models need two.  Baking comes after
 * what writes ops on parameters. */
fac_status fac_graph_simplified(const fac_graph *g, fac_graph **out, fac_error *err) {
    static fac_graph *(*const passes[])(const fac_graph *) = {
        fac_pass_absorb,  fac_pass_products, folded,          baked,       fac_pass_simplify,
        fac_pass_neutral, fac_pass_shapes,   fac_pass_movers, fac_pass_cse
    };
    enum { ROUNDS = 8, PASSES = sizeof passes / sizeof *passes };
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ 0 }, NULL);
    for (int i = 0, before = INT_MAX; i < ROUNDS && to && to->nodes < before; i++) {
        before = to->nodes;
        for (int k = 0; k < PASSES && to && !fac_graph_check(to, NULL); k++)
            to = then(to, passes[k](to));
    }
    return fac_edit_give(to, out, err);
}

fac_status fac_graph_sized(const fac_graph *g, int64_t batch, fac_graph **out, fac_error *err) {
    return fac_edit_give(fac_pass_sizes(g, batch), out, err);
}
