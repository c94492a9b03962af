/* Subgraphs and functions as bodies of nodes: graphs of their own, closed.  What a subgraph reads
 * from outside becomes a further input, but for constants, which are copied: they may steer shapes.
 */
#include <stdio.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "graph/build.h"
#include "onnx/import.h"
#include "op_list.h"
#include "graph/list.h"

/* ---- what is read from outside ---- */

static int place_of(const fac_onnx_outer *outer, const fac_value *v) {
    for (int k = 0; k < outer->n; k++)
        if (outer->v[k] == v) return k;
    return -1;
}

static bool add_outer(fac_graph *g, fac_onnx_outer *outer, fac_value *v) {
    if (outer->n == outer->room) {
        const int room = outer->room ? 2 * outer->room : 8;
        fac_value **more = fac_arena_alloc(&g->arena, (size_t)room, sizeof *more);
        if (!more) return false;
        if (outer->n) memcpy(more, outer->v, (size_t)outer->n * sizeof *more);
        *outer = (fac_onnx_outer){ more, outer->n, room };
    }
    outer->v[outer->n++] = v;
    return true;
}

/* Its own name if that is free inside. */
static fac_value *put_outer(fac_graph *g, const fac_value *v) {
    char name[32];
    size_t k = g->ninputs;
    const bool own = v->name && !fac_table_get(&g->names, v->name);
    do snprintf(name, sizeof name, "outer.%zu", k++);
    while (fac_table_get(&g->names, name));
    fac_value *in = fac_input(g, own ? v->name : name, v->type.dtype, v->type.dims);
    if (v->known) fac_knows(in, v->known);
    if (in && in->leaf == FAC_INPUT) in->guess = v->guess;
    return in;
}

fac_status fac_import_outer(fac_body *b, const char *name, fac_value **out, fac_error *err) {
    fac_value *v;
    FAC_TRY(fac_body_value(b->around, name, NULL, 0, &v, err));
    if (v && !b->reads) return *out = v, FAC_OK;
    if (!v)
        return fac_raise(err, FAC_E_UNSUPPORTED, "a subgraph reads \"%s\", which is absent", name);
    if (fac_is_list(v))
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "a subgraph that data decides about reads the sequence \"%s\"", name);
    const int place = place_of(b->reads, v);
    fac_value *inside;
    if (v->leaf == FAC_CONST && v->tensor)
        inside = fac_const(b->g, v->tensor);
    else if (place >= 0)
        inside = b->g->inputs[b->g->ninputs - (size_t)b->reads->n + (size_t)place];
    else if (!add_outer(b->around->g, b->reads, v))
        return fac_raise_memory(err, "a subgraph");
    else
        inside = put_outer(b->g, v);
    FAC_TRY(fac_graph_check(b->g, err));
    FAC_TRY(fac_body_define(
        b, name, (fac_definition){ .maker = FAC_MADE_OUTSIDE, .ready = true, .value = inside },
        err));
    *out = inside;
    return FAC_OK;
}

void fac_onnx_body_complete(fac_graph *body, int formal, const fac_onnx_outer *outer) {
    for (int k = (int)body->ninputs - formal; k < outer->n && !body->error.status; k++)
        put_outer(body, outer->v[k]);
}

/* ---- outputs of closed graphs ---- */

/* An output that is a copy of something is that: how ONNX says that a value is handed through. */
static fac_status put_output(fac_graph *g, const char *name, fac_value *v, fac_error *err) {
    while (v && v->node && FAC_IS(v->node, identity)) v = v->node->in[0];
    if (!v) return fac_raise(err, FAC_E_UNSUPPORTED, "output \"%s\" of a subgraph is absent", name);
    if (fac_is_list(v))
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "output \"%s\" of a subgraph that data decides about is a sequence", name);
    fac_output(g, name, v);
    return fac_graph_check(g, err);
}

/* Without what nothing reads; names and notes of the inside are the inside's. */
static fac_status finish(fac_graph *g, fac_error *err) {
    fac_graph_sweep(g);
    return fac_graph_check(g, err);
}

/* ---- subgraphs ---- */

static const fac_proto_graph *graph_of(const fac_onnx_node *n, const char *attr) {
    const fac_import_node *self = n->self;
    for (size_t k = 0; k < self->proto->attrs.n; k++) {
        const fac_proto_attr *a = &self->proto->attrs.at[k];
        if (strcmp(a->name, attr)) continue;
        self->asked[k] = true;
        if (a->graph && !*a->ref) return a->graph;
    }
    fac_fail_graph(self->body->g, FAC_E_FORMAT, "%s has no graph in attribute %s", n->type, attr);
    return NULL;
}

int fac_onnx_body_inputs(const fac_onnx_node *n, const char *attr) {
    const fac_proto_graph *g = graph_of(n, attr);
    if (g && g->in.n <= FAC_MANY) return (int)g->in.n;
    if (g)
        fac_fail_graph(((const fac_import_node *)n->self)->body->g, FAC_E_FORMAT,
                       "a subgraph with %zu inputs", g->in.n);
    return -1;
}

