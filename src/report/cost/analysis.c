/* From a graph to its layers and totals: sizes are bound, then every node that runs is asked what
 * it costs. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/optional.h"
#include "op_list.h"
#include "passes/passes.h"
#include "ops/flow.h"
#include "report/cost/report.h"

/* ---- sizes ---- */

/* Layers stand in the bodies of calls, and of loops that are not too long: each iteration counts.
 * A longer loop, or one whose trip count is data, is one layer, and costs what its body costs,
 * times the trips that are known. */
static bool stays(void *self, const fac_node *n) {
    (void)self;
    return !(n->op->is & FAC_OP_FLOW);
}

/* Ifs of which it is not known which branch they take; *first: one of them. */
static int undecided(const fac_graph *g, const fac_node **first) {
    int count = 0;
    bool is;
    for (const fac_node *n = g->first; n; n = n->next) {
        if (!FAC_IS(n, if) || fac_flow_always(n->in[0], &is)) continue;
        if (!count++) *first = n;
    }
    return count;
}

/* Sizes that are numbers now may have decided some. */
static void note_decided(fac_analysis *a, const fac_graph *g) {
    char label[200];
    const fac_node *n = NULL, *left = NULL;
    if (undecided(g, &n) <= undecided(a->graph, &left)) return;
    const char *name = n->name ? n->name : n->out[0]->name;
    a->decided = fac_arena_text(&a->memory, name ? name : fac_node_label(n, label, sizeof label));
}

/* The graph with its sizes; as it is, with the reason in a->open, when they contradict each other
 * or cannot be known. */
static fac_status take_graph(fac_analysis *a, const fac_graph *g, int64_t batch, fac_error *err) {
    fac_error why = { 0 };
    a->graph = fac_pass_sizes(g, batch);
    if (a->graph && !a->graph->error.status && a->graph->depth) {
        fac_graph *flat = fac_pass_expand(a->graph, stays, NULL);
        fac_graph_free(a->graph);
        a->graph = flat;
    }
    const fac_status status = a->graph ? fac_graph_check(a->graph, &why) : FAC_E_NOMEM;
    if (!status) {
        note_decided(a, g);
        return FAC_OK;
    }
    if (status == FAC_E_NOMEM) return fac_raise_memory(err, "a graph of %d nodes", g->nodes);
    fac_graph_free(a->graph);
    a->open = fac_arena_text(&a->memory, why.text);
    a->graph = fac_graph_rebuild(g, &(fac_rebuild){ .keep_dead = false }, NULL);
    if (!a->graph || !a->open) return fac_raise_memory(err, "a graph of %d nodes", g->nodes);
    return fac_graph_check(a->graph, err);
}

/* ---- layers ---- */

/* Shape arithmetic whose results are known is no work. */
static bool settled(const fac_node *n) {
    for (int k = 0; k < n->nout; k++) {
        const fac_value *v = n->out[k];
        if (!v->known || v->roots) return false;
        for (int i = 0; i < v->known->n; i++)
            if (v->known->symbolic >> i & 1) return false;
    }
    return true;
}

static bool runs(const fac_node *n) { return n->out[0]->time == FAC_RUN && !settled(n); }

/* ---- parameters ----
 * What a layer reads that is no data of the run: parameters, also after ops that only prepare
 * them, and tensors of floats that the file computes from constants (ConstantOfShape), which are
 * weights by another name. */
typedef struct owner {
    fac_analysis *a;
    fac_layer *l;
    uint8_t *seen;
} owner;
enum { COUNTED = 1, HERE = 2, PASSED = 4 }; /* the last two within a layer */

static double elements(const fac_value *v) {
    const int64_t n = fac_dims_count(&v->type.dims);
    return n > 0 ? (double)n : 0;
}

static void count_once(owner *o, const fac_value *v, double *to) {
    if (o->seen[v->id] & HERE) return;
    if (o->seen[v->id] & COUNTED)
        o->l->shared += elements(v);
    else {
        *to += elements(v);
        *(to == &o->l->params ? &o->a->totals.param_bytes : &o->a->totals.buffer_bytes) +=
            fac_data_bytes(v);
    }
    o->seen[v->id] |= COUNTED | HERE;
}

static bool is_weight_constant(const fac_value *v) {
    if (fac_is_fill(v)) return false;
    return v->time == FAC_COMPILE && v->type.dims.n > 0 &&
           strchr("f", fac_dtype_get(v->type.dtype)->kind);
}

