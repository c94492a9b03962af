/* ONNX's Loop: for (i = 0; (!trips || i < trips) && cond; i++) cond, carried.., row.. = body(i,
 * cond, carried.., others..). Its results are the carried values after the last iteration, and the
 * rows of all iterations, stacked.
 *
 * With a trip count that is known and a condition that stays true its expansion is the body so many
 * times. */
#include <stdio.h>
#include <string.h>
#include "base/memory.h"
#include "graph/onnx_flow.h"
#include "graph/onnx_write.h"
#include "op_list.h"
#include "ops/cost.h"
#include "ops/flow.h"
#include "ops/loop.h"
#include "ops/onnx_in.h"
#include "ops/sequence/loop_lists.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* Runs the body `trips` times (an integer scalar; NULL: without end) while cond (a bool scalar;
 * NULL: true).  in[0..n): the first `carried` are what iterations hand on, the others are what all
 * of them read.  The body is a closed graph: its inputs are the number of the iteration (i64[]),
 * the condition (bool[]), and one for each of in[]; its outputs are the next condition, the next
 * carried values, and any further ones are collected.  out[] receives the carried values after the
 * last iteration, then for each further output of the body the results of all iterations along a
 * new first axis.  g takes over the body. */
void fac_iterate(fac_graph *g, fac_graph *body, fac_value *trips, fac_value *cond, int carried,
                 int n, fac_value *const in[], fac_value *out[]);
#endif

static const fac_attr table[] = {
    { "carried", FAC_A_INT, offsetof(fac_loop_attrs, carried), 0, 0, 0, 1 << 20, NULL,
      "how many of the inputs after the condition are handed from iteration to iteration" },
    { 0 }
};
static const fac_port in[] = { { "trips", FAC_INTS, FAC_OPTIONAL },
                               { "cond", FAC_BOOLS, FAC_OPTIONAL },
                               { "x", FAC_ANY, FAC_OPTIONAL | FAC_VARIADIC },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_ANY, FAC_VARIADIC }, { 0 } };
enum { FIXED = FAC_LOOP_FIXED };

/* ---- how often ---- */

static bool known_trips(const fac_node *n, int64_t *trips) {
    fac_contents c;
    if (!fac_known_numbers(n->in[0], &c) || c.n != 1) return false;
    *trips = c.v[0] > 0 ? c.v[0] : 0;
    return true;
}

int64_t fac_loop_trips(const fac_node *n, const fac_graph *body) {
    const fac_value *next = body->outputs[0].value;
    int64_t trips = INT64_MAX;
    bool first = true, again;
    if (n->in[1] && !fac_flow_always(n->in[1], &first)) return -1;
    if (!first) return 0;
    if (n->in[0] && !known_trips(n, &trips)) return -1;
    while (next->node && next->node->op == &fac_op_identity) next = next->node->in[0];
    if (next == body->inputs[1]) return trips;
    if (!fac_flow_always(next, &again)) return -1;
    return again || trips == 0 ? trips : 1;
}

/* ---- types ---- */

static bool scalar(fac_node *n, int i) {
    const fac_dims *d = n->in[i] ? &n->in[i]->type.dims : NULL;
    if (!d || d->n == 0 || (d->n == 1 && (d->d[0] == 1 || d->d[0] < 0))) return true;
    return fac_fail(n, FAC_E_SHAPE, "%s must be one element", n->op->in[i].name);
}

static bool check(fac_node *n) {
    const int64_t carried = ((const fac_loop_attrs *)n->attrs)->carried;
    const fac_graph *b = n->body[0];
    if (!scalar(n, 0) || !scalar(n, 1)) return false;
    if (carried > n->nin - FIXED)
        return fac_fail(n, FAC_E_ARGUMENT, "%lld carried values, and %d inputs for them",
                        (long long)carried, n->nin - FIXED);
    for (int i = FIXED; i < n->nin; i++)
        if (!n->in[i]) return fac_fail(n, FAC_E_ARGUMENT, "input %d is missing", i);
    if (!b || b->noutputs < (size_t)carried + 1 || b->noutputs < 2)
        return fac_fail(n, FAC_E_ARGUMENT,
                        "its body needs a condition and %lld carried values, and something to give",
                        (long long)carried);
    const fac_type *cond = &b->outputs[0].value->type;
    if (cond->dtype != FAC_BOOL || cond->dims.n > 1)
        return fac_fail(n, FAC_E_DTYPE,
                        "the condition of its body is %s with %d dims, it must be one bool",
                        fac_dtype_get(cond->dtype)->name, cond->dims.n);
    return true;
}

