/* Fewer nodes: constants computed, what changes nothing dropped, what was made of parameters alone made now. */
#include "base/error.h"
#include "base/memory.h"
#include "edit/edit.h"
#include "passes/passes.h"
#include "run/ref.h"

/* One pass after the other; what went in is freed. */
static fac_graph *then(fac_graph *g, fac_graph *made) {
    fac_graph_free(g);
    return made;
}

fac_status fac_graph_simplified(const fac_graph *g, fac_graph **out, fac_error *err) {
    fac_graph *to = fac_pass_fold(g, fac_ref_evaluate);
    if (to && !fac_graph_check(to, NULL)) to = then(to, fac_pass_simplify(to));
    if (to && !fac_graph_check(to, NULL)) to = then(to, fac_pass_cse(to));
    return fac_edit_give(to, out, err);
}

fac_status fac_graph_sized(const fac_graph *g, int64_t batch, fac_graph **out, fac_error *err) {
    return fac_edit_give(fac_pass_sizes(g, batch), out, err);
}