/* statistic: running mean or variance, which files store like any weight. */
static void count_parameters(owner *o, const fac_value *v, bool statistic) {
    if (!v || fac_is_data(v) || v->leaf == FAC_INPUT) return;
    if (v->leaf == FAC_STATE || statistic)
        count_once(o, v, &o->l->buffers);
    else if (v->leaf == FAC_PARAM || is_weight_constant(v))
        count_once(o, v, &o->l->params);
    else if (v->node && !(o->seen[v->id] & PASSED)) {
        o->seen[v->id] |= PASSED;
        for (int i = 0; i < v->node->nin; i++) count_parameters(o, v->node->in[i], statistic);
    }
}

static void forget_here(owner *o, const fac_value *v) {
    if (!v || fac_is_data(v) || v->leaf == FAC_INPUT) return;
    const bool passed = o->seen[v->id] & PASSED;
    o->seen[v->id] &= (uint8_t) ~(HERE | PASSED);
    if (passed && v->node)
        for (int i = 0; i < v->node->nin; i++) forget_here(o, v->node->in[i]);
}

static const char *attrs_text(fac_arena *a, const fac_node *n) {
    fac_text text = { 0 };
    fac_attrs_print(n->op, n->attrs, &text);
    const char *all = fac_text_or(text.s, "");
    const char *copy = text.failed ? NULL : fac_arena_text(a, all + (all[0] == ' '));
    fac_text_free(&text);
    return copy;
}

static fac_status take_layer(fac_analysis *a, int i, uint8_t *seen, fac_error *err) {
    const fac_node *n = a->nodes[i];
    fac_layer *l = &a->layers[i];
    fac_cost cost = { 0 };
    char label[256];
    a->classes[i] = fac_class_of(n);
    l->name = fac_arena_text(&a->memory, fac_node_label(n, label, sizeof label));
    l->module = fac_module_path(&a->memory, n);
    l->node = fac_arena_text(&a->memory, n->origin ? n->origin : "");
    l->op = n->op->name;
    l->kind = fac_kind_of(n, a->classes[i]);
    l->attrs = attrs_text(&a->memory, n);
    if (!l->name || !l->module || !l->attrs || !l->node)
        return fac_raise_memory(err, "%d layers", a->totals.layers);
    for (int k = n->nin - 1; k >= 0; k--)
        if (n->in[k] && fac_is_data(n->in[k])) l->in = n->in[k]->type;
    if (!fac_is_unknown(n->out[0])) l->out = n->out[0]->type;
    if (n->nin > 1 && n->in[1] && !fac_is_data(n->in[1]) && n->in[1]->type.dims.n > 1)
        l->kernel = n->in[1]->type.dims;
    if (n->op->cost && fac_node_guess(n) != FAC_RANKLESS) n->op->cost(n, &cost);
    l->macs = cost.macs;
    l->other = cost.other;
    owner o = { a, l, seen };
    for (int k = 0; k < n->nin; k++) count_parameters(&o, n->in[k], fac_is_statistic(n, k));
    for (int k = 0; k < n->nin; k++) forget_here(&o, n->in[k]);
    fac_take_bytes(l, n);
    fac_take_bits(l, n);
    return fac_take_operands(a, n, l, err);
}

/* A module that holds others, or several nodes, is no layer itself: what stands in it directly is a
 * call of its code. */
static fac_status find_modules(fac_analysis *a, fac_error *err) {
    fac_table inner = { 0 };
    bool good = true;
    for (int i = 0; i < a->totals.layers && good; i++) {
        char *path = fac_arena_text(&a->memory, a->layers[i].module), *dot;
        good = path != NULL;
        while (good && (dot = strrchr(path, '.'))) {
            *dot = 0;
            good = (dot = fac_arena_text(&a->memory, path)) && fac_table_put(&inner, dot, a);
        }
    }
    for (int i = 0; i < a->totals.layers; i++)
        a->layers[i].is_module =
            *a->layers[i].module && !fac_table_get(&inner, a->layers[i].module);
    fac_table_free(&inner);
    return good ? FAC_OK : fac_raise_memory(err, "%d modules", a->totals.layers);
}

/* Sizes that nodes of the model compute and that are known here: integers of one dim or more. */
static double shape_bytes(const fac_node *n) {
    double bytes = 0;
    if (runs(n)) return 0;
    for (int k = 0; k < n->nout; k++)
        if (n->out[k]->known && n->out[k]->type.dims.n) bytes += fac_data_bytes(n->out[k]);
    return bytes;
}

