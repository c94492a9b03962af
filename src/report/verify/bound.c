/* A model that computes, beside each of its results y, a bound e of |y computed - y exact|.
 *
 * Each operator has a rule (bound_sums.c, bound_norm.c, bound_map.c: the formulas) that writes e
 * from the operands, their own bounds and y.  What moves or picks numbers moves their bounds in the
 * same way.  Operators that have no rule but mean simpler ones are replaced by these first.  Bounds
 * are computed in f32 themselves.  Ops on 16-bit floats sum in f32 at least and round their result
 * once; one that is too small for the type loses half of its smallest step.  Numbers below 2^-126
 * that become 0 are counted where bounds are compared (FAC_UNDERFLOW). */
#include "base/memory.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/passes.h"
#include "report/verify/bound.h"
#include "tensor/dtype.h"

enum { RESULTS = 64 };

/* The rounding unit of a type, and half of its smallest step. */
static double unit_of(fac_dtype t) {
    if (t == FAC_F16) return 0x1p-11;
    if (t == FAC_BF16) return 0x1p-8;
    return t == FAC_F64 ? 0x1p-53 : UNIT;
}
static double tiny_of(fac_dtype t) { return t == FAC_F16 ? 0x1p-25 : 0; }
/* Ids grow with the graph: the array follows them. */
static bool remember(fac_bounds *b, const fac_value *y, fac_value *e) {
    if (y->id >= b->ids) {
        const size_t need = 2 * ((size_t)y->id + 1024);
        fac_value **more = fac_resize(b->error, need, sizeof *more);
        if (!more) return false;
        memset(more + b->ids, 0, (need - b->ids) * sizeof *more);
        b->error = more;
        b->ids = need;
    }
    b->error[y->id] = e;
    return true;
}

/* What rounding to its type may do to y. */
static fac_value *rounded(fac_value *y) {
    const fac_dtype t = y->type.dtype;
    fac_value *e = times(size_of(y), 2 * unit_of(t));
    return tiny_of(t) > 0 ? fac_add(e, number(y->graph, tiny_of(t))) : e;
}

fac_value *fac_bound_of(fac_bounds *b, fac_value *v) {
    fac_value *e = v && v->id < b->ids ? b->error[v->id] : NULL;
    if (e || !v || !b->coarse || !fac_dtype_is_half(v->type.dtype) ||
        (v->leaf != FAC_PARAM && v->leaf != FAC_STATE))
        return e;
    e = rounded(v);
    return remember(b, v, e) ? e : (b->unknown = "(no memory)", NULL);
}

fac_value *fac_bound_again(const fac_node *n, fac_value *const in[], fac_value *a, fac_value *b,
                           fac_value *c) {
    fac_value *args[16], *out[8];
    if (n->nin > 16 || n->nout > 8)
        return fac_graph_raise(a->graph, FAC_E_UNSUPPORTED, "%s with %d operands", n->op->name,
                               n->nin);
    for (int i = 0; i < n->nin; i++) args[i] = in[i];
    args[0] = a;
    if (n->nin > 1 && b) args[1] = b;
    if (n->nin > 2) args[2] = c;
    fac_node_copy(a->graph, n, args, out);
    return out[0];
}

/* ---- what moves ---- */

/* Left alone, but for a sign or for what is beyond a limit: at most the operand's own error. */
static bool keeps(const fac_node *n) { return n->op->rounding.rule == FAC_ROUND_KEEPS; }

/* ... or, where limits are off themselves, the largest of all their errors. */
static fac_value *kept_error(fac_bounds *b, const fac_node *n, fac_value *const in[]) {
    fac_value *e = fac_bound_of(b, in[0]);
    for (int i = 1; i < n->nin; i++) {
        fac_value *limit = fac_bound_of(b, in[i]);
        if (limit) e = fac_max(e ? e : zeros_like(wide(in[0])), limit);
    }
    return e;
}

