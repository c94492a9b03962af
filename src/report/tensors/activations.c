/* Every tensor of a model through a hook: what is asked for goes into a tally and is forgotten. See
 * facula/report/activations.h. */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/optional.h"
#include "facula/report/activations.h"
#include "facula/program.h"
#include "report/cost/channels.h"
#include "report/cost/report.h"
#include "run/run.h"
#include "plan/plan.h"

typedef struct row {
    fac_activation a;
    fac_tally *tally;
    int run; /* the last one that it was seen in, and by which node */
    const fac_node *node;
} row;

/* What a tensor may be asked for by, and what it is shown as.  path: see fac_activation. */
typedef struct label {
    const char *shown, *module, *own, *path;
    int axis;
    const fac_node *node;
} label;

struct fac_activations {
    fac_graph *graph; /* every value of a node has a name */
    fac_program *program;
    fac_arena memory;
    fac_table labels; /* name of a value -> label */
    fac_table index;  /* name of a row -> row */
    row **rows;
    size_t nrows, room;
    int runs, patterns;
    fac_channels channels;
    const char **at;
    bool *matched;
    fac_status (*see)(void *self, const fac_activation *a, const fac_tensor *t, fac_error *err);
    void *see_self;
};

/* ---- names ---- */

/* The passes to come may take nodes apart but leave the names of values: those lead back to the
 * node as it was. */
static fac_status label_outputs(fac_activations *a, fac_node *n, fac_error *err) {
    char text[256];
    const char *module = fac_module_path(&a->memory, n);
    fac_node_label(n, text, sizeof text);
    for (int k = 0; k < n->nout; k++) {
        const char *own = n->out[k]->name;
        label *l = fac_arena_alloc(&a->memory, 1, sizeof *l);
        char *shown =
            k ? fac_arena_print(&a->memory, "%s.%d", text, k) : fac_arena_text(&a->memory, text);
        if (!l || !shown || !module) return fac_raise_memory(err, "statistics of a model");
        fac_value_name_set(n->out[k], shown);
        *l = (label){ shown, module, own ? own : shown, shown, fac_channel_axis(n->out[k]), n };
        if (n->out[k]->name && !fac_table_put(&a->labels, n->out[k]->name, l))
            return fac_raise_memory(err, "statistics of a model");
    }
    return fac_graph_check(a->graph, err);
}

/* By what is shown of it, or as a node of the model: see fac_analysis_selects. */
static bool means(const label *l, const char *pattern) {
    return fac_select_name(l->shown, pattern) || fac_select_name(l->module, pattern) ||
           fac_select_name(l->own, pattern) || (l->node && fac_select(l->node, pattern));
}

/* What it is to be called; NULL: it is not wanted. */
static const char *wanted(fac_activations *a, const label *l) {
    const char *as = a->patterns ? NULL : l->shown;
    for (int i = 0; i < a->patterns; i++) {
        const bool here = means(l, a->at[i]);
        const bool once = !here && !fnmatch(a->at[i], l->path, 0); /* [1-3]: of iterations */
        a->matched[i] |= here || once;
        if (here)
            as = l->shown;
        else if (once && !as)
            as = l->path;
    }
    return as;
}

/* ---- rows ---- */

static fac_status row_new(fac_activations *a, const char *name, const char *op, row **out,
                          fac_error *err) {
    if (!fac_reserve(&a->rows, &a->room, a->nrows + 1, sizeof *a->rows))
        return fac_raise_memory(err, "statistics of a model");
    row *r = fac_arena_alloc(&a->memory, 1, sizeof *r);
    char *copy = fac_arena_text(&a->memory, name);
    if (!r || !copy || !fac_table_put(&a->index, copy, r))
        return fac_raise_memory(err, "statistics of a model");
    FAC_TRY(fac_tally_new(&r->tally, err));
    r->a =
        (fac_activation){ .name = copy, .op = op, .path = copy, .channels = -1, .tally = r->tally };
    a->rows[a->nrows++] = r;
    *out = r;
    return FAC_OK;
}

