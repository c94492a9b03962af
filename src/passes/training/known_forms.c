/* What exporters spell out becomes one op before gradients are made of it: attention and its
 * gradient keep no matrix of scores, where softmax between two products keeps three.  The planner
 * knows the same forms, but in a step of training the gradients read what stands in their middle.
 */
#include "passes/passes.h"

/* Where no kernel takes it, it is expanded again. */
static bool any(void *self, const fac_node *n) {
    (void)self, (void)n;
    return true;
}

static fac_graph *attention(const fac_graph *g) { return fac_pass_attention(g, any, NULL); }

fac_graph *fac_pass_known_forms(const fac_graph *model, fac_evaluate *evaluate) {
    static fac_graph *(*const passes[])(const fac_graph *) = {
        fac_pass_gelu, fac_pass_gather_slices, attention, fac_pass_row_order, fac_pass_early_slices
    };
    fac_graph *g = fac_pass_fold(model, evaluate); /* factors that files compute */
    for (size_t k = 0; k < sizeof passes / sizeof *passes && g && !g->error.status; k++) {
        fac_graph *next = passes[k](g);
        fac_graph_free(g);
        g = next;
    }
    return g;
}
