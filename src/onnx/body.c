/* The nodes of a graph, or of one call of a function: who defines which name, in which order they
 * are built. */
#include <string.h>
#include "base/error.h"
#include "onnx/module.h"
#include "onnx/opaque.h"

/* ---- names ---- */

fac_status fac_body_define(fac_body *b, const char *name, fac_definition d, fac_error *err) {
    if (fac_table_get(&b->names, name))
        return fac_raise(err, FAC_E_FORMAT, "value \"%s\" is defined twice", name);
    fac_definition *copy = fac_arena_alloc(&b->im->arena, 1, sizeof *copy);
    if (!copy) return fac_raise_memory(err, "the nodes");
    *copy = d;
    return fac_table_put(&b->names, name, copy) ? FAC_OK : fac_raise_memory(err, "the nodes");
}

void fac_body_close(fac_body *b) { fac_table_free(&b->names); }

static fac_status define_outputs(fac_body *b, fac_error *err) {
    for (size_t k = 0; k < b->nodes->n; k++) {
        const fac_proto_names *out = &b->nodes->at[k].out;
        for (size_t i = 0; i < out->n; i++) {
            fac_definition d = { .maker = FAC_MADE_BY_NODE, .node = k, .output = (int)i };
            if (*out->at[i]) FAC_TRY(fac_body_define(b, out->at[i], d, err));
        }
    }
    return FAC_OK;
}

/* ---- initializers ---- */

/* Floats that ONNX takes as settings, although they come as an input: constants, where other floats
 * are parameters. */
static bool is_setting(const fac_proto_node *user, size_t input) {
    static const struct {
        const char *type;
        size_t input;
    } settings[] = { { "Resize", 1 },
                     { "Resize", 2 },
                     { "Upsample", 1 },
                     { "NonMaxSuppression", 3 },
                     { "NonMaxSuppression", 4 },
                     { "Clip", 1 },
                     { "Clip", 2 },
                     { "Pad", 2 },
                     { "Dropout", 1 },
                     { "ConstantOfShape", 0 },
                     { "OneHot", 2 } };
    if (!user || *fac_import_domain(user->domain)) return false;
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++)
        if (settings[k].input == input && !strcmp(settings[k].type, user->type)) return true;
    return false;
}

/* A number that torch's exporter computed itself, which it names val_N; parameters have the model's
 * names. */
static bool is_folded(const char *name, const fac_type *t) {
    return !strncmp(name, "val_", 4) && fac_dims_count(&t->dims) == 1;
}

static fac_status make_leaf(fac_body *b, fac_definition *d, const fac_proto_node *user,
                            size_t input, fac_error *err) {
    fac_import *im = b->im;
    fac_tensor *t;
    const char *name = d->tensor->name;
    fac_status status = fac_proto_to_tensor(&im->files, d->tensor, &t, err);
    if (status) return fac_raise_in(err, status, "initializer \"%s\"", name);
    fac_type type = fac_tensor_type(t);
    bool trained = !b->around && fac_dtype_get(type.dtype)->kind == 'f' && type.dims.n > 0 &&
                   !is_setting(user, input) && !is_folded(name, &type);
    d->value =
        trained ? fac_param(b->g, name, t) : fac_const(b->g, t); /* bodies are closed: constants */
    if (!trained) fac_value_name_set(d->value, name);
    d->ready = true;
    fac_tensor_free(t);
    return fac_graph_check(b->g, err);
}

fac_status fac_body_value(fac_body *b, const char *name, const fac_proto_node *user, size_t k,
                          fac_value **out, fac_error *err) {
    fac_definition *d = fac_table_get(&b->names, name);
    if (!d && b->around) return fac_import_outer(b, name, out, err);
    if (!d) return fac_raise(err, FAC_E_FORMAT, "value \"%s\" is not defined", name);
    if (!d->ready && d->maker == FAC_MADE_BY_TENSOR) FAC_TRY(make_leaf(b, d, user, k, err));
    if (!d->value && d->maker == FAC_MADE_BY_NODE) {
        const fac_proto_node *n = &b->nodes->at[d->node];
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "node \"%s\": output %d (\"%s\") of %s is not supported",
                         fac_import_label(n), d->output, name, n->type);
    }
    *out = d->value;
    return FAC_OK;
}

/* ---- order ---- */

enum { WAITING, OPEN, PLACED };

typedef struct order {
    uint8_t *state;                 /* of each node */
    size_t *stack, *input, *placed; /* nodes being followed, the next input of each; the result */
    size_t depth, n;
} order;

/* Sparse initializers are not read; nodes that ask for one cannot be built. */
static bool sparse_tensors(const fac_body *b) {
    return fac_proto_has(b->im->model.graph.has, FAC_PROTO_GRAPH_SPARSE);
}

/* Depth first, without recursion: before a node come those that make its inputs.  A sorted file
 * keeps its order. */
