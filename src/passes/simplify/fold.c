/* Constant folding.  Shape arithmetic folds through known contents, everything else by running the
 * reference kernel. */
#include "base/memory.h"
#include "passes/passes.h"

enum { KEEP = 64 << 10 }; /* bytes; see fac_pass_fold */

static fac_tensor *tensor_of(const fac_value *v) {
    return v && v->leaf == FAC_CONST ? v->tensor : NULL;
}

/* A constant from known contents; NULL when some are symbols. */
static fac_value *known_constant(fac_graph *g, const fac_value *v) {
    fac_contents c;
    fac_tensor *wide = NULL, *t = NULL;
    if (!fac_known_numbers(v, &c) || fac_dtype_get(v->type.dtype)->kind == 't') return NULL;
    if (fac_tensor_new(NULL, FAC_I64, v->type.dims, &wide, NULL)) return NULL;
    fac_value *made = NULL;
    if (fac_dims_count(&v->type.dims) == c.n &&
        !fac_tensor_write(wide, c.v, (size_t)c.n * sizeof *c.v, NULL) &&
        !fac_tensor_convert(wide, v->type.dtype, &t, NULL))
        made = fac_const(g, t);
    fac_tensor_free(t);
    fac_tensor_free(wide);
    return made;
}

/* All inputs are constants; whether the result is worth keeping shows when its size is known. */
static bool foldable(const fac_node *n, fac_value *const in[]) {
    if (n->op->is & (FAC_OP_BARRIER | FAC_OP_DYNAMIC)) return false;
    for (int i = 0; i < n->nin; i++)
        if (in[i] && !tensor_of(in[i])) return false;
    return true;
}

typedef struct fold {
    fac_evaluate *evaluate;
} fold;

/* Is more known of what n reads than when it was built? */
static bool learns(const fac_node *n, fac_value *const in[]) {
    for (int i = 0; i < n->nin; i++) {
        const fac_value *was = n->in[i], *now = in[i];
        if (!was || !now) continue;
        if (was->guess != now->guess || !was->known != !now->known ||
            tensor_of(was) != tensor_of(now) || !fac_dims_equal(&was->type.dims, &now->type.dims))
            return true;
    }
    return false;
}

/* Constants in place of results whose contents are known; false: of none. */
static bool put_known(fac_graph *to, const fac_node *n, fac_value *out[]) {
    bool any = false;
    for (int k = 0; k < n->nout; k++) {
        fac_value *known = out[k]->guess == FAC_CERTAIN ? known_constant(to, out[k]) : NULL;
        if (known) {
            out[k] = known;
            any = true;
        }
    }
    return any;
}

/* What becomes constant may tell the sizes of what reads it, and these the contents of a shape: so
 * contents are looked at here, too, and one walk folds to the end. */
static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    fold *f = self;
    enum { FEW = 32 };
    const bool knows = n->op->is & FAC_OP_KNOWS && !(n->op->is & FAC_OP_BARRIER) && learns(n, in);
    const bool folds = n->nin <= FEW && n->nout <= FEW && foldable(n, in);
    if (!knows && !folds) return false;

    /* types are inferred anew: inputs that became constants may have settled them */
    fac_node_copy(to, n, in, out);
    if ((knows && put_known(to, n, out)) || !folds) return true;
    fac_tensor *args[FEW], *results[FEW] = { NULL };
    size_t made = 0, from = 0;
    for (int k = 0; k < n->nout; k++) {
        if (out[k]->leaf == FAC_POISON || fac_dims_count(&out[k]->type.dims) < 0) return true;
        if (out[k]->guess != FAC_CERTAIN) return true;
        made += fac_type_bytes(&out[k]->type);
    }
    for (int i = 0; i < n->nin; i++) {
        args[i] = tensor_of(in[i]);
        if (in[i]) from += fac_type_bytes(&in[i]->type);
    }
    if (made > KEEP && made > from) return true;
    fac_error err = { 0 };
    fac_status status = f->evaluate(out[0]->node, args, results, &err);
    if (status == FAC_E_UNSUPPORTED) return true; /* only an expansion: that pass comes later */
    if (status) {
        fac_graph_raise(to, status, "%s", err.text);
        return true;
    }
    for (int k = 0; k < n->nout; k++) {
        fac_value *c = results[k] ? fac_const(to, results[k]) : out[k];
        if (results[k] && out[k]->name) fac_value_name_set(c, n->out[k]->name);
        out[k] = c;
        fac_tensor_free(results[k]);
    }
    return true;
}

/* A second walk replaces values whose contents are known (Shape of a concrete input, and what was
 * made of it). */
static bool visit_known(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                        fac_value *out[]) {
    (void)self;
    fac_contents c;
    bool any = false;
    if (n->op->is & FAC_OP_BARRIER) return false;
    for (int k = 0; k < n->nout; k++) any |= fac_known_numbers(n->out[k], &c);
    if (!any) return false;
    fac_node_copy(to, n, in, out);
    for (int k = 0; k < n->nout; k++) {
        fac_value *known = known_constant(to, out[k]);
        if (known) out[k] = known;
    }
    return true;
}

fac_graph *fac_pass_fold(const fac_graph *g, fac_evaluate *evaluate) {
    fac_graph *known = fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit_known }, NULL);
    if (!known || known->error.status) return known;
    fold f = { evaluate };
    fac_graph *folded =
        fac_graph_rebuild(known, &(fac_rebuild){ .self = &f, .visit = visit, .blind = true }, NULL);
    fac_graph_free(known);
    return folded;
}