/* Sizes of carried values that an iteration changes are open; true when there is one more of them.
 */
static bool widen(const fac_flow *f, int carried, fac_flow_feed *feed, bool *ok) {
    bool more = false;
    for (int i = 0; i < carried; i++) {
        const fac_type *x = &f->body->inputs[FIXED + i]->type,
                       *y = &f->body->outputs[1 + i].value->type;
        if (x->dtype != y->dtype || x->dims.n != y->dims.n) {
            *ok = fac_fail(f->n, FAC_E_SHAPE,
                           "carried value %d is %s with %d dims, after an iteration %s with %d", i,
                           fac_dtype_get(x->dtype)->name, x->dims.n, fac_dtype_get(y->dtype)->name,
                           y->dims.n);
            return false;
        }
        for (int k = 0; k < x->dims.n; k++)
            if (x->dims.d[k] != y->dims.d[k] && feed[FIXED + i].type.dims.d[k] != FAC_FLOW_OPEN) {
                feed[FIXED + i].type.dims.d[k] = FAC_FLOW_OPEN;
                more = true;
            }
    }
    return more;
}

static bool put_types(fac_node *n, fac_flow *f, int carried) {
    const int64_t trips = fac_loop_trips(n, f->body);
    if (trips == INT64_MAX)
        return fac_fail(n, FAC_E_ARGUMENT, "it has no trip count, and its condition stays true");
    const int64_t rows = trips < 0 ? fac_symbol(n->graph, NULL) : trips;
    for (int k = 0; k < n->nout; k++) {
        fac_type y =
            k < carried && trips == 0 ? n->in[FIXED + k]->type : fac_flow_type(f, (size_t)k + 1);
        if (k >= carried) {
            memmove(y.dims.d + 1, y.dims.d, (FAC_DIMS - 1) * sizeof *y.dims.d);
            y.dims.d[0] = rows;
            y.dims.n++;
        }
        n->out[k]->type = y;
    }
    return true;
}

static bool open_body(fac_node *n, fac_flow *f, int carried, fac_flow_feed *feed) {
    bool ok = fac_flow_open(f, n, 0, n->nin, feed);
    while (ok && widen(f, carried, feed, &ok)) {
        fac_flow_close(f, false);
        ok = fac_flow_open(f, n, 0, n->nin, feed);
    }
    for (size_t k = (size_t)carried + 1; ok && k < f->body->noutputs; k++)
        if (f->body->outputs[k].value->type.dims.n == FAC_DIMS)
            ok = fac_fail(n, FAC_E_SHAPE,
                          "output %zu of its body has %d dims, with iterations too many", k,
                          FAC_DIMS);
    return ok && fac_node_outputs(n, (int)f->body->noutputs - 1);
}

static bool infer(fac_node *n) {
    fac_flow f = { 0 };
    if (!check(n)) return false;
    const int carried = (int)((const fac_loop_attrs *)n->attrs)->carried;
    fac_flow_feed *feed = fac_arena_alloc(&n->graph->arena, (size_t)n->nin, sizeof *feed);
    if (!feed) return fac_fail(n, FAC_E_NOMEM, "no memory for the types of its body");
    feed[0] = (fac_flow_feed){ .type = { FAC_I64, { 0 } } };
    feed[1] = (fac_flow_feed){ .type = { FAC_BOOL, { 0 } } };
    for (int i = FIXED; i < n->nin; i++) {
        feed[i] = fac_flow_same(n->in[i]);
        if (i < FIXED + carried) feed[i].known = NULL; /* other contents in each iteration */
    }
    const bool ok = open_body(n, &f, carried, feed) && put_types(n, &f, carried);
    fac_flow_close(&f, ok);
    return ok;
}

/* ---- unrolling ---- */

static int64_t expands(const fac_node *n) {
    const int64_t trips = fac_loop_trips(n, n->body[0]),
                  each = fac_flow_nodes(n->body[0]) + (int64_t)n->body[0]->noutputs;
    if (trips < 0 || each > FAC_FLOW_MOST || trips > FAC_FLOW_MOST / each) return 0;
    return trips * each + n->nout;
}

/* One after the other along the first axis, by steps: a node with thousands of inputs is one that
 * gradients refuse. */
