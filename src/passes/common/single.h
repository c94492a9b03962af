/* What passes ask of a value: what has become of it in a copy, and whether it is a known number. */
#ifndef FACULA_PASSES_SINGLE_H
#define FACULA_PASSES_SINGLE_H
#include "graph/graph_internal.h"
#include "op_list.h"

/* A value of the old graph, which knows its readers, and what has become of it in the new one. */
typedef struct fac_both {
    const fac_value *was;
    fac_value *now;
} fac_both;

static inline fac_both fac_both_in(fac_both v, int i) {
    return (fac_both){ v.was->node->in[i], v.now->node->in[i] };
}

/* Whether op made it, before and after, with nothing merged into it. */
static inline bool fac_both_made_by(fac_both v, const fac_op *op) {
    return fac_node_of(v.was->node, op) && fac_node_of(v.now->node, op) && !v.now->node->body[0];
}

static inline bool fac_is_number(const fac_value *v) {
    return v->leaf == FAC_CONST && v->tensor && fac_dims_count(&v->type.dims) == 1;
}

/* The number of a one-element constant. */
static inline bool fac_const_number(const fac_value *v, double *x) {
    fac_tensor *wide = NULL;
    if (!v || !fac_is_number(v) || v->type.dtype == FAC_TEXT) return false;
    if (fac_tensor_convert(v->tensor, FAC_F64, &wide, NULL)) return false;
    const bool ok = !fac_tensor_read(wide, x, sizeof *x, NULL);
    fac_tensor_free(wide);
    return ok;
}
#endif
