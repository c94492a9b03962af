/* What changes nothing because of the contents or types of its operands:
 *   x + 0, x - 0, x * 1, x / 1, x ^ 1, where(true, x, y), --x, concat(x), split(x) in one part,
 *   slices of everything, pads of nothing, relu(relu(x)), casts to the same type, an expand whose
 *   reader would broadcast by itself, a recurrent cell that starts from zeros and is told so.
 * Here parameters are numbers like constants: a scale of a norm that is all ones goes.  -0 + 0 is
 * 0, else every bit stays. */
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/frozen.h"
#include "passes/passes.h"
#include "passes/common/single.h"

static bool same_type(const fac_value *v, const fac_value *of) {
    return v->type.dtype == of->type.dtype && fac_dims_equal(&v->type.dims, &of->type.dims);
}

/* The other operand where one is all x: the second one, or either where they commute. */
static fac_value *beside(const fac_node *n, fac_value *const in[], double x, bool commutes) {
    for (int i = commutes ? 0 : 1; i < 2; i++)
        if (same_type(in[1 - i], n->out[0]) && fac_frozen_is(in[i], x)) return in[1 - i];
    return NULL;
}

static fac_value *arithmetic(const fac_node *n, fac_value *const in[]) {
    static const struct {
        const fac_op *op;
        double neutral;
        bool commutes;
    } table[] = { { &fac_op_add, 0, true },
                  { &fac_op_sub, 0, false },
                  { &fac_op_mul, 1, true },
                  { &fac_op_div, 1, false },
                  { &fac_op_pow, 1, false } };
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (fac_node_of(n, table[k].op)) return beside(n, in, table[k].neutral, table[k].commutes);
    return NULL;
}

/* All numbers of a known list are x; an absent list is. */
static bool all_are(const fac_value *v, int64_t x, bool or_more) {
    fac_contents c;
    if (!v) return true;
    if (!fac_known_numbers(v, &c)) return false;
    for (int k = 0; k < c.n; k++)
        if (or_more ? c.v[k] < x : c.v[k] != x) return false;
    return true;
}

/* Movers that leave everything in its place. */
static bool moves_nothing(const fac_node *n, fac_value *const in[]) {
    const bool same = same_type(in[0], n->out[0]);
    if (FAC_IS(n, slice)) return same && (!in[4] || all_are(in[4], 1, true));
    if (FAC_IS(n, pad)) return same && all_are(in[1], 0, false);
    if (FAC_IS(n, split)) return n->nout == 1 && same;
    if (FAC_IS(n, concat)) return n->nin == 1;
    return same && (FAC_IS(n, cast) || FAC_IS(n, tile) || FAC_IS(n, flatten) ||
                    FAC_IS(n, squeeze) || FAC_IS(n, unsqueeze));
}

static bool at_least_zero(const fac_value *v) {
    double x;
    return fac_frozen_number(v, &x) && x >= 0;
}

/* An op on the result of the same or a similar op. */
static fac_value *twice(const fac_node *n, fac_value *const in[]) {
    const fac_node *p = n->nin && in[0] ? in[0]->node : NULL;
    if (!p) return NULL;
    if ((FAC_IS(n, neg) && FAC_IS(p, neg)) || (FAC_IS(n, not ) && FAC_IS(p, not ))) return p->in[0];
    if (!FAC_IS(n, relu)) return NULL;
    if (FAC_IS(p, relu) || FAC_IS(p, sigmoid) || FAC_IS(p, softmax)) return in[0];
    if (FAC_IS(p, clip) && p->in[1] && at_least_zero(p->in[1])) return in[0];
    return NULL;
}

static fac_value *chosen(const fac_node *n, fac_value *const in[]) {
    double x;
    if (!FAC_IS(n, where)) return NULL;
    fac_value *v = in[1] == in[2] ? in[1] : NULL;
    if (fac_frozen_number(in[0], &x)) v = in[x != 0 ? 1 : 2];
    return v && same_type(v, n->out[0]) ? v : NULL;
}

/* ---- with fewer operands ---- */

