/* A model with all of its floats in one type: weights are converted, casts and constants say the
 * new type.  A parameter of one number becomes a constant, which says where a function has its
 * corners.  Floats of 8 bits and fewer are codes, as integers are, and stay.  So do the types of
 * ops that are of their own types alone (FAC_OP_TYPED): casts stand around them. */
#include "base/error.h"
#include "facula/ops.h"
#include "graph/attr.h"
#include "report/verify/verify.h"

static bool is_float(fac_dtype t) {
    return fac_dtype_get(t)->kind == 'f' && !fac_dtype_is_stored(t);
}

static fac_value *leaf(void *self, fac_graph *to, const fac_value *v) {
    const fac_dtype want = *(const fac_dtype *)self;
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    const bool constant = v->leaf == FAC_CONST ||
                          (v->leaf != FAC_INPUT && fac_dims_count(&v->type.dims) == 1 && !v->next);
    if (!is_float(v->type.dtype) || (v->type.dtype == want && (constant == (v->leaf == FAC_CONST))))
        return NULL;
    if (v->leaf == FAC_INPUT)
        return v->type.dtype == want ? NULL : fac_input(to, v->name, want, v->type.dims);
    if (!v->tensor) return NULL;
    if (fac_tensor_convert(v->tensor, want, &t, &err))
        return fac_graph_raise(to, err.status, "%s", err.text);
    fac_value *made = constant ? fac_const(to, t) : fac_param(to, v->name, t);
    fac_tensor_free(t);
    return made;
}

static const fac_attr *type_attr(const fac_node *n) {
    const fac_attr *a = n->op->attrs;
    while (a && a->name && a->kind != FAC_A_DTYPE) a++;
    return a && a->name &&
                   is_float(*(const fac_dtype *)(const void *)((const char *)n->attrs + a->at))
               ? a
               : NULL;
}

/* The node in its own types, between casts. */
static void typed(fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[],
                  fac_dtype want) {
    fac_value **own = fac_arena_alloc(&to->arena, (size_t)n->nin + 1, sizeof *own);
    if (!own) {
        fac_graph_raise(to, FAC_E_NOMEM, "no memory for a node");
        return;
    }
    for (int i = 0; i < n->nin; i++) {
        const bool cast = in[i] && is_float(n->in[i]->type.dtype);
        own[i] = cast ? fac_cast(in[i], n->in[i]->type.dtype) : in[i];
    }
    fac_node_copy(to, n, own, out);
    for (int k = 0; k < n->nout; k++)
        if (out[k]->leaf != FAC_POISON && is_float(out[k]->type.dtype))
            out[k] = fac_cast(out[k], want);
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    const fac_dtype want = *(const fac_dtype *)self;
    const fac_attr *a = type_attr(n);
    fac_node other = *n;
    if (n->op->is & FAC_OP_TYPED) return typed(to, n, in, out, want), true;
    if (!a) return false;
    char *attrs = fac_arena_alloc(&to->arena, 1, n->op->attrs_size);
    if (!attrs) return fac_graph_raise(to, FAC_E_NOMEM, "no memory for a node"), true;
    memcpy(attrs, n->attrs, n->op->attrs_size);
    *(fac_dtype *)(void *)(attrs + a->at) = want;
    other.attrs = attrs;
    fac_node_copy(to, &other, in, out);
    return true;
}

bool fac_can_widen(const fac_graph *g) {
    for (const fac_node *n = g->first; n; n = n->next)
        if (n->body[0]) return false;
    return true;
}

fac_graph *fac_widen(const fac_graph *g, fac_dtype to) {
    return fac_graph_rebuild(
        g, &(fac_rebuild){ .self = &to, .visit = visit, .leaf = leaf, .keep_dead = true }, NULL);
}
