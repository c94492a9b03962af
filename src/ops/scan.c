/* ONNX's Scan (since opset 9): a loop over slices of its inputs.  Its expansion is a loop whose
 * body gathers the slices. */
#include <stdio.h>
#include <string.h>
#include "graph/build.h"
#include "graph/onnx_flow.h"
#include "graph/onnx_write.h"
#include "ops/cost.h"
#include "ops/flow.h"
#include "ops/loop.h"
#include "ops/scan.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* For every slice of in[states..states+slices) along in_axes (NULL: 0), all of one length:
 * states.., row.. = body(states.., slices.., others..), where the first `states` of in[] are what
 * iterations hand on and what stands after the slices is read by all.  out[] receives the last
 * states, and the rows of all iterations stacked along a new axis of out_axes (NULL: 0).  in_back,
 * out_back (NULL: none): bit k says that slices, or rows, k go from the end to the beginning.  g
 * takes over the body. */
typedef struct fac_scan_opts {
    int states, slices;
    fac_dims in_axes, out_axes;
    unsigned in_back, out_back;
} fac_scan_opts;
void fac_scan(fac_graph *g, fac_graph *body, const fac_scan_opts *opts, int n,
              fac_value *const in[], fac_value *out[]);
#endif

typedef struct attrs {
    int64_t states, slices;
    fac_dims in_axes, out_axes;
    int64_t in_back, out_back;
} attrs;
static const fac_attr table[] = { { "states", FAC_A_INT, offsetof(attrs, states), 0, 0, 0, 1 << 20,
                                    NULL, "inputs handed from iteration to iteration" },
                                  { "slices", FAC_A_INT, offsetof(attrs, slices), 0, 0, 0, 1 << 20,
                                    NULL, "inputs after them that are cut into slices" },
                                  { "in_axes", FAC_A_DIMS, offsetof(attrs, in_axes), 0, 0, 0, 0,
                                    NULL, "along which; default 0" },
                                  { "out_axes", FAC_A_DIMS, offsetof(attrs, out_axes), 0, 0, 0, 0,
                                    NULL, "along which results are stacked; default 0" },
                                  { "in_back", FAC_A_INT, offsetof(attrs, in_back), 0, 0, 0, 255,
                                    NULL, "bit k: slices k come in reverse order" },
                                  { "out_back", FAC_A_INT, offsetof(attrs, out_back), 0, 0, 0, 255,
                                    NULL, "bit k: results k are stacked in reverse order" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, FAC_VARIADIC }, { 0 } };
static const fac_port out[] = { { "y", FAC_ANY, FAC_VARIADIC }, { 0 } };

static int axis_of(const fac_dims *axes, int k, int rank) {
    return k < axes->n ? fac_axis(axes->d[k], rank) : 0;
}

/* ---- types ---- */

static bool slice_type(fac_node *n, int k, fac_type *type, int64_t *length) {
    const attrs *a = n->attrs;
    const int axis = axis_of(&a->in_axes, k, type->dims.n);
    if (!type->dims.n || axis < 0)
        return fac_fail(n, FAC_E_SHAPE, "slices %d have no such axis", k);
    const int64_t size = type->dims.d[axis];
    if (*length >= 0 && size >= 0 && size != *length)
        return fac_fail(n, FAC_E_SHAPE, "%lld slices of one input, %lld of another",
                        (long long)*length, (long long)size);
    if (!k || *length < 0) *length = size;
    memmove(type->dims.d + axis, type->dims.d + axis + 1,
            (size_t)(type->dims.n - axis - 1) * sizeof *type->dims.d);
    type->dims.n--;
    return true;
}

static bool put_types(fac_node *n, fac_flow *f, int64_t length) {
    const attrs *a = n->attrs;
    if (!fac_node_outputs(n, (int)f->body->noutputs)) return false;
    for (int k = 0; k < n->nout; k++) {
        fac_type y = fac_flow_type(f, (size_t)k);
        const int row = k - (int)a->states;
        if (row < 0 && !fac_type_fits(&f->body->inputs[k]->type, &f->body->outputs[k].value->type))
            return fac_fail(n, FAC_E_SHAPE, "state %d has another type after an iteration", k);
        if (row >= 0) {
            const int axis = axis_of(&a->out_axes, row, y.dims.n + 1);
            if (axis < 0 || y.dims.n == FAC_DIMS)
                return fac_fail(n, FAC_E_SHAPE, "results %d have no such axis", row);
            memmove(y.dims.d + axis + 1, y.dims.d + axis,
                    (size_t)(y.dims.n - axis) * sizeof *y.dims.d);
            y.dims.d[axis] = length;
            y.dims.n++;
        }
        n->out[k]->type = y;
    }
    return true;
}

