/* Bodies of nodes on their way out: a subgraph in an attribute, or a function that calls share.
 * Both are recorded as the main graph is, with the exporter's place in the graph around them put
 * aside. */
#include <stdio.h>
#include <string.h>
#include "base/memory.h"
#include "graph/onnx_write.h"
#include "onnx/export.h"

/* ---- what a function says ---- */

static fac_hash value_hash(fac_hash h, const fac_value *v, const uint32_t *place) {
    if (!v) return fac_hash_int(h, 0);
    return v->leaf == FAC_CONST ? fac_const_hash(h, v) : fac_hash_int(h, place[v->id]);
}

static fac_hash node_meaning(fac_hash h, const fac_node *n) {
    fac_node plain = *n;
    plain.body[0] = plain.body[1] = NULL;
    h = fac_node_hash(h, &plain);
    for (int k = 0; k < 2; k++) {
        h = fac_hash_int(h, n->body[k] != NULL);
        if (n->body[k]) h = fac_hash_join(h, fac_export_meaning(n->body[k]));
    }
    return h;
}

/* As fac_graph_hash, but for types and what is known of inputs: a function of ONNX has none.
 * Without memory no two are equal. */
fac_hash fac_export_meaning(const fac_graph *g) {
    uint32_t *place = fac_alloc((size_t)g->ids + 1, sizeof *place), next = 1;
    fac_hash h = fac_hash_start(place ? 5 : 6);
    if (!place) return fac_hash_int(h, (uint64_t)(uintptr_t)g);
    h = fac_hash_int(h, (uint64_t)g->ninputs << 32 | g->noutputs);
    for (size_t i = 0; i < g->ninputs; i++) place[g->inputs[i]->id] = next++;
    for (const fac_node *n = g->first; n; n = n->next) {
        h = node_meaning(h, n);
        for (int i = 0; i < n->nin; i++) h = value_hash(h, n->in[i], place);
        for (int k = 0; k < n->nout; k++) place[n->out[k]->id] = next++;
    }
    for (size_t i = 0; i < g->noutputs; i++) h = value_hash(h, g->outputs[i].value, place);
    fac_release(place);
    return h;
}

/* ---- recording ---- */

/* The place in the graph around comes back; what was recorded meanwhile is the body's. */
static void leave(fac_export *ex, const fac_export *outside, bool function) {
    fac_table_free(&ex->constants);
    ex->constants = outside->constants;
    if (function) {
        fac_table_free(&ex->values);
        fac_table_free(&ex->labels);
        fac_table_free(&ex->counters);
        ex->values = outside->values;
        ex->labels = outside->labels;
        ex->counters = outside->counters;
    }
    ex->g = outside->g;
    ex->node = outside->node;
    ex->at = outside->at;
    ex->name_of = outside->name_of;
    ex->nodes = outside->nodes;
    ex->last_node = outside->last_node;
    ex->tensors = outside->tensors;
    ex->last_tensor = outside->last_tensor;
}

static void enter(fac_export *ex, const fac_graph *body, bool function) {
    ex->g = (fac_graph *)(uintptr_t)body;
    ex->constants = (fac_table){ 0 };
    if (function) ex->values = ex->labels = ex->counters = (fac_table){ 0 };
    ex->nodes = NULL;
    ex->last_node = &ex->nodes;
    ex->tensors = NULL;
    ex->last_tensor = &ex->tensors;
    ex->name_of = fac_export_get(ex, body->ids, sizeof *ex->name_of);
}

/* Results that a node of the body makes have their output's name from the start, the first one if
 * there are several. */
static void claim_outputs(fac_export *ex, fac_record_graph *r) {
    for (size_t k = 0; k < r->g->noutputs; k++) {
        const fac_value *v = r->g->outputs[k].value;
        if (!v->node || ex->name_of[v->id]) continue;
        r->out[k] = ex->name_of[v->id] = fac_export_fresh(ex, &ex->values, r->g->outputs[k].name);
    }
}

/* What an iteration hands through, or gives twice, is a copy: outputs of subgraphs are made inside
 * them. */
static void copy_outputs(fac_export *ex, fac_record_graph *r) {
    const fac_onnx_writer w = { ex->opset, ex };
    fac_node copy = { .name = "output", .graph = ex->g, .out = &(fac_value *){ NULL } };
    ex->node = &copy;
    for (size_t k = 0; k < r->g->noutputs; k++) {
        if (r->out[k]) continue;
        const char *name = fac_onnx_name(&w, r->g->outputs[k].value);
        r->out[k] = fac_export_fresh(ex, &ex->values, r->g->outputs[k].name);
        fac_onnx_put(&w, "Identity", 1, &name, r->out[k]);
    }
    ex->node = NULL;
}