int fac_onnx_body_outputs(const fac_onnx_node *n, const char *attr) {
    const fac_proto_graph *g = graph_of(n, attr);
    return g && g->out.n <= FAC_MANY ? (int)g->out.n : -1;
}

/* Inputs that are values of the graph around. */
static fac_status define_values(fac_body *b, const fac_proto_graph *from, int nin,
                                fac_value *const in[], fac_error *err) {
    if (from->in.n != (size_t)nin)
        return fac_raise(err, FAC_E_FORMAT, "a subgraph with %zu inputs; it must have %d",
                         from->in.n, nin);
    for (int k = 0; k < nin; k++) {
        const fac_definition d = { .maker = FAC_MADE_OUTSIDE, .ready = true, .value = in[k] };
        if (!*from->in.at[k].name)
            return fac_raise(err, FAC_E_FORMAT, "input %d of a subgraph has no name", k);
        FAC_TRY(fac_body_define(b, from->in.at[k].name, d, err));
    }
    return FAC_OK;
}

static fac_status define_inputs(fac_body *b, const fac_proto_graph *from, int nin,
                                const fac_type *in, fac_error *err) {
    if (from->in.n != (size_t)nin)
        return fac_raise(err, FAC_E_FORMAT, "a subgraph with %zu inputs; it must have %d",
                         from->in.n, nin);
    for (int k = 0; k < nin; k++) {
        const fac_proto_value *v = &from->in.at[k];
        const fac_dtype declared = fac_proto_dtype(v->type.dense.type);
        if (!*v->name) return fac_raise(err, FAC_E_FORMAT, "input %d of a subgraph has no name", k);
        if (v->type.dense.type && declared != in[k].dtype)
            return fac_raise(err, FAC_E_DTYPE,
                             "input \"%s\" of a subgraph is %s, what feeds it is %s", v->name,
                             fac_dtype_get(declared)->name, fac_dtype_get(in[k].dtype)->name);
        FAC_TRY(fac_body_define(b, v->name,
                                (fac_definition){ .maker = FAC_MADE_OUTSIDE, .ready = true }, err));
        fac_definition *d = fac_table_get(&b->names, v->name);
        d->value = fac_input(b->g, v->name, in[k].dtype, in[k].dims);
        FAC_TRY(fac_graph_check(b->g, err));
    }
    return FAC_OK;
}

static fac_status define_tensors(fac_body *b, const fac_proto_graph *from, fac_error *err) {
    if (b->depth > FAC_BODY_DEPTH)
        return fac_raise(err, FAC_E_UNSUPPORTED, "subgraphs are nested more than %d deep",
                         FAC_BODY_DEPTH);
    if (!from->out.n) return fac_raise(err, FAC_E_FORMAT, "a subgraph has no outputs");
    for (size_t k = 0; k < from->tensors.n; k++) {
        const fac_proto_tensor *t = &from->tensors.at[k];
        if (!*t->name)
            return fac_raise(err, FAC_E_FORMAT, "initializer %zu of a subgraph has no name", k);
        FAC_TRY(fac_body_define(b, t->name,
                                (fac_definition){ .maker = FAC_MADE_BY_TENSOR, .tensor = t }, err));
    }
    return FAC_OK;
}

static fac_status build(fac_body *b, const fac_proto_graph *from, int nin, const fac_type *in,
                        fac_error *err) {
    FAC_TRY(define_inputs(b, from, nin, in, err));
    FAC_TRY(define_tensors(b, from, err));
    fac_onnx_body_complete(b->g, nin, b->reads);
    FAC_TRY(fac_graph_check(b->g, err)); /* else inputs are missing that are counted on */
    FAC_TRY(fac_body_build(b, err));
    for (size_t k = 0; k < from->out.n; k++) {
        fac_value *v;
        FAC_TRY(fac_body_value(b, from->out.at[k].name, NULL, 0, &v, err));
        FAC_TRY(put_output(b->g, from->out.at[k].name, v, err));
    }
    return finish(b->g, err);
}

/* A graph with the symbols of another one, so that types may be taken over. */
static fac_graph *inner_graph(const fac_graph *around) {
    fac_graph *g = fac_graph_new();
    if (g) fac_symbols_copy(g, around);
    return g;
}

fac_graph *fac_onnx_body(const fac_onnx_node *n, const char *attr, int nin, const fac_type *in,
                         fac_onnx_outer *outer) {
    fac_body *around = ((const fac_import_node *)n->self)->body;
    const fac_proto_graph *from = graph_of(n, attr);
    if (!from || around->g->error.status) return NULL;
    fac_body b = {
        around->im,    &from->nodes,      around->opsets, around->function,       around->call,
        around->outer, around->depth + 1, { 0 },          inner_graph(around->g), around,
        outer
    };
    fac_error err = { 0 };
    fac_status status = b.g ? build(&b, from, nin, in, &err) : fac_raise_memory(&err, "a subgraph");
    fac_body_close(&b);
    if (!status) return b.g;
    fac_fail_graph(around->g, status, "%s: %s", attr, err.text);
    fac_graph_free(b.g);
    return NULL;
}

