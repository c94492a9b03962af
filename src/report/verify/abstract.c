/* A model on whole numbers modulo a prime: see facula/report/verify.h.
 *
 * Weights and constants become their remainders, and every value is a whole number whose remainder
 * counts.  What adds and multiplies (FAC_OP_RING) keeps it whatever the order; where a sum might
 * leave what f32 holds exactly, its operands are reduced first.  What moves numbers moves them. All
 * else gets the one remainder around 0, and
 *   what compares and chooses (FAC_OP_PICKS) does so with these,
 *   1 / x is the inverse modulo p,
 *   a function of single numbers becomes a table of random remainders that depends on the op, its
 *   attributes and its known operands,
 *   other ops run as they are, and their results, times 1000 and rounded, are reduced. */
#include <math.h>
#include "base/memory.h"
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/frozen.h"
#include "report/verify/residue.h"
#include "report/verify/verify.h"

/* Up to these, sums of f32 are exact; convolutions may be computed by Winograd's transforms, which
 * add more. */
static const double MATRIX = 0x1p24, CONV = 0x1p22;
enum { OPERANDS = 16 };

/* bound: by id of a value of the new graph, of |numbers|; 0: not a float, or unknown. */
typedef struct modular {
    int p;
    double *bound;
    size_t room;
    fac_abstract_stat *stat;
} modular;

static double half(const modular *m) { return m->p / 2; }
static fac_value *number(fac_graph *g, double x) { return fac_number(g, FAC_F32, x); }
static bool is_float(const fac_value *v) { return v && fac_is_float(v); }

/* ---- bounds ---- */

static void remember(modular *m, const fac_value *v, double bound) {
    const size_t had = m->room;
    if (!fac_reserve(&m->bound, &m->room, (size_t)v->id + 1, sizeof *m->bound)) {
        fac_graph_raise(v->graph, FAC_E_NOMEM, "no memory for bounds");
        return;
    }
    for (size_t k = had; k < m->room; k++) m->bound[k] = 0;
    m->bound[v->id] = bound;
}

static double bound_of(const modular *m, const fac_value *v) {
    const double known = v->id < m->room ? m->bound[v->id] : 0;
    return known > 0 ? known : INFINITY;
}

/* The remainder around 0. */
static fac_value *reduced(modular *m, fac_value *v) {
    fac_graph *g = v->graph;
    if (bound_of(m, v) <= half(m)) return v;
    fac_value *up = fac_mod(fac_add(v, number(g, half(m))), number(g, m->p));
    v = fac_sub(up, number(g, half(m)));
    remember(m, v, half(m));
    return v;
}

static void lost(modular *m, const fac_node *n) {
    if (!*m->stat->lost) fac_node_label(n, m->stat->lost, sizeof m->stat->lost);
}

/* ---- sums and products ---- */

static double ring_bound(const modular *m, const fac_node *n, fac_value *const in[]) {
    double bound[OPERANDS] = { 0 };
    for (int i = 0; i < n->nin && i < OPERANDS; i++) bound[i] = in[i] ? bound_of(m, in[i]) : 0;
    return fac_ring_bound(n, bound);
}

static double limit_of(const fac_node *n) {
    return fac_multiplies(n) && n->in[1]->type.dims.n > 2 && n->in[0]->type.dims.n > 2 ? CONV
                                                                                       : MATRIX;
}

static void ring(modular *m, fac_graph *to, const fac_node *n, fac_value *const in[],
                 fac_value *out[]) {
    fac_value *args[OPERANDS] = { NULL };
    for (int i = 0; i < n->nin; i++) args[i] = in[i];
    double bound = ring_bound(m, n, args);
    for (int i = 0; i < n->nin && !(bound <= limit_of(n)); i++)
        if (is_float(args[i]) && fac_reads_data(n, i)) args[i] = reduced(m, args[i]);
    bound = ring_bound(m, n, args);
    if (!(bound <= limit_of(n))) lost(m, n);
    fac_node_copy(to, n, args, out);
    remember(m, out[0], fmax(bound, 1));
}