static fac_value *stack(fac_graph *g, fac_value **row, int64_t n) {
    enum { AT_ONCE = 128 };
    while (n > 1 && !g->error.status) {
        int64_t groups = 0;
        for (int64_t k = 0; k < n; k += AT_ONCE)
            row[groups++] = fac_concat(row + k, (int)(n - k < AT_ONCE ? n - k : AT_ONCE), 0);
        n = groups;
    }
    return row[0];
}

static fac_value *nothing(const fac_value *like) {
    return fac_expand_to(fac_number(like->graph, like->type.dtype, 0),
                         fac_ints(like->graph, like->type.dims));
}

static void iterate(const fac_node *n, int64_t trips, fac_value **in_, fac_value **made,
                    fac_value **rows, fac_value *y[]) {
    fac_graph *g = n->graph;
    const int carried = (int)((const fac_loop_attrs *)n->attrs)->carried;
    for (int i = FIXED; i < n->nin; i++) in_[i] = n->in[i];
    in_[1] = fac_number(g, FAC_BOOL, 1);
    for (int64_t t = 0; t < trips && !g->error.status; t++) {
        char part[24];
        snprintf(part, sizeof part, "%lld", (long long)t);
        in_[0] = fac_number(g, FAC_I64, (double)t);
        fac_flow_inline(n, n->body[0], part, in_, made);
        for (int k = 0; k < carried; k++) in_[FIXED + k] = made[1 + k];
        for (int k = carried; k < n->nout; k++)
            rows[(k - carried) * trips + t] = fac_unsqueeze(made[1 + k], fac_shape(0));
    }
    for (int k = 0; k < n->nout && !g->error.status; k++)
        y[k] = k < carried ? in_[FIXED + k]
               : trips     ? stack(g, rows + (k - carried) * trips, trips)
                           : nothing(n->out[k]);
}

static void expand(const fac_node *n, fac_value *y[]) {
    const int64_t trips = fac_loop_trips(n, n->body[0]);
    const size_t collected =
        n->body[0]->noutputs - 1 - (size_t)((const fac_loop_attrs *)n->attrs)->carried;
    if (!expands(n)) {
        if (trips < 0)
            fac_fail((fac_node *)n, FAC_E_UNSUPPORTED,
                     "its trip count is not known before the run");
        else
            fac_fail((fac_node *)n, FAC_E_UNSUPPORTED,
                     "%lld iterations are too many to be unrolled", (long long)trips);
        return;
    }
    fac_value **in_ = fac_alloc((size_t)n->nin + n->body[0]->noutputs, sizeof *in_);
    fac_value **rows = fac_alloc(collected * (size_t)trips + 1, sizeof *rows);
    if (in_ && rows)
        iterate(n, trips, in_, in_ + n->nin, rows, y);
    else
        fac_graph_raise(n->graph, FAC_E_NOMEM, "%s: no memory for %lld iterations", n->op->name,
                        (long long)trips);
    fac_release(in_);
    fac_release(rows);
}

static void cost(const fac_node *n, fac_cost *c) {
    const int64_t trips = fac_loop_trips(n, n->body[0]);
    *c = (fac_cost){ 0 };
    fac_cost_bytes(n, c);
    fac_flow_cost(n->body[0], trips < 0 ? 1 : (double)trips, c);
}

/* ---- ONNX ---- */

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[], fac_value *y[]) {
    const int formal = fac_onnx_body_inputs(n, "body"), carried = formal - FIXED;
    if (formal < 0) return;
    if (carried < 0 || n->nin > formal) {
        fac_fail_graph(g, FAC_E_FORMAT, "Loop has %d inputs, its body %d", n->nin, formal);
        return;
    }
    if (fac_loop_has_lists(n, ins)) {
        fac_loop_lists(n, g, ins, y, formal);
        return;
    }
    fac_type *types = fac_arena_alloc(&g->arena, (size_t)formal, sizeof *types);
    fac_onnx_outer outer = { 0 };
    if (!types) {
        fac_fail_graph(g, FAC_E_NOMEM, "no memory for the types of a loop");
        return;
    }
    types[0] = (fac_type){ FAC_I64, { 0 } };
    types[1] = (fac_type){ FAC_BOOL, { 0 } };
    for (int i = FIXED; i < formal; i++) {
        if (i >= n->nin || !ins[i]) {
            fac_fail_graph(g, FAC_E_FORMAT, "Loop lacks input %d, which its body has", i);
            return;
        }
        types[i] = ins[i]->type;
    }
    fac_graph *body = fac_onnx_body(n, "body", formal, types, &outer);
    if (!body) return;
    fac_value **all =
        fac_arena_alloc(&g->arena, (size_t)carried + (size_t)outer.n + 1, sizeof *all);
    fac_value **made = fac_arena_alloc(&g->arena, body->noutputs, sizeof *made);
    const int results = (int)body->noutputs - 1;
    if (!all || !made || results < n->nout) {
        fac_graph_free(body);
        fac_fail_graph(g, all && made ? FAC_E_FORMAT : FAC_E_NOMEM,
                       "%d outputs of Loop, whose body has %d", n->nout, results);
        return;
    }
    for (int i = 0; i < carried; i++) all[i] = ins[FIXED + i];
    for (int i = 0; i < outer.n; i++) all[carried + i] = outer.v[i];
    fac_iterate(g, body, fac_onnx_in(n, ins, 0), fac_onnx_in(n, ins, 1), carried, carried + outer.n,
                all, made);
    for (int k = 0; k < n->nout; k++) y[k] = made[k];
}