typedef struct place {
    int nin, nout;
    fac_value *const *in, **out;
} place;

static fac_status build_here(fac_body *b, const fac_proto_graph *from, const place *at,
                             fac_error *err) {
    if (from->out.n < (size_t)at->nout)
        return fac_raise(err, FAC_E_FORMAT, "a subgraph with %zu outputs for %d of its node",
                         from->out.n, at->nout);
    FAC_TRY(define_values(b, from, at->nin, at->in, err));
    FAC_TRY(define_tensors(b, from, err));
    FAC_TRY(fac_body_build(b, err));
    for (int k = 0; k < at->nout; k++)
        FAC_TRY(fac_body_value(b, from->out.at[k].name, NULL, 0, &at->out[k], err));
    return FAC_OK;
}

void fac_onnx_body_with(const fac_onnx_node *n, const char *attr, int nin, fac_value *const in[],
                        int nout, fac_value *out[]) {
    fac_body *around = ((const fac_import_node *)n->self)->body;
    const fac_proto_graph *from = graph_of(n, attr);
    if (!from || around->g->error.status) return;
    fac_body b = { around->im,    &from->nodes,      around->opsets, around->function, around->call,
                   around->outer, around->depth + 1, { 0 },          around->g,        around,
                   NULL };
    fac_error err = { 0 };
    fac_status status = build_here(&b, from, &(place){ nin, nout, in, out }, &err);
    fac_body_close(&b);
    if (status) fac_fail_graph(around->g, status, "%s: %s", attr, err.text);
}

void fac_onnx_body_here(const fac_onnx_node *n, const char *attr, int nout, fac_value *out[]) {
    fac_onnx_body_with(n, attr, 0, NULL, nout, out);
}

/* ---- functions ---- */

bool fac_import_keeps(const fac_body *b, const fac_proto_function *f) {
    const fac_onnx_functions how = b->im->opts ? b->im->opts->functions : FAC_ONNX_OURS;
    return how == FAC_ONNX_KEEP || (how == FAC_ONNX_OURS && !strcmp(f->domain, FAC_ONNX_FUNCTIONS));
}

static fac_status build_function(fac_body *b, fac_value *const in[], size_t nin, fac_error *err) {
    const fac_proto_function *f = b->function;
    fac_arena *arena = &b->im->arena;
    fac_value **inside = fac_arena_alloc(arena, nin, sizeof *inside),
              **made = fac_arena_alloc(arena, f->out.n, sizeof *made);
    if (!inside || !made) return fac_raise_memory(err, "a subgraph");
    for (size_t k = 0; k < nin; k++) {
        char name[32];
        if (!in[k]) continue;
        const bool own = k < f->in.n && *f->in.at[k] && !fac_table_get(&b->g->names, f->in.at[k]);
        snprintf(name, sizeof name, "in.%zu", k);
        inside[k] = fac_input(b->g, own ? f->in.at[k] : name, in[k]->type.dtype, in[k]->type.dims);
        if (in[k]->known) fac_knows(inside[k], in[k]->known);
        if (inside[k] && inside[k]->leaf == FAC_INPUT) inside[k]->guess = in[k]->guess;
    }
    FAC_TRY(fac_graph_check(b->g, err));
    if (!f->out.n) return fac_raise(err, FAC_E_FORMAT, "function \"%s\" has no outputs", f->name);
    FAC_TRY(fac_body_function(b, inside, nin, made, f->out.n, err));
    for (size_t k = 0; k < f->out.n; k++) FAC_TRY(put_output(b->g, f->out.at[k], made[k], err));
    return finish(b->g, err);
}

fac_status fac_import_call(fac_body *outer, const fac_proto_function *f, const fac_proto_node *n,
                           fac_value *const in[], fac_value *out[], fac_error *err) {
    fac_body b = { outer->im,
                   &f->nodes,
                   &f->opsets,
                   f,
                   n,
                   outer,
                   outer->depth + 1,
                   { 0 },
                   inner_graph(outer->g),
                   NULL,
                   NULL };
    fac_arena *arena = &outer->im->arena;
    fac_value **given = fac_arena_alloc(arena, n->in.n, sizeof *given),
              **made = fac_arena_alloc(arena, f->out.n, sizeof *made);
    fac_status status = b.g && given && made ? build_function(&b, in, n->in.n, err)
                                             : fac_raise_memory(err, "a subgraph");
    if (!status && n->out.n > f->out.n)
        status = fac_raise(err, FAC_E_FORMAT, "%zu outputs of function \"%s\", which has %zu",
                           n->out.n, f->name, f->out.n);
    if (status) {
        fac_graph_free(b.g);
        return status;
    }
    int count = 0;
    for (size_t k = 0; k < n->in.n; k++)
        if (in[k]) given[count++] = in[k];
    fac_call(outer->g, f->name, b.g, count, given, made);
    for (size_t k = 0; k < n->out.n; k++) out[k] = made[k];
    return fac_graph_check(outer->g, err);
}