/* ---- functions ---- */

static fac_value *table(fac_graph *g, const float *x, int p) {
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    fac_status status = fac_tensor_new(NULL, FAC_F32, fac_shape(p), &t, &err);
    if (!status) status = fac_tensor_write(t, x, (size_t)p * sizeof *x, &err);
    fac_value *v = status ? fac_graph_raise(g, status, "%s", err.text) : fac_const(g, t);
    fac_tensor_free(t);
    return v;
}

static fac_value *look_up(modular *m, fac_value *x, const float *numbers) {
    fac_value *at = fac_cast(fac_mod(x, number(x->graph, m->p)), FAC_I64);
    fac_value *y = fac_gather(table(x->graph, numbers, m->p), at, 0);
    remember(m, y, half(m));
    return y;
}

static fac_value *function(modular *m, fac_value *x, fac_hash key) {
    float numbers[FAC_PRIME_MOST];
    fac_residue_function(key, m->p, numbers);
    return look_up(m, reduced(m, x), numbers);
}

/* A table of each operand that is not known, and one of the sum of these. */
static void stand_in(modular *m, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    fac_hash key =
        fac_attrs_hash(fac_hash_text(fac_hash_start((uint64_t)m->p), n->op->name), n->op, n->attrs);
    fac_value *sum = NULL;
    double known;
    for (int i = 0; i < n->nin; i++)
        if (i && in[i] && fac_frozen_number(n->in[i], &known))
            key = fac_hash_int(fac_hash_bytes(key, &known, sizeof known), (uint64_t)i);
    for (int i = 0; i < n->nin; i++) {
        if (!in[i] || (i && fac_frozen_number(n->in[i], &known))) continue;
        fac_value *x = is_float(in[i]) ? in[i] : fac_cast(in[i], FAC_F32);
        x = function(m, x, fac_hash_int(key, (uint64_t)i));
        sum = sum ? fac_add(sum, x) : x;
    }
    if (!sum) return;
    const bool several = sum->node && sum->node->op->is & FAC_OP_RING;
    out[0] = several ? function(m, sum, key) : sum;
    if (!fac_is_float(n->out[0]))
        out[0] = fac_cast(fac_greater(out[0], number(out[0]->graph, 0)), n->out[0]->type.dtype);
    else if (!fac_dims_equal(&out[0]->type.dims, &n->out[0]->type.dims)) {
        out[0] = fac_expand(out[0], n->out[0]->type.dims);
        remember(m, out[0], half(m));
    }
}

static void inverse(modular *m, fac_value *const in[], fac_value *out[]) {
    float numbers[FAC_PRIME_MOST];
    fac_residue_inverses(m->p, numbers);
    out[0] = look_up(m, reduced(m, in[0]), numbers);
}

/* Integers made of floats: cut off as no sum would, and never negative, for they may be places. */
static void cast(modular *m, fac_graph *to, const fac_node *n, fac_value *const in[],
                 fac_value *out[]) {
    const bool from = fac_is_float(n->in[0]), flag = n->out[0]->type.dtype == FAC_BOOL;
    if (from && fac_is_float(n->out[0])) {
        out[0] = in[0];
    } else if (from) {
        fac_hash key = fac_hash_text(fac_hash_start((uint64_t)m->p), "cast");
        key = fac_hash_int(key, n->out[0]->type.dtype);
        fac_value *x = flag ? reduced(m, in[0]) : fac_abs(function(m, in[0], key));
        fac_node_copy(to, n, &x, out);
    } else {
        const bool one = n->in[0]->type.dtype == FAC_BOOL;
        fac_value *x = one ? in[0] : fac_mod(in[0], fac_number(to, n->in[0]->type.dtype, m->p));
        fac_node_copy(to, n, &x, out);
        remember(m, out[0], one ? 1 : m->p);
    }
}

/* ---- what moves, chooses, and all else ---- */