static fac_status place(fac_body *b, order *o, size_t first, fac_error *err) {
    o->stack[0] = first;
    o->input[0] = 0;
    o->state[first] = OPEN;
    for (o->depth = 1; o->depth;) {
        size_t k = o->stack[o->depth - 1];
        const fac_proto_node *n = &b->nodes->at[k];
        if (o->input[o->depth - 1] == n->reads.n) {
            o->state[k] = PLACED;
            o->placed[o->n++] = k;
            o->depth--;
            continue;
        }
        const char *name = n->reads.at[o->input[o->depth - 1]++];
        if (!*name) continue;
        const fac_definition *d = fac_table_get(&b->names, name);
        if (!d && b->around) continue; /* from outside, or not there: known when it is asked for */
        if (!d && fac_import_lenient(b->im) && sparse_tensors(b)) continue;
        if (!d)
            return fac_raise(err, FAC_E_FORMAT, "node \"%s\" (%s): its input \"%s\" is not defined",
                             fac_import_label(n), n->type, name);
        if (d->maker != FAC_MADE_BY_NODE || o->state[d->node] == PLACED) continue;
        if (o->state[d->node] == OPEN)
            return fac_raise(
                err, FAC_E_FORMAT,
                "node \"%s\" (%s) is part of a cycle: its input \"%s\" depends on its output",
                fac_import_label(n), n->type, name);
        o->state[d->node] = OPEN;
        o->stack[o->depth] = d->node;
        o->input[o->depth++] = 0;
    }
    return FAC_OK;
}

static fac_status sort(fac_body *b, order *o, fac_error *err) {
    fac_arena *arena = &b->im->arena;
    size_t n = b->nodes->n;
    o->state = fac_arena_alloc(arena, n, sizeof *o->state);
    o->stack = fac_arena_alloc(arena, n, sizeof *o->stack);
    o->input = fac_arena_alloc(arena, n, sizeof *o->input);
    o->placed = fac_arena_alloc(arena, n, sizeof *o->placed);
    if (!o->state || !o->stack || !o->input || !o->placed)
        return fac_raise_memory(err, "the nodes");
    for (size_t k = 0; k < n; k++)
        if (o->state[k] == WAITING) FAC_TRY(place(b, o, k, err));
    return FAC_OK;
}

/* ---- calls ---- */

static fac_status define_inputs(fac_body *b, const fac_proto_function *f, fac_value *const in[],
                                size_t nin, fac_error *err) {
    if (nin > f->in.n)
        return fac_raise(err, FAC_E_FORMAT, "%zu inputs for function \"%s\", which has %zu", nin,
                         f->name, f->in.n);
    for (size_t k = 0; k < f->in.n; k++) {
        fac_definition d = { .maker = FAC_MADE_OUTSIDE,
                             .ready = true,
                             .value = k < nin ? in[k] : NULL };
        if (*f->in.at[k]) FAC_TRY(fac_body_define(b, f->in.at[k], d, err));
    }
    return FAC_OK;
}

static fac_status take_outputs(fac_body *b, fac_value *out[], size_t nout, fac_error *err) {
    const fac_proto_function *f = b->function;
    if (nout > f->out.n)
        return fac_raise(err, FAC_E_FORMAT, "%zu outputs of function \"%s\", which has %zu", nout,
                         f->name, f->out.n);
    for (size_t k = 0; k < nout; k++)
        if (k >= b->call->out.n || *b->call->out.at[k])
            FAC_TRY(fac_body_value(b, f->out.at[k], NULL, 0, &out[k], err));
    return FAC_OK;
}

fac_status fac_body_function(fac_body *inner, fac_value *const in[], size_t nin, fac_value *out[],
                             size_t nout, fac_error *err) {
    if (inner->depth > FAC_FUNCTION_DEPTH)
        return fac_raise(err, FAC_E_UNSUPPORTED, "functions call each other more than %d deep",
                         FAC_FUNCTION_DEPTH);
    fac_status status = define_inputs(inner, inner->function, in, nin, err);
    if (!status) status = fac_body_build(inner, err);
    if (!status) status = take_outputs(inner, out, nout, err);
    fac_body_close(inner);
    return status;
}

/* A function is inlined, unless it is to stay a call: its nodes are built as if they stood where
 * the call is. */
static fac_status call(fac_body *outer, const fac_proto_function *f, const fac_proto_node *n,
                       fac_value *const in[], fac_value *out[], fac_error *err) {
    if (fac_import_keeps(outer, f)) return fac_import_call(outer, f, n, in, out, err);
    fac_body b = { outer->im,        &f->nodes, &f->opsets, f,    n,   outer,
                   outer->depth + 1, { 0 },     outer->g,   NULL, NULL };
    return fac_body_function(&b, in, n->in.n, out, n->out.n, err);
}

/* ---- building ---- */

/* "/layer1/conv1/Conv" is the scope "layer1.conv1.Conv". */
static const char *scope_of(fac_graph *g, const char *label) {
    while (*label == '/') label++;
    char *scope = fac_arena_text(&g->arena, label);
    for (char *c = scope; c && *c; c++)
        if (*c == '/') *c = '.';
    return scope;
}

