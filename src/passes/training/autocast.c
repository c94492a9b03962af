/* Mixed precision: products in bf16 or f16, as PyTorch's autocast has it, with parameters, sums and
 * what is sensitive in f32.
 *
 * Each node keeps the types that its readers know: one that computes in the narrow type reads
 * narrow(x) and gives widen(y), and narrow(widen(y)) is y.  So a chain of such nodes holds narrow
 * values from end to end, its neighbours never notice, and what is left of the casts at its ends is
 * what really must be rounded.
 *
 *   narrow    products: matmul, linear, gemm, convolutions, attention, recurrent cells
 *   follow    what any type does as well: movers, pools, most elementwise ops; narrow where all
 *             that flows in is, parameters and constants that the type can say aside; a batch norm
 *             by its x alone, with its statistics in f32 (fac_op.mixed says which)
 *   f32       all others: exponentials, logarithms, powers, normalizations over dims, sums, losses
 *
 * Gradients follow by themselves: that of a cast is a cast. */
#include "facula/ops.h"
#include "op_list.h"
#include "ops/shape.h"
#include "graph/attr.h"
#include "passes/passes.h"
#include "passes/common/range.h"
#include "passes/common/single.h"
#include "tensor/dtype.h"

enum { VIEW_INPUTS = 5 };

typedef struct cast {
    fac_dtype low;
} cast;

static bool is_wide(const fac_value *v) { return v && v->type.dtype == FAC_F32; }

/* The narrow value that v was widened from; NULL: none. */
static fac_value *widened(const cast *c, const fac_value *v) {
    fac_node *n = is_wide(v) ? v->node : NULL;
    return FAC_IS(n, cast) && n->in[0]->type.dtype == c->low ? n->in[0] : NULL;
}

/* Is v another view of what a node makes, as transpose and reshape give? */
static bool is_view(const fac_value *v) {
    const fac_node *n = v->node;
    return n && n->op->view && n->op->move && n->nin >= 1 && n->nout == 1 && !n->body[0] &&
           is_wide(n->in[0]) && n->in[0]->node && n->in[0]->time == FAC_RUN;
}

/* Scalar constants are emitted again in the narrow type, so that later pattern matches (relu6,
 * scale) still see constants.  A view is narrowed before it is taken, so that the cast directly
 * follows the op that computes, which may absorb it. */
static fac_value *narrow(const cast *c, fac_value *v) {
    fac_value *low = widened(c, v);
    double number;
    if (low) return low;
    if (is_view(v)) {
        fac_value *args[VIEW_INPUTS] = { NULL }, *moved[1];
        const fac_node *n = v->node;
        for (int i = 1; i < n->nin && i < VIEW_INPUTS; i++) args[i] = n->in[i];
        args[0] = narrow(c, n->in[0]);
        if (n->nin <= VIEW_INPUTS && args[0]) {
            fac_node_copy(v->graph, n, args, moved);
            return moved[0];
        }
    }
    return fac_scalar_known(v, &number) && !v->type.dims.n ? fac_number(v->graph, c->low, number)
                                                           : fac_cast(v, c->low);
}

static bool follows(const fac_node *n) {
    return n->op->mixed == FAC_MIXED_FOLLOWS || n->op->move ||
           (n->op->map && n->op->mixed != FAC_MIXED_SENSITIVE);
}

/* May it be rounded?  Not a mask of -1e9 that would hide everything, or an epsilon that would be
 * 0. */
static bool roundable(const cast *c, const fac_value *v) {
    if (v->time == FAC_RUN && v->leaf != FAC_PARAM) return false;
    return !v->tensor || fac_range_holds(c->low, v->tensor);
}

/* All that flows is narrow, and something does; what stays the same in all runs may be rounded
 * where the type can say it. */
static bool all_narrow(const cast *c, const fac_node *n, fac_value *const in[]) {
    bool some = false;
    for (int i = 0; i < n->nin; i++) {
        if (!is_wide(in[i])) continue;
        if (widened(c, in[i]))
            some = true;
        else if (!roundable(c, in[i]))
            return false;
    }
    return some;
}

/* The node in the narrow type; inputs after the first `most` stay as they are. */
static void compute_narrow(const cast *c, fac_graph *to, const fac_node *n, int most,
                           fac_value *const in[], fac_value *out[]) {
    fac_value **low = fac_arena_alloc(&to->arena, (size_t)n->nin, sizeof *low);
    if (!low) fac_graph_raise(to, FAC_E_NOMEM, "%s: no memory for its inputs", n->op->name);
    if (!low) return;
    for (int i = 0; i < n->nin; i++) low[i] = i < most && is_wide(in[i]) ? narrow(c, in[i]) : in[i];
    fac_node_copy(to, n, low, out);
    for (int k = 0; k < n->nout; k++)
        if (out[k] && out[k]->type.dtype == c->low) out[k] = fac_cast(out[k], FAC_F32);
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    const cast *c = self;
    if (n->nin < 1 || n->body[0] || n->out[0]->type.dtype != FAC_F32) return false;
    if (fac_node_guess(n) == FAC_RANKLESS) return false;
    if (n->op->mixed == FAC_MIXED_PRODUCT) {
        if (!is_wide(in[0]) || n->out[0]->time != FAC_RUN) return false;
        compute_narrow(c, to, n, n->nin, in, out);
    } else if (n->op->mixed == FAC_MIXED_DATA) {
        if (!widened(c, in[0])) return false;
        compute_narrow(c, to, n, 1, in, out);
    } else if (follows(n) && all_narrow(c, n, in)) {
        compute_narrow(c, to, n, n->nin, in, out);
    } else {
        return false;
    }
    return true;
}

fac_graph *fac_graph_autocast(const fac_graph *g, fac_dtype low) {
    cast c = { low };
    if (fac_dtype_is_half(low)) {
        fac_graph *whole = fac_pass_gelu(g); /* erf would stay in f32 between products of its own */
        fac_graph *mixed = whole ? fac_graph_rebuild(whole,
                                                     &(fac_rebuild){ .self = &c,
                                                                     .visit = visit,
                                                                     .keep_dead = true,
                                                                     .blind = true },
                                                     NULL)
                                 : NULL;
        fac_graph_free(whole);
        return mixed;
    }
    fac_graph *copy = fac_graph_clone(g);
    if (copy)
        fac_graph_raise(copy, FAC_E_ARGUMENT, "mixed precision is bf16 or f16, not %s",
                        fac_dtype_get(low)->name);
    return copy;
}