/* The row of this name; of the next such name when another node has filled that in this run.  In a
 * loop it is the same node, or that of another plan for other sizes. */
static fac_status row_of(fac_activations *a, const char *name, const char *op, const fac_node *n,
                         bool loops, row **out, fac_error *err) {
    char text[300];
    row *r = fac_table_get(&a->index, name);
    for (int k = 2; r && !loops && r->run == a->runs && r->node != n; k++) {
        snprintf(text, sizeof text, "%.280s (%d)", name, k);
        r = fac_table_get(&a->index, text);
        if (!r) return row_new(a, text, op, out, err);
    }
    if (!r) return row_new(a, name, op, out, err);
    *out = r;
    return FAC_OK;
}

static int chosen_axis(const fac_activations *a, const label *l, int rank) {
    if (rank < 3 || a->channels == FAC_CHANNELS_FOUND) return l->axis < rank ? l->axis : -1;
    return a->channels == FAC_CHANNELS_LAST ? rank - 1 : 1;
}

/* n NULL: an input. */
static fac_status take(fac_activations *a, const char *name, const label *l, const fac_node *n,
                       const fac_tensor *t, fac_error *err) {
    row *r;
    const bool loops = strcmp(l->shown, l->path) != 0;
    const fac_type type = fac_tensor_type(t);
    if (type.dtype == FAC_TEXT) return FAC_OK;
    FAC_TRY(row_of(a, name, n ? n->op->name : "input", n, loops, &r, err));
    r->run = a->runs;
    r->node = n;
    r->a.type = type;
    r->a.channels = chosen_axis(a, l, type.dims.n);
    if (loops) r->a.path = l->path;
    FAC_TRY(fac_tally_add(r->tally, t, r->a.channels, err));
    fac_status status = a->see ? a->see(a->see_self, &r->a, t, err) : FAC_OK;
    r->a.path = r->a.name;
    return status;
}

/* ---- the hook ---- */

/* Result k of the node at hand: a value of the model, or one inside of a body or of what an op
 * without a kernel was taken apart into, which has no label of its own.  text, path: room for what
 * that is called. */
static label label_of(const fac_activations *a, const fac_hooked *h, int k, char text[300],
                      char path[300]) {
    const fac_node *n = fac_hooked_node(h);
    const char *own = n->out[k]->name, *name = fac_hooked_name(h), *whole = fac_hooked_path(h);
    char alone[200];
    const bool inside = strcmp(name, fac_node_label(n, alone, sizeof alone)) != 0;
    const label *l = own && !inside ? fac_table_get(&a->labels, own) : NULL;
    if (l) return *l;
    snprintf(text, 300, k ? "%s.%d" : "%s", name, k);
    snprintf(path, 300, k ? "%s.%d" : "%s", whole, k);
    return (label){ text, fac_text_or(n->scope, ""),   fac_text_or(own, text),
                    path, fac_channel_axis(n->out[k]), n };
}

static fac_status see_node(void *self, fac_hooked *h, fac_error *err) {
    fac_activations *a = self;
    const fac_node *n = fac_hooked_node(h);
    char text[300], path[300];
    for (int k = 0; k < n->nout; k++) {
        const label l = label_of(a, h, k, text, path);
        const char *as = wanted(a, &l);
        const fac_tensor *t;
        if (!as) continue;
        FAC_TRY(fac_hooked_output(h, k, &t, err));
        if (t) FAC_TRY(take(a, as, &l, n, t, err));
    }
    return FAC_OK;
}

static fac_status see_inputs(fac_activations *a, fac_tensor *const in[], fac_error *err) {
    for (size_t i = 0; i < a->graph->ninputs; i++) {
        const char *name = a->graph->inputs[i]->name;
        const label l = { name, name, name, name, fac_channel_axis(a->graph->inputs[i]), NULL };
        if (in[i] && wanted(a, &l)) FAC_TRY(take(a, name, &l, NULL, in[i], err));
    }
    return FAC_OK;
}