/* The node that makes the first output carries the name of the file; what else was built for it
 * stands in a scope of that name. */
static void name_node(fac_graph *g, const fac_node *last, const fac_value *y,
                      const fac_proto_node *of, const char *name, const char *scope) {
    fac_node *n = y ? y->node : NULL;
    bool fresh = false;
    for (fac_node *k = last ? last->next : g->first; k; k = k->next) fresh |= k == n;
    if (!n || !fresh) return;
    n->name = name;
    n->scope = scope;
    n->origin = *of->name ? fac_arena_text(&g->arena, of->name) : NULL;
}

static fac_status build_op(fac_body *b, const fac_proto_node *n, fac_value *const in[],
                           fac_value *out[], fac_error *err) {
    if (!*fac_import_domain(n->domain) && !strcmp(n->type, "Constant"))
        return fac_import_constant(b, n, out, err);
    return fac_import_op(b, n, in, out, err);
}

static fac_status build_in_scope(fac_body *b, const fac_proto_node *n, fac_value *const in[],
                                 fac_value *out[], fac_error *err) {
    fac_graph *g = b->g;
    const char *outside = g->scope, *module = fac_import_module(b, n);
    const char *name = module ? module : scope_of(g, fac_import_label(n));
    const fac_node *last = g->last;
    if (!name) return fac_raise_memory(err, "the nodes");
    fac_graph_push(g, name);
    const fac_proto_function *f = fac_import_function(b->im, n);
    fac_status status = f ? call(b, f, n, in, out, err) : build_op(b, n, in, out, err);
    fac_graph_pop(g);
    if (status && b->im->spent && b->depth) return status; /* the name of each call says nothing */
    if (status && !g->error.status)
        return fac_raise_in(err, status, "%s", name); /* the graph's own errors have it */
    if (!status && (!f || fac_import_keeps(b, f)) && n->out.n)
        name_node(g, last, out[0], n, name, outside);
    return status;
}

/* For those who look, a node whose inputs are not known is like one that is not ours. */
static fac_status read_inputs(fac_body *b, const fac_proto_node *n, fac_value *in[],
                              fac_error *err) {
    for (size_t k = 0; k < n->in.n; k++) {
        if (!*n->in.at[k]) continue;
        FAC_TRY(fac_body_value(b, n->in.at[k], n, k, &in[k], err));
        if (fac_value_opaque(in[k]))
            return fac_raise(err, FAC_E_UNSUPPORTED, "value \"%s\" has no type", n->in.at[k]);
    }
    return FAC_OK;
}

static fac_status build_opaque(fac_body *b, const fac_proto_node *n, fac_value *out[],
                               fac_error *err) {
    fac_graph *g = b->g;
    const fac_node *last = g->last;
    const char *module = fac_import_module(b, n),
               *name = module ? module : scope_of(g, fac_import_label(n));
    if (!name) return fac_raise_memory(err, "the nodes");
    FAC_TRY(fac_import_opaque(b, n, out, err));
    if (n->out.n) name_node(g, last, out[0], n, name, g->scope);
    return FAC_OK;
}

static fac_status build_node(fac_body *b, const fac_proto_node *n, fac_error *err) {
    fac_import *im = b->im;
    /* load() may look at more than the file names: what is not there is NULL */
    fac_value **in = fac_arena_alloc(&im->arena, n->in.n + FAC_ONNX_ROOM, sizeof *in);
    fac_value **out = fac_arena_alloc(&im->arena, n->out.n + FAC_ONNX_ROOM, sizeof *out);
    if (!in || !out) return fac_raise_memory(err, "the nodes");
    if (b->depth && !im->budget) {
        im->spent = true;
        return fac_raise(err, FAC_E_UNSUPPORTED, "functions that expand to too many nodes");
    }
    im->budget -= b->depth > 0;
    fac_status status = read_inputs(b, n, in, err);
    if (!status) status = build_in_scope(b, n, in, out, err);
    if (status && fac_import_forgives(b, status)) status = build_opaque(b, n, out, err);
    FAC_TRY(status);
    for (size_t k = 0; k < n->out.n; k++) {
        if (!*n->out.at[k]) continue;
        fac_definition *d = fac_table_get(&b->names, n->out.at[k]);
        d->ready = true;
        d->value = out[k];
        if (out[k] && !b->function) fac_value_name_set(out[k], n->out.at[k]);
    }
    return fac_graph_check(b->g, err);
}

fac_status fac_body_build(fac_body *b, fac_error *err) {
    order o = { 0 };
    FAC_TRY(define_outputs(b, err));
    FAC_TRY(sort(b, &o, err));
    for (size_t k = 0; k < o.n; k++) FAC_TRY(build_node(b, &b->nodes->at[o.placed[k]], err));
    return FAC_OK;
}