/* Moved or picked: the errors of data go the way of the data. */
static bool passes_on(const fac_node *n) {
    if (fac_attr_flag(n, "training")) return false; /* dropout that draws */
    return n->op->move || n->op->view || keeps(n) || n->op->rounding.rule == FAC_ROUND_MOVES;
}

/* The op on errors instead of data; where an operand is exact, on zeros. */
static fac_value *moved_error(fac_bounds *b, fac_graph *to, const fac_node *n,
                              fac_value *const in[], fac_value *e_out[]) {
    fac_value **args = fac_arena_alloc(&to->arena, (size_t)n->nin + 1, sizeof *args);
    bool any = false;
    if (!args) return fac_graph_raise(to, FAC_E_NOMEM, "no memory for %d operands", n->nin);
    for (int i = 0; i < n->nin; i++) {
        fac_value *e = fac_bound_of(b, in[i]);
        const bool data = in[i] && fac_is_float(in[i]) &&
                          !(fac_port_flags(n, i) & (FAC_INDEX | FAC_HOST | FAC_SHAPE_ONLY));
        if (!data && e && !(fac_port_flags(n, i) & FAC_SHAPE_ONLY)) return fac_bound_unknown(b, n);
        any |= data && e;
        args[i] = in[i];
        if (data) args[i] = e ? e : zeros_like(wide(in[i]));
    }
    if (!any) return NULL;
    fac_node_copy(to, n, args, e_out);
    return e_out[0];
}

/* ---- one node ---- */

/* By what the op says of itself (fac_op.rounding). */
static fac_bound_rule *const rules[FAC_ROUNDS] = {
    [FAC_ROUND_PRODUCT] = fac_bound_product,
    [FAC_ROUND_ADD] = fac_bound_add,
    [FAC_ROUND_MUL] = fac_bound_mul,
    [FAC_ROUND_DIV] = fac_bound_div,
    [FAC_ROUND_SUM] = fac_bound_sum,
    [FAC_ROUND_LARGEST] = fac_bound_largest,
    [FAC_ROUND_SOFTMAX] = fac_bound_softmax,
    [FAC_ROUND_LOG_SOFTMAX] = fac_bound_log_softmax,
    [FAC_ROUND_LOG_SUM_EXP] = fac_bound_log_sum_exp,
    [FAC_ROUND_BATCH_NORM] = fac_bound_batch_norm,
    [FAC_ROUND_LAYER_NORM] = fac_bound_layer_norm,
    [FAC_ROUND_RMS_NORM] = fac_bound_rms_norm,
    [FAC_ROUND_GROUP_NORM] = fac_bound_group_norm,
    [FAC_ROUND_LRN] = fac_bound_lrn,
    [FAC_ROUND_SMOOTH] = fac_bound_smooth,
    [FAC_ROUND_MONOTONE] = fac_bound_monotone,
    [FAC_ROUND_COSH] = fac_bound_cosh,
    [FAC_ROUND_RECIPROCAL] = fac_bound_reciprocal,
    [FAC_ROUND_POW] = fac_bound_pow,
    [FAC_ROUND_PICK] = fac_bound_pick,
    [FAC_ROUND_PRELU] = fac_bound_prelu,
    [FAC_ROUND_WHOLE] = fac_bound_whole,
};

/* Does the node have a used output other than the first?  The rules only cover output 0. */
static bool has_others(const fac_node *n) {
    for (int k = 1; k < n->nout; k++)
        if (n->out[k]->uses || n->out[k]->roots) return true;
    return false;
}

/* Does the node read values that carry an error?  Shapes carry none. */
static bool any_error(fac_bounds *b, const fac_node *n, fac_value *const in[]) {
    for (int i = 0; i < n->nin; i++)
        if (in[i] && !(fac_port_flags(n, i) & FAC_SHAPE_ONLY) && fac_bound_of(b, in[i]))
            return true;
    return false;
}

/* Of the arithmetic in f32, before the result is rounded to its type; e_out gets those of other
 * results where there are some. */