static bool infer(fac_node *n) {
    const attrs *a = n->attrs;
    fac_flow f = { 0 };
    int64_t length = -1;
    fac_flow_feed *feed = fac_arena_alloc(&n->graph->arena, (size_t)n->nin, sizeof *feed);
    if (!feed) return fac_fail(n, FAC_E_NOMEM, "no memory for the types of its body");
    if (a->slices < 1 || a->states + a->slices > n->nin || a->slices > FAC_DIMS)
        return fac_fail(n, FAC_E_ARGUMENT,
                        "%lld states and %lld inputs for slices (1 to %d), of %d inputs",
                        (long long)a->states, (long long)a->slices, FAC_DIMS, n->nin);
    if (!n->body[0] || n->body[0]->noutputs < (size_t)a->states ||
        n->body[0]->noutputs > (size_t)a->states + FAC_DIMS)
        return fac_fail(n, FAC_E_ARGUMENT,
                        "its body needs %lld states and at most %d further outputs",
                        (long long)a->states, FAC_DIMS);
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i]) return fac_fail(n, FAC_E_ARGUMENT, "input %d is missing", i);
        feed[i] = fac_flow_same(n->in[i]);
        if (i >= a->states + a->slices) continue;
        feed[i].known = NULL;
        if (i >= a->states && !slice_type(n, i - (int)a->states, &feed[i].type, &length))
            return false;
    }
    const bool ok = fac_flow_open(&f, n, 0, n->nin, feed) && put_types(n, &f, length);
    fac_flow_close(&f, ok);
    return ok;
}

/* ---- as a loop ---- */

/* The scan's body between gathers.  Inputs: iteration, condition, then those of the scan, whole. */
static fac_graph *loop_body(const fac_node *n) {
    const attrs *a = n->attrs;
    const int first = (int)a->states, end = first + (int)a->slices;
    fac_graph *g = fac_graph_new();
    if (!g || !fac_symbols_copy(g, n->graph)) return g;
    fac_value **x = fac_arena_alloc(&g->arena, (size_t)n->nin + n->body[0]->noutputs, sizeof *x),
              **y = x + n->nin;
    fac_value *i = fac_input(g, "i", FAC_I64, (fac_dims){ 0 }),
              *go = fac_input(g, "go", FAC_BOOL, (fac_dims){ 0 });
    if (!x) return fac_graph_raise(g, FAC_E_NOMEM, "no memory for a body"), g;
    for (int k = 0; k < n->nin && !g->error.status; k++) {
        char name[24];
        snprintf(name, sizeof name, "x%d", k);
        x[k] = fac_input(g, name, n->in[k]->type.dtype, n->in[k]->type.dims);
        if (k < first || k >= end) continue;
        const int axis = axis_of(&a->in_axes, k - first, x[k]->type.dims.n);
        fac_value *last = fac_sub(fac_dim_of(x[k], axis), fac_number(g, FAC_I64, 1));
        x[k] = fac_gather(x[k], a->in_back >> (k - first) & 1 ? fac_sub(last, i) : i, axis);
    }
    fac_node inside = *n; /* as if it stood in there, without a scope of its own */
    inside.graph = g;
    inside.name = inside.scope = NULL;
    fac_flow_inline(&inside, n->body[0], NULL, x, y);
    fac_output(g, "go.next", go);
    for (size_t k = 0; k < n->body[0]->noutputs && !g->error.status; k++) {
        char name[24];
        snprintf(name, sizeof name, "y%zu", k);
        fac_output(g, name, y[k]);
    }
    return g;
}

/* Rows of a loop lie along axis 0, in the order of the iterations. */
static fac_value *place_rows(const attrs *a, int row, fac_value *y) {
    const int rank = y->type.dims.n, axis = axis_of(&a->out_axes, row, rank);
    if (a->out_back >> row & 1) y = fac_slice(y, 0, -1, INT64_MIN, -1);
    if (axis <= 0) return y;
    fac_dims order = { .n = rank };
    for (int k = 0, from = 1; k < rank; k++) order.d[k] = k == axis ? 0 : from++;
    return fac_transpose(y, order);
}