static void sum(fac_analysis *a) {
    fac_totals *t = &a->totals;
    for (int i = 0; i < t->layers; i++) {
        const fac_layer *l = &a->layers[i];
        t->params += l->params;
        t->buffers += l->buffers;
        t->macs += l->macs;
        t->other += l->other;
        fac_sum_bits(t, l);
        t->read += l->read;
        t->written += l->written;
        t->activations += l->written;
    }
    t->weights = t->param_bytes + t->buffer_bytes;
    for (size_t k = 0; k < a->graph->ninputs; k++) t->inputs += fac_data_bytes(a->graph->inputs[k]);
    for (const fac_node *n = a->graph->first; n; n = n->next) t->shapes += shape_bytes(n);
}

/* Sizes are unknown after nodes that are not ours, unless the file declares them. */
static fac_status find_unknown(fac_analysis *a, fac_error *err) {
    const fac_node *first = NULL;
    int count = 0;
    for (int i = 0; i < a->totals.layers; i++) {
        if (!fac_is_unknown(a->nodes[i]->out[0])) continue;
        if (!count++) first = a->nodes[i];
    }
    if (!count || a->open) return FAC_OK;
    char label[256];
    fac_node_label(first, label, sizeof label);
    a->open = fac_arena_print(&a->memory,
                              "the file does not say what %s (%s) makes; %d layers without a shape",
                              label, fac_kind_of(first, FAC_CLASS_OTHER), count);
    return a->open ? FAC_OK : fac_raise_memory(err, "an analysis");
}

static fac_status take_layers(fac_analysis *a, fac_error *err) {
    const fac_graph *g = a->graph;
    const size_t room = (size_t)g->nodes + 1;
    a->nodes = fac_arena_alloc(&a->memory, room, sizeof *a->nodes);
    if (!a->nodes) return fac_raise_memory(err, "%d nodes", g->nodes);
    for (const fac_node *n = g->first; n; n = n->next)
        if (runs(n)) a->nodes[a->totals.layers++] = n;
    a->layers = fac_arena_alloc(&a->memory, (size_t)a->totals.layers + 1, sizeof *a->layers);
    a->classes = fac_arena_alloc(&a->memory, (size_t)a->totals.layers + 1, sizeof *a->classes);
    uint8_t *seen = fac_alloc((size_t)g->ids + 1, 1);
    const bool there = a->layers && a->classes && seen;
    fac_status status = there ? FAC_OK : fac_raise_memory(err, "%d layers", g->nodes);
    for (int i = 0; i < a->totals.layers && !status; i++) status = take_layer(a, i, seen, err);
    fac_release(seen);
    FAC_TRY(status);
    FAC_TRY(find_modules(a, err));
    FAC_TRY(find_unknown(a, err));
    FAC_TRY(fac_find_idle(a, err));
    sum(a);
    return fac_find_lives(a, err);
}

fac_status fac_analyze(const fac_graph *g, int64_t batch, fac_analysis **out, fac_error *err) {
    FAC_TRY(fac_graph_usable(g, "fac_analyze", err));
    if (batch < 0)
        return fac_raise(err, FAC_E_ARGUMENT, "a batch of %lld, expected 0 or more",
                         (long long)batch);
    fac_analysis *a = fac_alloc(1, sizeof *a);
    if (!a) return fac_raise_memory(err, "an analysis");
    fac_status status = take_graph(a, g, batch, err);
    if (!status) status = take_layers(a, err);
    if (status)
        fac_analysis_free(a);
    else
        *out = a;
    return status;
}

void fac_analysis_free(fac_analysis *a) {
    if (!a) return;
    fac_graph_free(a->graph);
    fac_arena_free(&a->memory);
    fac_release(a->idle);
    fac_release(a);
}

bool fac_analysis_selects(const fac_analysis *a, int i, const char *pattern) {
    return i >= 0 && i < a->totals.layers && fac_select(a->nodes[i], pattern) != FAC_NOT_SELECTED;
}

fac_totals fac_analysis_totals(const fac_analysis *a) { return a->totals; }
const fac_graph *fac_analysis_graph(const fac_analysis *a) { return a->graph; }
const char *fac_analysis_open(const fac_analysis *a) { return a->open; }
const char *fac_analysis_decided(const fac_analysis *a) { return a->decided; }
const fac_layer *fac_analysis_layer(const fac_analysis *a, int i) {
    return i >= 0 && i < a->totals.layers ? &a->layers[i] : NULL;
}