static void as_it_is(modular *m, fac_graph *to, const fac_node *n, fac_value *const in[],
                     fac_value *out[], bool moves) {
    fac_value **args = fac_arena_alloc(&to->arena, (size_t)n->nin + 1, sizeof *args);
    double most = 1;
    if (!args) {
        fac_graph_raise(to, FAC_E_NOMEM, "no memory for a node");
        return;
    }
    for (int i = 0; i < n->nin; i++) {
        const bool data = is_float(in[i]) && fac_reads_data(n, i);
        args[i] = data && !moves ? reduced(m, in[i]) : in[i];
        if (data) most = fmax(most, bound_of(m, args[i]));
    }
    fac_node_copy(to, n, args, out);
    for (int k = 0; k < n->nout; k++) {
        if (out[k]->leaf == FAC_POISON || !fac_is_float(out[k])) continue;
        const bool keeps = moves || n->op->is & FAC_OP_PICKS;
        if (!keeps) out[k] = fac_round(fac_mul(out[k], number(to, 1000)));
        remember(m, out[k], keeps ? most : MATRIX);
        if (!keeps) out[k] = reduced(m, out[k]);
    }
}

static bool touches_floats(const fac_node *n) {
    for (int i = 0; i < n->nin; i++)
        if (is_float(n->in[i])) return true;
    for (int k = 0; k < n->nout; k++)
        if (is_float(n->out[k])) return true;
    return false;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    modular *m = self;
    const fac_op *op = n->op;
    if (!touches_floats(n)) return false;
    if (n->body[0] || n->nin > OPERANDS) {
        const bool moves = !n->body[0] && (op->move || op->view);
        if (!moves) lost(m, n);
        as_it_is(m, to, n, in, out, moves);
        return true;
    }
    if (FAC_IS(n, cast))
        cast(m, to, n, in, out);
    else if (op->is & FAC_OP_RING)
        ring(m, to, n, in, out);
    else if (op->is & FAC_OP_INVERSE)
        inverse(m, in, out);
    else if (op->map && !(op->is & FAC_OP_PICKS))
        stand_in(m, n, in, out);
    else
        as_it_is(m, to, n, in, out, op->move || op->view);
    if (!out[0]) as_it_is(m, to, n, in, out, false);
    return true;
}

/* ---- the model ---- */

static fac_value *leaf(void *self, fac_graph *to, const fac_value *v) {
    modular *m = self;
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    double most = 0;
    if (!fac_is_float(v)) return NULL;
    if (v->leaf == FAC_INPUT) {
        fac_value *made = fac_input(to, v->name, FAC_F32, v->type.dims);
        remember(m, made, half(m));
        return made;
    }
    if (!v->tensor) return NULL;
    if (fac_residue_tensor(v->tensor, m->p, &t, &most, &err)) {
        fac_tensor_free(t);
        return fac_graph_raise(to, err.status, "%s", err.text);
    }
    fac_value *made = v->leaf == FAC_CONST ? fac_const(to, t) : fac_param(to, v->name, t);
    fac_tensor_free(t);
    remember(m, made, fmax(most, 1));
    return made;
}

static void reduce_outputs(modular *m, fac_graph *g) {
    const size_t n = g->noutputs;
    fac_graph_out *was = fac_alloc(n + 1, sizeof *was);
    if (!was) {
        fac_graph_raise(g, FAC_E_NOMEM, "no memory for outputs");
        return;
    }
    if (n) memcpy(was, g->outputs, n * sizeof *was);
    fac_forget_outputs(g);
    for (size_t k = 0; k < n && !g->error.status; k++)
        fac_output(g, was[k].name,
                   fac_is_float(was[k].value) ? reduced(m, was[k].value) : was[k].value);
    fac_release(was);
}

fac_graph *fac_abstract(const fac_graph *g, int prime, fac_abstract_stat *stat) {
    modular m = { .p = prime, .stat = stat };
    *stat = (fac_abstract_stat){ .prime = prime };
    fac_graph *to =
        fac_graph_rebuild(g, &(fac_rebuild){ .self = &m, .visit = visit, .leaf = leaf }, NULL);
    if (to && !to->error.status) reduce_outputs(&m, to);
    fac_release(m.bound);
    return to;
}