static fac_value *find_error(fac_bounds *b, fac_graph *to, const fac_node *n, fac_value *const in[],
                             fac_value *y, fac_value *e_out[]) {
    fac_bound_rule *rule = rules[n->op->rounding.rule];
    /* a few bits saturate early and have few normal numbers: no bound by their unit holds */
    if (FAC_IS(n, cast) && fac_dtype_is_stored(y->type.dtype)) return fac_bound_unknown(b, n);
    if (keeps(n) || (FAC_IS(n, cast) && fac_is_float(in[0]) && fac_is_float(y)))
        return kept_error(b, n, in);
    if (rule && !has_others(n)) return rule(b, n, in, y);
    if (passes_on(n) && !FAC_IS(n, cast)) return moved_error(b, to, n, in, e_out);
    const bool whole = !fac_is_float(y) || FAC_IS(n, cast); /* of integers: rounded below */
    return whole && !any_error(b, n, in) ? NULL : fac_bound_unknown(b, n);
}

/* What only moves or picks numbers rounds nothing. */
static bool rounds(const fac_node *n) {
    if (FAC_IS(n, cast))
        return fac_is_float(n->out[0]) &&
               unit_of(n->out[0]->type.dtype) > unit_of(n->in[0]->type.dtype);
    return fac_dtype_is_half(n->out[0]->type.dtype) && !passes_on(n) &&
           n->op->rounding.rule != FAC_ROUND_LARGEST && n->op->rounding.rule != FAC_ROUND_PICK;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    fac_bounds *b = self;
    fac_value *e[RESULTS] = { NULL };
    if (n->out[0]->time == FAC_COMPILE || b->unknown) return false;
    if (!fac_is_float(n->out[0]) && !any_error(b, n, in))
        return false; /* integers that were made of floats count too */
    if (n->nout > RESULTS) return fac_bound_unknown(b, n), false;
    fac_node_copy(to, n, in, out);
    if (fac_graph_check(to, NULL)) return true;
    e[0] = find_error(b, to, n, in, out[0], e);
    if (rounds(n)) e[0] = plus(e[0], rounded(out[0]));
    for (int k = 0; k < n->nout; k++)
        if (e[k] && !remember(b, out[k], e[k])) b->unknown = "(no memory)";
    return true;
}

/* ---- the model ---- */

static bool has_rule(void *self, const fac_node *n) {
    (void)self;
    return rules[n->op->rounding.rule] != NULL || fac_op_means(n->op);
}

/* In simpler ops where there is no rule; *own: the caller's to free. */
static const fac_graph *simpler(const fac_graph *g, fac_graph **own) {
    for (const fac_node *n = g->first; n && !*own; n = n->next)
        if (n->op->expand && !n->op->ref && !n->op->map && !n->op->move &&
            !(n->op->is & FAC_OP_BODIES) && !rules[n->op->rounding.rule])
            if (!(*own = fac_pass_expand(g, has_rule, NULL))) return NULL;
    return *own ? *own : g;
}

fac_graph *fac_error_bounds(const fac_graph *g, bool coarse, int *error_at, const char **unknown) {
    fac_bounds b = { .coarse = coarse };
    fac_graph *own = NULL;
    const fac_graph *from = simpler(g, &own);
    if (!from) return NULL;
    fac_graph *to = fac_graph_rebuild(
        from, &(fac_rebuild){ .self = &b, .visit = visit, .keep_dead = true }, NULL);
    const size_t outputs = to ? to->noutputs : 0;
    for (size_t k = 0; k < outputs && !b.unknown && !fac_graph_check(to, NULL); k++) {
        char name[48];
        fac_value *e = fac_bound_of(&b, to->outputs[k].value);
        error_at[k] = e ? (int)to->noutputs : -1;
        snprintf(name, sizeof name, "verify.error.%zu", k);
        if (e) fac_output(to, name, e);
    }
    if (to) fac_graph_sweep(to);
    *unknown = b.unknown;
    fac_graph_free(own);
    fac_release(b.error);
    return to;
}