static void expand(const fac_node *n, fac_value *y[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[a->states];
    fac_graph *body = loop_body(n);
    if (!body) {
        fac_graph_raise(n->graph, FAC_E_NOMEM, "scan: no memory for its body");
        return;
    }
    const char *scope = n->graph->scope;
    fac_iterate(n->graph, body, fac_dim_of(x, axis_of(&a->in_axes, 0, x->type.dims.n)), NULL,
                (int)a->states, n->nin, n->in, y);
    n->graph->scope = scope;
    if (y[0] && y[0]->node) { /* iterations keep the path of the node */
        y[0]->node->name = n->name;
        y[0]->node->scope = n->scope;
    }
    for (int k = (int)a->states; k < n->nout && !n->graph->error.status; k++)
        y[k] = place_rows(a, k - (int)a->states, y[k]);
}

static void cost(const fac_node *n, fac_cost *c) {
    const attrs *a = n->attrs;
    const fac_dims *d = &n->in[a->states]->type.dims;
    const int64_t length = d->d[axis_of(&a->in_axes, 0, d->n)];
    *c = (fac_cost){ 0 };
    fac_cost_bytes(n, c);
    fac_flow_cost(n->body[0], length < 0 ? 1 : (double)length, c);
}

/* ---- ONNX ---- */

int fac_scan_slices(const fac_onnx_node *n, int formal) {
    const int64_t slices = fac_onnx_int(n, "num_scan_inputs", 0);
    return slices > 0 && slices <= formal ? (int)slices : 0;
}

bool fac_scan_directions(const fac_onnx_node *n, fac_graph *g, const char *attr, int64_t *bits) {
    const fac_dims d = fac_onnx_ints(n, attr);
    for (int k = 0; k < d.n; k++) {
        if (d.d[k] != 0 && d.d[k] != 1) {
            fac_fail_graph(g, FAC_E_FORMAT, "%s of Scan must be 0 or 1", attr);
            return false;
        }
        *bits |= d.d[k] << k;
    }
    return !g->error.status;
}

void fac_scan_load(const fac_onnx_node *n, fac_graph *g, const fac_scan_opts *a, int nin,
                   fac_value *const ins[], fac_value *y[]) {
    const int formal = a->states + a->slices;
    fac_type *types = fac_arena_alloc(&g->arena, (size_t)formal + 1, sizeof *types);
    fac_onnx_outer outer = { 0 };
    bool ok = types && formal == nin && a->slices >= 1 && a->states >= 0;
    for (int i = 0; i < formal && ok; i++) {
        if (!(ok = ins[i] != NULL)) break;
        types[i] = ins[i]->type;
        fac_dims *d = &types[i].dims;
        const int axis = i < a->states ? d->n : axis_of(&a->in_axes, i - a->states, d->n);
        if (i < a->states) continue;
        if (!(ok = d->n > 0 && axis >= 0)) break;
        memmove(d->d + axis, d->d + axis + 1, (size_t)(d->n - axis - 1) * sizeof *d->d);
        d->n--;
    }
    if (!ok) {
        fac_fail_graph(g, FAC_E_FORMAT,
                       "Scan has %d inputs, %d of them for slices; its body has %d", nin, a->slices,
                       formal);
        return;
    }
    fac_graph *body = fac_onnx_body(n, "body", formal, types, &outer);
    fac_value **all =
        body ? fac_arena_alloc(&g->arena, (size_t)(formal + outer.n) + body->noutputs, sizeof *all)
             : NULL;
    if (!all || body->noutputs < (size_t)n->nout) {
        if (body)
            fac_fail_graph(g, all ? FAC_E_FORMAT : FAC_E_NOMEM,
                           "%d outputs of Scan, whose body has %zu", n->nout, body->noutputs);
        fac_graph_free(body);
        return;
    }
    for (int i = 0; i < formal; i++) all[i] = ins[i];
    for (int i = 0; i < outer.n; i++) all[formal + i] = outer.v[i];
    fac_scan(g, body, a, formal + outer.n, all, all + formal + outer.n);
    for (int k = 0; k < n->nout; k++) y[k] = all[formal + outer.n + k];
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[], fac_value *y[]) {
    const int formal = fac_onnx_body_inputs(n, "body");
    attrs a = { .slices = fac_scan_slices(n, formal) };
    a.states = formal - a.slices;
    a.in_axes = fac_onnx_ints(n, "scan_input_axes");
    a.out_axes = fac_onnx_ints(n, "scan_output_axes");
    if (formal < 0 || !fac_scan_directions(n, g, "scan_input_directions", &a.in_back)) return;
    if (!fac_scan_directions(n, g, "scan_output_directions", &a.out_back)) return;
    const fac_scan_opts o = { (int)a.states, (int)a.slices,       a.in_axes,
                              a.out_axes,    (unsigned)a.in_back, (unsigned)a.out_back };
    fac_scan_load(n, g, &o, n->nin, ins, y);
}

static void put_bits(const fac_onnx_writer *w, const char *attr, int64_t bits, int n) {
    int64_t list[FAC_DIMS];
    for (int k = 0; k < n; k++) list[k] = bits >> k & 1;
    if (bits) fac_onnx_put_ints(w, attr, n, list);
}

static void put_axes(const fac_onnx_writer *w, const char *attr, const fac_dims *axes, int n) {
    fac_dims all = *axes;
    if (!axes->n) return;
    while (all.n < n) all.d[all.n++] = 0;
    fac_onnx_put_ints(w, attr, n, all.d);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const int formal = (int)(a->states + a->slices), rows = n->nout - (int)a->states;
    const char **names = fac_arena_alloc(&n->graph->arena, (size_t)formal, sizeof *names),
               *first = fac_onnx_name(w, n->out[0]);
    if (!names) return false;
    for (int i = 0; i < formal; i++) names[i] = fac_onnx_name(w, n->in[i]);
    fac_onnx_put(w, "Scan", formal, names, first ? first : "");
    for (int k = 1; k < n->nout; k++) fac_onnx_put_out(w, fac_onnx_name(w, n->out[k]));
    fac_onnx_put_int(w, "num_scan_inputs", a->slices);
    put_axes(w, "scan_input_axes", &a->in_axes, (int)a->slices);
    put_axes(w, "scan_output_axes", &a->out_axes, rows);
    put_bits(w, "scan_input_directions", a->in_back, (int)a->slices);
    put_bits(w, "scan_output_directions", a->out_back, rows);
    fac_onnx_put_body(w, "body", n, 0, formal);
    return true;
}

static const fac_onnx_attr names_of[] = { { "body", NULL },
                                          { "num_scan_inputs", NULL },
                                          { "scan_input_axes", NULL },
                                          { "scan_output_axes", NULL },
                                          { "scan_input_directions", NULL },
                                          { "scan_output_directions", NULL },
                                          { 0 } };
static const fac_onnx onnx[] = { { "", "Scan", 9, 0, names_of, load, 0 }, { 0 } };
static const fac_case cases[] = {
    { "scan(f32[2], f32[3,2]) states=1 slices=1 {(f32[2], f32[2]) t0 = add(x0, x1); t1 = tanh(t0); "
      "t0, t1}",
      -2, 2, 1e-6 },
    { "scan(f64[2], f64[2,3], f64[2]) states=1 slices=1 in_axes=1 out_axes=1 in_back=1 out_back=1 "
      "{(f64[2], f64[2], f64[2]) t0 = mul(x0, x1); t1 = add(t0, x2); t1, t0}",
      -2, 2, 1e-6 },
    { 0 }
};

const fac_op fac_op_scan = {
    .name = "scan",
    .doc = "its body for every slice of inputs",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_BODIES | FAC_OP_FLOW,
    .infer = infer,
    .expand = expand,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

void fac_scan(fac_graph *g, fac_graph *body, const fac_scan_opts *opts, int n,
              fac_value *const in_[], fac_value *out_[]) {
    const int count = body ? (int)body->noutputs : 0;
    const attrs a = { opts->states,   opts->slices,  opts->in_axes,
                      opts->out_axes, opts->in_back, opts->out_back };
    fac_flow_outputs(fac_emit_body(g, &fac_op_scan, &a, n, n, in_, body, NULL), count, out_);
}
