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

/* ---- ops that a file may hold written out ---- */

static bool opens(const fac_node *n) {
    const fac_op *op = n->op;
    return op->expand && op->ref && !op->define && !op->map && !op->move &&
           !(op->is & (FAC_OP_RING | FAC_OP_FLOW | FAC_OP_BODIES)) && fac_node_expands(n) > 0;
}

bool fac_can_open(const fac_graph *g) {
    for (const fac_node *n = g->first; n; n = n->next)
        if (opens(n)) return true;
    return false;
}

static bool stays(void *self, const fac_node *n) {
    (void)self;
    return fac_op_means(n->op) && !opens(n);
}

/* What follows an op in its own node, as nodes. */
static bool unfuse(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                   fac_value *out[]) {
    fac_node bare = *n;
    (void)self;
    if (!n->body[0] || n->op->is & FAC_OP_BODIES) return false;
    fac_value **then = fac_arena_alloc(&to->arena, (size_t)(n->nin - n->nports) + 1, sizeof *then);
    if (!then) return fac_graph_raise(to, FAC_E_NOMEM, "no memory for a node"), true;
    bare.body[0] = NULL;
    bare.nin = n->nports;
    fac_node_copy(to, &bare, in, out);
    then[0] = out[0];
    for (int i = n->nports; i < n->nin; i++) then[1 + i - n->nports] = in[i];
    fac_body_inline(to, n->body[0], then, out);
    return true;
}

static fac_graph *expanded(const fac_graph *g, fac_form form) {
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .visit = unfuse }, NULL);
    if (!good(to)) return to;
    return in_place_of(to, fac_pass_expand(to, form >= FAC_FORM_OPEN ? stays : NULL, NULL));
}

/* ---- constants ---- */

fac_status fac_fold_whole(const fac_node *n, fac_tensor *const in[], fac_tensor *out[],
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
    if (form == FAC_FORM_EXACT || form == FAC_FORM_OPEN) return fac_pass_fold(g, fac_fold_whole);
    if (form != FAC_FORM_ABSORBED) return fac_pass_fold(g, fac_ref_evaluate);
    fac_graph *to = fac_pass_absorb(g);
    if (good(to))
        to = in_place_of(to, fac_graph_rebuild(to, &(fac_rebuild){ .leaf = frozen }, NULL));
    return good(to) ? in_place_of(to, fac_pass_fold(to, fac_ref_evaluate)) : to;
}

/* ---- all of it ---- */

fac_graph *fac_canonical(const fac_graph *g, fac_form form) {
    fac_graph *to = fac_narrow(g);
    if (good(to)) to = in_place_of(to, fac_widen(to, FAC_F32));
    if (good(to)) to = in_place_of(to, expanded(to, form));
    if (good(to)) to = in_place_of(to, folded(to, form));
    if (good(to)) to = in_place_of(to, fac_pass_simplify(to));
    if (good(to)) to = in_place_of(to, fac_pass_neutral(to));
    if (good(to)) to = fac_define(to);
    /* what was made of integers may be f64 */
    return good(to) ? in_place_of(to, fac_widen(to, FAC_F32)) : to;
}

fac_graph *fac_written_out(const fac_graph *g) {
    fac_graph *to = fac_pass_expand(g, NULL, NULL);
    if (good(to)) to = in_place_of(to, fac_pass_fold(to, fac_fold_whole));
    if (good(to)) to = in_place_of(to, fac_pass_simplify(to));
    if (good(to)) to = in_place_of(to, fac_pass_neutral(to));
    return good(to) ? fac_define(to) : to;
}
