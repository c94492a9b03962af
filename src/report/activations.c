/* Every tensor of a model through a hook: what is asked for goes into a tally and is forgotten.  See facula/activations.h. */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/activations.h"
#include "facula/program.h"
#include "report/report.h"

typedef struct row {
    fac_activation a;
    fac_tally     *tally;
    int            run;             /* the last one that it was seen in, and by which node */
    const fac_node *node;
} row;

/* What a tensor may be asked for by, and what it is shown as. */
typedef struct label { const char *shown, *module, *own; } label;

struct fac_activations {
    fac_graph   *graph;             /* every value of a node has a name */
    fac_program *program;
    fac_arena    memory;
    fac_table    labels;            /* name of a value -> label */
    fac_table    index;             /* name of a row -> row */
    row        **rows;
    size_t       nrows, room;
    int          runs, patterns;
    const char **at;
    bool        *matched;
    fac_status (*see)(void *self, const fac_activation *a, const fac_tensor *t, fac_error *err);
    void        *see_self;
};

static fac_status no_memory(fac_error *err) { return fac_raise(err, FAC_E_NOMEM, "no memory for statistics of a model"); }

/* ---- names ---------------------------------------------------------------------------------------------------------- */

/* The passes to come may take nodes apart but leave the names of values: those lead back to the node as it was. */
static fac_status label_outputs(fac_activations *a, fac_node *n, fac_error *err) {
    char text[256];
    const char *module = fac_module_path(&a->memory, n);
    fac_node_label(n, text, sizeof text);
    for (int k = 0; k < n->nout; k++) {
        const char *own = n->out[k]->name;
        label *l = fac_arena_alloc(&a->memory, 1, sizeof *l);
        char *shown = k ? fac_arena_print(&a->memory, "%s.%d", text, k) : fac_arena_text(&a->memory, text);
        if (!l || !shown || !module) return no_memory(err);
        fac_value_name_set(n->out[k], shown);
        *l = (label){ shown, module, own ? own : shown };
        if (n->out[k]->name && !fac_table_put(&a->labels, n->out[k]->name, l)) return no_memory(err);
    }
    return fac_graph_check(a->graph, err);
}

static bool wanted(fac_activations *a, const label *l) {
    bool found = !a->patterns;
    for (int i = 0; i < a->patterns; i++) {
        const bool here = !fnmatch(a->at[i], l->shown, 0) || !fnmatch(a->at[i], l->module, 0) || !fnmatch(a->at[i], l->own, 0);
        a->matched[i] |= here;
        found |= here;
    }
    return found;
}

/* ---- rows ----------------------------------------------------------------------------------------------------------- */

static fac_status row_new(fac_activations *a, const char *name, const char *op, row **out, fac_error *err) {
    if (!fac_reserve(&a->rows, &a->room, a->nrows + 1, sizeof *a->rows)) return no_memory(err);
    row *r = fac_arena_alloc(&a->memory, 1, sizeof *r);
    char *copy = fac_arena_text(&a->memory, name);
    if (!r || !copy || !fac_table_put(&a->index, copy, r)) return no_memory(err);
    FAC_TRY(fac_tally_new(&r->tally, err));
    r->a = (fac_activation){ copy, op, { 0 }, r->tally };
    a->rows[a->nrows++] = r;
    *out = r;
    return FAC_OK;
}

/* The row of this name; of the next such name when another node has filled that in this run.  (The same one: in a loop.) */
static fac_status row_of(fac_activations *a, const char *name, const char *op, const fac_node *n, row **out, fac_error *err) {
    char text[300];
    row *r = fac_table_get(&a->index, name);
    for (int k = 2; r && r->run == a->runs && r->node != n; k++) {
        snprintf(text, sizeof text, "%.280s (%d)", name, k);
        r = fac_table_get(&a->index, text);
        if (!r) return row_new(a, text, op, out, err);
    }
    if (!r) return row_new(a, name, op, out, err);
    *out = r;
    return FAC_OK;
}

/* n NULL: an input. */
static fac_status take(fac_activations *a, const char *name, const fac_node *n, const fac_tensor *t, int axis, fac_error *err) {
    row *r;
    const fac_type type = fac_tensor_type(t);
    if (type.dtype == FAC_TEXT) return FAC_OK;
    FAC_TRY(row_of(a, name, n ? n->op->name : "input", n, &r, err));
    r->run = a->runs;
    r->node = n;
    r->a.type = type;
    FAC_TRY(fac_tally_add(r->tally, t, axis, err));
    return a->see ? a->see(a->see_self, &r->a, t, err) : FAC_OK;
}

/* ---- channels ------------------------------------------------------------------------------------------------------- */