/* ---- the calls ---- */

static fac_status take_options(fac_activations *a, const fac_activations_opts *o, fac_error *err) {
    if (!o) return FAC_OK;
    a->see = o->see;
    a->see_self = o->see_self;
    a->channels = o->channels;
    a->at = fac_arena_alloc(&a->memory, (size_t)o->n + 1, sizeof *a->at);
    a->matched = fac_arena_alloc(&a->memory, (size_t)o->n + 1, sizeof *a->matched);
    if (!a->at || !a->matched) return fac_raise_memory(err, "statistics of a model");
    for (int i = 0; i < o->n; i++, a->patterns++)
        if (!(a->at[i] = fac_arena_text(&a->memory, o->at[i])))
            return fac_raise_memory(err, "statistics of a model");
    return FAC_OK;
}

static fac_status start(fac_activations *a, const fac_graph *g, fac_device *device,
                        const fac_activations_opts *o, fac_error *err) {
    FAC_TRY(take_options(a, o, err));
    FAC_TRY(fac_graph_usable(g, "fac_activations_new", err));
    if (!(a->graph = fac_graph_inference(g))) return fac_raise_memory(err, "statistics of a model");
    FAC_TRY(fac_graph_check(a->graph, err));
    for (fac_node *n = a->graph->first; n; n = n->next) FAC_TRY(label_outputs(a, n, err));
    if (!fac_name_nodes(a->graph))
        return fac_raise_memory(err,
                                "statistics of a model"); /* bodies are known by what holds them */
    return fac_program_new(a->graph, device,
                           &(fac_program_opts){ .hook = see_node, .hook_self = a }, &a->program,
                           err);
}

fac_status fac_activations_new(const fac_graph *g, fac_device *device,
                               const fac_activations_opts *opts, fac_activations **out,
                               fac_error *err) {
    fac_activations *a = fac_alloc(1, sizeof *a);
    if (!a) return fac_raise_memory(err, "statistics of a model");
    fac_status status = start(a, g, device, opts, err);
    if (status)
        fac_activations_free(a);
    else
        *out = a;
    return status;
}

void fac_activations_free(fac_activations *a) {
    if (!a) return;
    for (size_t i = 0; i < a->nrows; i++) fac_tally_free(a->rows[i]->tally);
    fac_release(a->rows);
    fac_program_free(a->program);
    fac_graph_free(a->graph);
    fac_table_free(&a->labels);
    fac_table_free(&a->index);
    fac_arena_free(&a->memory);
    fac_release(a);
}

static fac_status run(fac_activations *a, fac_tensor *const in[], fac_tensor *out[],
                      fac_error *err) {
    FAC_TRY(see_inputs(a, in, err));
    FAC_TRY(fac_program_run(a->program, in, out, err));
    for (int i = 0; i < a->patterns; i++)
        if (!a->matched[i])
            return fac_raise(err, FAC_E_ARGUMENT,
                             "no tensor that is computed from the inputs is called %s", a->at[i]);
    return FAC_OK;
}

fac_status fac_activations_add(fac_activations *a, fac_tensor *const in[], fac_error *err) {
    fac_tensor **out = fac_alloc(a->graph->noutputs + 1, sizeof *out);
    if (!out) return fac_raise_memory(err, "statistics of a model");
    a->runs++;
    fac_status status = run(a, in, out, err);
    for (size_t i = 0; i < a->graph->noutputs; i++) fac_tensor_free(out[i]);
    fac_release(out);
    return status;
}

const fac_activation *fac_activations_get(const fac_activations *a, int i) {
    return i >= 0 && (size_t)i < a->nrows ? &a->rows[i]->a : NULL;
}
