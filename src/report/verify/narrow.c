/* Casts that stand around an op because its file format lacks a type: of u8 as i64, of bool as u8.
 *
 * An op that moves numbers moves wider ones alike; one that compares chooses alike, for a wider
 * type keeps the order; sums and products of wider integers are the same when they are cut off
 * again.  So such a node between casts is the node in the narrow type.  And an integer that an op
 * reads for its own value, a length or a place, is the same one in a wider type. */
#include <stdio.h>
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/casts.h"
#include "report/verify/verify.h"

static char kind(const fac_value *v) { return fac_dtype_get(v->type.dtype)->kind; }
static bool is_integer(const fac_value *v) { return kind(v) == 'i' || kind(v) == 'u'; }

/* Every integer of the type of x is one of the type of y. */
static bool holds(const fac_value *x, const fac_value *y) {
    const int from = fac_dtype_get(x->type.dtype)->bits, to = fac_dtype_get(y->type.dtype)->bits;
    if (!is_integer(x) || !is_integer(y)) return false;
    return kind(x) == kind(y) ? from <= to : kind(x) == 'u' && from < to;
}

/* The source of a cast that loses nothing; NULL: v is none. */
static fac_value *source(const fac_value *v) {
    if (!v || !FAC_IS(v->node, cast)) return NULL;
    return fac_cast_keeps(v->node) || holds(v->node->in[0], v) ? v->node->in[0] : NULL;
}

/* ---- whether a node is the same op in other types ---- */

/* The node alone, on inputs of the types of in[]; only its types are asked for. */
static bool is_sound(const fac_node *n, fac_value *const in[], fac_dtype first) {
    fac_graph *g = fac_graph_new();
    fac_value **args =
        g ? fac_arena_alloc(&g->arena, (size_t)(n->nin + n->nout), sizeof *args) : NULL;
    bool same = args != NULL;
    for (int i = 0; i < n->nin && same; i++) {
        const fac_value *v = in[i];
        char name[16];
        args[i] = NULL;
        if (!v) continue;
        snprintf(name, sizeof name, "x%d", i);
        args[i] = v->leaf == FAC_CONST && v->tensor
                      ? fac_const(g, v->tensor)
                      : fac_input(g, name, v->type.dtype, v->type.dims);
    }
    if (same) fac_node_copy(g, n, args, args + n->nin);
    same = same && !g->error.status;
    for (int k = 0; k < n->nout && same; k++) {
        const fac_type *made = &args[n->nin + k]->type, *was = &n->out[k]->type;
        same = fac_dims_equal(&made->dims, &was->dims) && made->dtype == (k ? was->dtype : first);
    }
    fac_graph_free(g);
    return same;
}

/* ---- the op in the narrow type ---- */

static bool moves(const fac_node *n) {
    const char *reduction = fac_attr_choice(n, "reduction");
    return (n->op->move || n->op->view || n->op->is & FAC_OP_TEXTS) &&
           (!reduction || !strcmp(reduction, "none"));
}

static bool commutes(const fac_node *n, const fac_value *narrow, const fac_value *wide) {
    if (FAC_IS(n, cast) || FAC_IS(n, bit_cast) || n->nin != n->nports || n->body[0]) return false;
    if (moves(n)) return true;
    if (!is_integer(wide) || kind(narrow) == 'f') return false;
    if (n->op->is & FAC_OP_PICKS) return true;
    return is_integer(narrow) && (n->op->is & FAC_OP_RING || n->op->is & FAC_OP_TEXTS ||
                                  FAC_IS(n, cum_prod) || FAC_IS(n, reduce_prod));
}

/* y is a cast of x, what n makes of casts.  NULL: these do not go. */
static fac_value *narrowed(fac_graph *to, const fac_node *y, fac_value *x) {
    const fac_node *n = x->node;
    bool any = false;
    if (!n || x->index || n->out[0] != x || !commutes(n, y->out[0], x)) return NULL;
    fac_value **args = fac_arena_alloc(&to->arena, (size_t)(n->nin + n->nout), sizeof *args);
    if (!args) return fac_graph_raise(to, FAC_E_NOMEM, "no memory for a node");
    for (int i = 0; i < n->nin; i++) {
        fac_value *from = source(n->in[i]);
        args[i] = n->in[i];
        if (!n->in[i] || n->in[i]->type.dtype != x->type.dtype || !fac_reads_data(n, i)) continue;
        if (!from || from->type.dtype != y->out[0]->type.dtype) return NULL;
        args[i] = from;
        any = true;
    }
    if (!any || !is_sound(n, args, y->out[0]->type.dtype)) return NULL;
    fac_node_copy(to, n, args, args + n->nin);
    return args[n->nin];
}

/* ---- integers that are read for their own value ---- */

static bool has_wide(const fac_node *n, fac_value *const in[]) {
    for (int i = 0; i < n->nin; i++)
        if (in[i] && is_integer(in[i]) && source(in[i])) return true;
    return false;
}

/* Each by itself: another may have to go with the type of the result. */
static bool plain(fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    bool any = false;
    if (!has_wide(n, in) || n->body[0] || FAC_IS(n, bit_cast)) return false;
    fac_value **args = fac_arena_alloc(&to->arena, (size_t)n->nin, sizeof *args);
    if (!args) return fac_graph_raise(to, FAC_E_NOMEM, "no memory for a node"), true;
    for (int i = 0; i < n->nin; i++) args[i] = in[i];
    for (int i = 0; i < n->nin; i++) {
        fac_value *from = in[i] && is_integer(in[i]) ? source(in[i]) : NULL;
        if (!from || !is_integer(from)) continue;
        args[i] = from;
        if (is_sound(n, args, n->out[0]->type.dtype))
            any = true;
        else
            args[i] = in[i];
    }
    if (any) fac_node_copy(to, n, args, out);
    return any;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    (void)self;
    fac_value *y = FAC_IS(n, cast) && n->nin == 1 ? narrowed(to, n, in[0]) : NULL;
    if (y) return out[0] = y, true;
    return plain(to, n, in, out);
}

fac_graph *fac_narrow(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL);
}