/* Of three dims it depends on what made them: [N, C, L] of convolutions, [N, T, C] of all else. */
static bool from_convolution(const fac_node *n) {
    enum { FAR = 16 };
    static const char *const stop[] = { "linear", "matmul", "gemm", "layer_norm", "gather", "transpose", "softmax", NULL };
    for (int i = 0; n && i < FAR; i++, n = n->nin && n->in[0] ? n->in[0]->node : NULL) {
        if (!strncmp(n->op->name, "conv", 4)) return true;
        for (const char *const *s = stop; *s; s++)
            if (!strcmp(n->op->name, *s)) return false;
    }
    return false;
}

static int channel_axis(const fac_node *n, const fac_dims *d) {
    if (d->n < 2) return -1;
    return d->n == 3 && !(n && from_convolution(n)) ? 2 : 1;
}

/* ---- the hook ------------------------------------------------------------------------------------------------------- */

static fac_status see_node(void *self, fac_hooked *h, fac_error *err) {
    fac_activations *a = self;
    const fac_node *n = fac_hooked_node(h);
    char module[256];
    for (int k = 0; k < n->nout; k++) {
        const char *own = n->out[k]->name;
        const label *l = own ? fac_table_get(&a->labels, own) : NULL;
        snprintf(module, sizeof module, "%s", n->scope ? n->scope : "");
        const label part = { fac_hooked_name(h), module, own ? own : fac_hooked_name(h) };
        const fac_tensor *t;
        if (!wanted(a, l ? l : &part)) continue;
        FAC_TRY(fac_hooked_output(h, k, &t, err));
        if (t) FAC_TRY(take(a, l ? l->shown : part.shown, n, t, channel_axis(n, &n->out[k]->type.dims), err));
    }
    return FAC_OK;
}

static fac_status see_inputs(fac_activations *a, fac_tensor *const in[], fac_error *err) {
    for (size_t i = 0; i < a->graph->ninputs; i++) {
        const char *name = a->graph->inputs[i]->name;
        if (!in[i] || !wanted(a, &(label){ name, name, name })) continue;
        const fac_dims d = fac_tensor_type(in[i]).dims;
        FAC_TRY(take(a, name, NULL, in[i], channel_axis(NULL, &d), err));
    }
    return FAC_OK;
}

/* ---- the calls ------------------------------------------------------------------------------------------------------ */

static fac_status take_options(fac_activations *a, const fac_activations_opts *o, fac_error *err) {
    if (!o) return FAC_OK;
    a->see = o->see;
    a->see_self = o->see_self;
    a->at = fac_arena_alloc(&a->memory, (size_t)o->n + 1, sizeof *a->at);
    a->matched = fac_arena_alloc(&a->memory, (size_t)o->n + 1, sizeof *a->matched);
    if (!a->at || !a->matched) return no_memory(err);
    for (int i = 0; i < o->n; i++, a->patterns++)
        if (!(a->at[i] = fac_arena_text(&a->memory, o->at[i]))) return no_memory(err);
    return FAC_OK;
}

static fac_status start(fac_activations *a, const fac_graph *g, fac_device *device, const fac_activations_opts *o,
                        fac_error *err) {
    FAC_TRY(take_options(a, o, err));
    FAC_TRY(fac_graph_check(g, err));
    if (!(a->graph = fac_graph_inference(g))) return no_memory(err);
    FAC_TRY(fac_graph_check(a->graph, err));
    for (fac_node *n = a->graph->first; n; n = n->next) FAC_TRY(label_outputs(a, n, err));
    return fac_program_new(a->graph, device, &(fac_program_opts){ .hook = see_node, .hook_self = a }, &a->program, err);
}

fac_status fac_activations_new(const fac_graph *g, fac_device *device, const fac_activations_opts *opts, fac_activations **out,
                               fac_error *err) {
    fac_activations *a = fac_alloc(1, sizeof *a);
    if (!a) return no_memory(err);
    fac_status status = start(a, g, device, opts, err);
    if (status) fac_activations_free(a);
    else *out = a;
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

static fac_status run(fac_activations *a, fac_tensor *const in[], fac_tensor *out[], fac_error *err) {
    FAC_TRY(see_inputs(a, in, err));
    FAC_TRY(fac_program_run(a->program, in, out, err));
    for (int i = 0; i < a->patterns; i++)
        if (!a->matched[i])
            return fac_raise(err, FAC_E_ARGUMENT, "no tensor that is computed from the inputs is called %s", a->at[i]);
    return FAC_OK;
}

fac_status fac_activations_add(fac_activations *a, fac_tensor *const in[], fac_error *err) {
    fac_tensor **out = fac_alloc(a->graph->noutputs + 1, sizeof *out);
    if (!out) return no_memory(err);
    a->runs++;
    fac_status status = run(a, in, out, err);
    for (size_t i = 0; i < a->graph->noutputs; i++) fac_tensor_free(out[i]);
    fac_release(out);
    return status;
}

const fac_activation *fac_activations_get(const fac_activations *a, int i) {
    return i >= 0 && (size_t)i < a->nrows ? &a->rows[i]->a : NULL;
}