/* An absent count is "", and a list of one element is said as a scalar. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const int carried = (int)((const fac_loop_attrs *)n->attrs)->carried;
    const char **names = fac_alloc((size_t)(FIXED + carried), sizeof *names);
    if (!names) return false;
    names[0] = n->in[0] && n->in[0]->type.dtype != FAC_I64 ? NULL : fac_onnx_ranked(w, n->in[0], 0);
    names[1] = fac_onnx_ranked(w, n->in[1], 0);
    for (int i = FIXED; i < FIXED + carried; i++) names[i] = fac_onnx_name(w, n->in[i]);
    if (n->in[0] && n->in[0]->type.dtype != FAC_I64) {
        const char *x = fac_onnx_ranked(w, n->in[0], 0);
        names[0] = fac_onnx_put(w, "Cast", 1, &x, NULL);
        fac_onnx_put_dtype(w, "to", FAC_I64);
    }
    fac_onnx_put(w, "Loop", FIXED + carried, names,
                 fac_onnx_name(w, n->out[0]) ? fac_onnx_name(w, n->out[0]) : "");
    for (int k = 1; k < n->nout; k++) fac_onnx_put_out(w, fac_onnx_name(w, n->out[k]));
    fac_onnx_put_body(w, "body", n, 0, FIXED + carried);
    fac_release(names);
    return true;
}

static const fac_onnx_attr names[] = { { "body", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Loop", 1, 0, names, load, 0 }, { 0 } };
static const fac_case cases[] = {
    { "loop(i64(3), -, f32[2], f32[2]) carried=1 {(i64[], bool[], f32[2], f32[2]) t0 = mul(x2, "
      "x3); t1 = tanh(t0); x1, t1, t0}",
      -2, 2, 1e-6 },
    { "loop(i64(2), bool(1), f64[2,3]) {(i64[], bool[], f64[2,3]) t0 = cast(x0) to=f64; t1 = "
      "add(x2, t0); x1, t1}",
      -2, 2, 1e-6 },
    { "loop(i64(0), -, f32[3]) carried=1 {(i64[], bool[], f32[3]) t0 = exp(x2); x1, t0, t0}", -2, 2,
      1e-6 },
    { 0 }
};

const fac_op fac_op_loop = {
    .name = "loop",
    .doc = "its body, again and again",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(fac_loop_attrs),
    .is = FAC_OP_BODIES | FAC_OP_FLOW,
    .infer = infer,
    .expand = expand,
    .expands = expands,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

void fac_iterate(fac_graph *g, fac_graph *body, fac_value *trips, fac_value *cond, int carried,
                 int n, fac_value *const in_[], fac_value *out_[]) {
    const int count = body && body->noutputs ? (int)body->noutputs - 1 : 0;
    fac_value **all =
        n >= 0 && g ? fac_arena_alloc(&g->arena, (size_t)n + FIXED, sizeof *all) : NULL;
    fac_value *y = g ? g->poison : NULL;
    if (all) {
        all[0] = trips;
        all[1] = cond;
        for (int i = 0; i < n; i++) all[FIXED + i] = in_[i];
        y = fac_emit_body(g, &fac_op_loop, &(fac_loop_attrs){ carried }, n + FIXED, n + FIXED, all,
                          body, NULL);
    } else {
        fac_graph_free(body);
        if (g) fac_graph_raise(g, FAC_E_NOMEM, "loop: no memory for %d inputs", n);
    }
    fac_flow_outputs(y, count, out_);
}