static bool record_inside(fac_export *ex, fac_record_graph *r, const char *const *outer) {
    const fac_graph *g = r->g;
    r->in = fac_export_get(ex, (size_t)r->nin, sizeof *r->in);
    r->out = fac_export_get(ex, g->noutputs, sizeof *r->out);
    if (ex->failed) return false;
    for (int k = 0; k < (int)g->ninputs; k++) {
        const char *name =
            k < r->nin ? fac_export_fresh(ex, &ex->values, g->inputs[k]->name) : outer[k];
        ex->name_of[g->inputs[k]->id] = name;
        if (k < r->nin) r->in[k] = name;
    }
    claim_outputs(ex, r);
    bool said = true;
    for (const fac_node *n = g->first; n && said; n = n->next) said = !fac_export_node(ex, n, NULL);
    if (said) copy_outputs(ex, r);
    r->nodes = ex->nodes;
    r->tensors = ex->tensors;
    return said;
}

/* outer[k]: the name of input k outside, for those after the first `formal`. */
static fac_record_graph *record(fac_export *ex, const char *name, const fac_graph *body, int formal,
                                const char *const *outer, bool function) {
    fac_record_graph *r = fac_export_get(ex, 1, sizeof *r);
    if (!r) return NULL;
    *r = (fac_record_graph){ .g = body, .name = name, .nin = formal };
    const fac_export outside = *ex;
    enter(ex, body, function);
    const bool said = record_inside(ex, r, outer);
    leave(ex, &outside, function);
    ex->impossible = outside.impossible || !said;
    return r;
}

void fac_onnx_put_body(const fac_onnx_writer *w, const char *attr, const fac_node *n, int k,
                       int formal) {
    fac_export *ex = fac_export_of(w);
    const char **outer =
        ex->dry || !ex->at ? NULL : fac_export_get(ex, (size_t)n->nin, sizeof *outer);
    fac_record_attr *a = outer ? fac_export_get(ex, 1, sizeof *a) : NULL;
    if (!a) return;
    fac_record_node *at = ex->at;
    for (int i = formal; i < n->nin; i++) outer[i] = fac_onnx_name(w, n->in[i]);
    *a = (fac_record_attr){ .name = attr, .kind = FAC_PROTO_GRAPH };
    a->graph = record(ex, attr, n->body[k], formal, outer, false);
    *at->last_attr = a;
    at->last_attr = &a->next;
}

/* ---- functions ---- */

static fac_record_graph *function_of(fac_export *ex, const char *name, const fac_graph *body) {
    const fac_hash h = fac_export_meaning(body);
    const char *key = fac_arena_print(&ex->arena, "%016llx%016llx:%s", (unsigned long long)h.a,
                                      (unsigned long long)h.b, name);
    fac_record_graph *f = key ? fac_table_get(&ex->functions, key) : NULL;
    if (f) return f;
    name = fac_export_fresh(ex, &ex->function_names, name);
    f = record(ex, name, body, (int)body->ninputs, NULL, true);
    if (!key || !f || !fac_table_put(&ex->functions, key, f)) {
        ex->failed = true;
        return NULL;
    }
    *ex->last_written = f;
    ex->last_written = &f->next;
    return f;
}

void fac_onnx_put_call(const fac_onnx_writer *w, const char *function, const fac_node *n) {
    fac_export *ex = fac_export_of(w);
    if (ex->dry) return;
    const char **in = fac_export_get(ex, (size_t)n->nin, sizeof *in);
    const fac_record_graph *f = in ? function_of(ex, function, n->body[0]) : NULL;
    if (!f || ex->failed) return;
    for (int i = 0; i < n->nin; i++) in[i] = fac_onnx_name(w, n->in[i]);
    const char *first = fac_onnx_name(w, n->out[0]);
    fac_onnx_put(w, f->name, n->nin, in, first ? first : "");
    if (ex->at) ex->at->domain = FAC_ONNX_FUNCTIONS;
    int outs = n->nout;
    while (outs > 1 && !n->out[outs - 1]->uses && !n->out[outs - 1]->roots) outs--;
    for (int k = 1; k < outs; k++) fac_onnx_put_out(w, fac_onnx_name(w, n->out[k]));
}
