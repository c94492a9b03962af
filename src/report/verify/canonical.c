/* The canonical form of a model: f32, in the smallest ops (fac_op.define), constants computed,
 * without what changes nothing.  Two ways of writing one function become one. */
#include "base/error.h"
#include "passes/passes.h"
#include "report/verify/verify.h"
#include "ref/ref.h"

enum { DEEPEST = 8 };

typedef struct state {
    bool again;
} state;

/* The node is made first, for define() reads types and attributes from one of the new graph. */
static bool define(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                   fac_value *out[]) {
    state *s = self;
    if (!n->op->define || n->body[0]) return false;
    fac_node_copy(to, n, in, out);
    if (out[0]->leaf == FAC_POISON) return true;
    const fac_node *copied = out[0]->node;
    fac_value *smaller[FAC_DEFINED] = { NULL };
    if (n->nout > FAC_DEFINED) return true;
    n->op->define(copied, smaller);
    for (int k = 0; k < n->nout && smaller[0]; k++)
        if (smaller[k]) out[k] = smaller[k];
    s->again |= smaller[0] != NULL;
    return true;
}

static bool has_defined(const fac_graph *g) {
    for (const fac_node *n = g->first; n; n = n->next)
        if (n->op->define && !n->body[0]) return true;
    return false;
}

/* Takes g, frees it and returns what is made of it. */
static fac_graph *in_place_of(fac_graph *g, fac_graph *made) {
    fac_graph_free(g);
    return made;
}

static bool good(const fac_graph *g) { return g && !g->error.status; }

fac_graph *fac_define(fac_graph *g) {
    for (int k = 0; k < DEEPEST && good(g) && has_defined(g); k++) {
        state s = { false };
        g = in_place_of(g,
                        fac_graph_rebuild(g, &(fac_rebuild){ .self = &s, .visit = define }, NULL));
        if (!s.again) break;
    }
    return g;
}

/* ---- constants ---- */

/* Integers always: sizes and axes.  Floats would be rounded, which their remainders are not. */
static fac_status whole_numbers(const fac_node *n, fac_tensor *const in[], fac_tensor *out[],
                                fac_error *err) {
    for (int k = 0; k < n->nout; k++)
        if (fac_is_float(n->out[k]) && !n->op->move && !n->op->view) return FAC_E_UNSUPPORTED;
    return fac_ref_evaluate(n, in, out, err);
}

/* Weights are numbers like all others. */
static fac_value *frozen(void *self, fac_graph *to, const fac_value *v) {
    (void)self;
    const bool param = (v->leaf == FAC_PARAM || v->leaf == FAC_STATE) && v->tensor && !v->next;
    return param ? fac_const(to, v->tensor) : NULL;
}

static fac_graph *folded(const fac_graph *g, fac_form form) {
    if (form == FAC_FORM_EXACT) return fac_pass_fold(g, whole_numbers);
    if (form == FAC_FORM_FOLDED) return fac_pass_fold(g, fac_ref_evaluate);
    fac_graph *to = fac_pass_absorb(g);
    if (good(to))
        to = in_place_of(to, fac_graph_rebuild(to, &(fac_rebuild){ .leaf = frozen }, NULL));
    return good(to) ? in_place_of(to, fac_pass_fold(to, fac_ref_evaluate)) : to;
}

/* ---- all of it ---- */

fac_graph *fac_canonical(const fac_graph *g, fac_form form) {
    fac_graph *to = fac_widen(g, FAC_F32);
    if (good(to)) to = in_place_of(to, fac_pass_expand(to, NULL, NULL));
    if (good(to)) to = in_place_of(to, folded(to, form));
    if (good(to)) to = in_place_of(to, fac_pass_simplify(to));
    if (good(to)) to = in_place_of(to, fac_pass_neutral(to));
    if (good(to)) to = fac_define(to);
    /* what was made of integers may be f64 */
    return good(to) ? in_place_of(to, fac_widen(to, FAC_F32)) : to;
}