static bool broadcasts(const fac_node *n) {
    static const fac_op *const names[] = { &fac_op_add,
                                           &fac_op_sub,
                                           &fac_op_mul,
                                           &fac_op_div,
                                           &fac_op_pow,
                                           &fac_op_where,
                                           &fac_op_equal,
                                           &fac_op_less,
                                           &fac_op_greater,
                                           &fac_op_less_or_equal,
                                           &fac_op_greater_or_equal,
                                           &fac_op_and,
                                           &fac_op_or,
                                           &fac_op_xor,
                                           &fac_op_max,
                                           &fac_op_min,
                                           NULL };
    return fac_op_is_one_of(n->op, names);
}

enum { MOST = 256 };

/* Each dim of the result is one of some operand's, so that it does not depend on others being
 * spread out. */
static bool covers(fac_value *const in[], int n, const fac_dims *out) {
    for (int k = 1; k <= out->n; k++) {
        bool found = false;
        for (int i = 0; i < n && !found; i++) {
            const fac_dims *d = &in[i]->type.dims;
            found = d->n >= k && d->d[d->n - k] == out->d[out->n - k];
        }
        if (!found) return false;
    }
    return true;
}

static bool without_expands(fac_graph *to, const fac_node *n, fac_value *const in[],
                            fac_value *out[]) {
    fac_value *args[MOST];
    bool any = false;
    if (!broadcasts(n) || n->nin > MOST) return false;
    for (int i = 0; i < n->nin; i++) args[i] = in[i];
    for (int i = 0; i < n->nin; i++) {
        if (!args[i]) return false;
        if (!FAC_IS(args[i]->node, expand)) continue;
        args[i] = args[i]->node->in[0];
        if (covers(args, n->nin, &n->out[0]->type.dims))
            any = true;
        else
            args[i] = in[i];
    }
    if (any) fac_node_copy(to, n, args, out);
    return any;
}

/* Pieces of no length. */
static bool without_empty(fac_graph *to, const fac_node *n, fac_value *const in[],
                          fac_value *out[]) {
    fac_value *args[MOST];
    int count = 0;
    if (!FAC_IS(n, concat) || n->nin > MOST || n->nin < 2) return false;
    const int axis = fac_axis(fac_attr_int(n, "axis", 0), n->out[0]->type.dims.n);
    for (int i = 0; i < n->nin; i++)
        if (in[i]->type.dims.d[axis]) args[count++] = in[i];
    if (count == n->nin || !count) return false;
    (void)to;
    out[0] = count == 1 && same_type(args[0], n->out[0]) ? args[0]
                                                         : fac_emit(n->op, n->attrs, count, args);
    if (count > 1) fac_named_like(out[0], n);
    return true;
}

/* Whatever moves zeros about has zeros. */
static bool zeros(const fac_value *v) {
    while (v && v->node && v->node->op->move && v->node->nin && !FAC_IS(v->node, concat) &&
           !FAC_IS(v->node, pad))
        v = v->node->in[0];
    return v && fac_frozen_is(v, 0);
}

/* States of zeros are what ONNX takes for absent ones. */
static bool without_states(fac_graph *to, const fac_node *n, fac_value *const in[],
                           fac_value *out[]) {
    fac_value *args[MOST];
    bool any = false;
    if ((!FAC_IS(n, lstm) && !FAC_IS(n, gru) && !FAC_IS(n, rnn)) || n->nin > MOST) return false;
    for (int i = 0; i < n->nin; i++) {
        const char *port = i < n->nports ? n->op->in[i].name : "";
        const bool state = (!strcmp(port, "h0") || !strcmp(port, "c0")) && zeros(in[i]);
        any |= state;
        args[i] = state ? NULL : in[i];
    }
    if (any) fac_node_copy(to, n, args, out);
    return any;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    (void)self;
    if (n->nin && !in[0]) return false;
    fac_value *v = n->nin == 2 ? arithmetic(n, in) : NULL;
    if (!v) v = chosen(n, in);
    if (!v) v = n->nin ? twice(n, in) : NULL;
    if (!v && n->nin && moves_nothing(n, in)) v = in[0];
    if (v) {
        out[0] = v;
        return true;
    }
    return without_empty(to, n, in, out) || without_states(to, n, in, out) ||
           without_expands(to, n, in, out);
}

fac_graph *fac_pass_neutral(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL);
}
