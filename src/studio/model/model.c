/* The page of graphs: a model layer by layer, its costs, its numbers, and the steps that the
 * planner makes of it. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "facula/report/activations.h"
#include "facula/report/analyze.h"
#include "facula/onnx.h"
#include "facula/program.h"
#include "facula/nn/zoo.h"
#include "studio/server/export.h"
#include "studio/model/model.h"
#include "studio/server/session.h"

enum { READS = 16, BUCKETS = 24, RUNS = 3, STEPS = 4096, INPUTS = 8 };

typedef struct model_page {
    fac_device *device;
    fac_graph *graph;
    fac_analysis *analysis;
    char name[64];
    const char *given; /* of the command line */
    bool fresh, gradients;
    int forward; /* layers up to the loss; the rest are the gradients' */
    uint32_t generation;
} model_page;

static void release_model(model_page *p) {
    fac_analysis_free(p->analysis);
    fac_graph_free(p->graph);
    p->analysis = NULL;
    p->graph = NULL;
}

static void close_page(void *self) {
    model_page *p = self;
    release_model(p);
    fac_device_free(p->device);
    fac_release(p);
}

/* Networks of the zoo, except those of more than 50 million parameters, which take half a
 * gigabyte. */
static bool offered(const char *name) {
    return strncmp(name, "vgg", 3) && strncmp(name, "alexnet", 7);
}

static const char *bare(const char *name) { return strncmp(name, "zoo:", 4) ? name : name + 4; }

static fac_status open_model(const model_page *p, const char *name, fac_graph **out,
                             fac_error *err) {
    const bool given = p->given && !strcmp(name, "given");
    if (given && !fac_zoo_find(bare(p->given))) return fac_onnx_load(p->given, NULL, out, err);
    const char *of = given ? bare(p->given) : name;
    if (!fac_zoo_find(of) || (!given && !offered(of)))
        return fac_raise(err, FAC_E_ARGUMENT, "the list has no such model");
    return fac_zoo_new(of, NULL, 0, out, err);
}

static int count_layers(const fac_analysis *a) {
    int n = 0;
    while (fac_analysis_layer(a, n)) n++;
    return n;
}

/* Counts the layers without gradients, then makes the graph with the requested ones. */
static fac_status analyze(fac_graph *g, bool gradients, int *forward, fac_analysis **out,
                          fac_error *err) {
    FAC_TRY(fac_analyze(g, 1, out, err));
    *forward = count_layers(*out);
    if (!gradients) return FAC_OK;
    fac_analysis_free(*out);
    *out = NULL;
    FAC_TRY(fac_model_gradients(g, err));
    return fac_analyze(g, 1, out, err);
}

static fac_status load(model_page *p, const char *name, bool gradients, fac_error *err) {
    fac_graph *g;
    fac_analysis *a = NULL;
    int forward = 0;
    FAC_TRY(open_model(p, name, &g, err));
    const fac_status status = analyze(g, gradients, &forward, &a, err);
    if (status) {
        fac_graph_free(g);
        return status;
    }
    release_model(p);
    p->graph = g;
    p->analysis = a;
    p->gradients = gradients;
    p->forward = forward;
    p->generation++;
    p->fresh = true;
    strncpy(p->name, name, sizeof p->name - 1);
    return FAC_OK;
}

static fac_status open_page(const studio_means *with, const cJSON *how, void **self,
                            fac_error *err) {
    model_page *p = fac_alloc(1, sizeof *p);
    const fac_device_opts one = { .threads = with->opts.threads ? with->opts.threads : 1 };
    const char *name = fac_json_string_of(how, "model");
    if (!p) return fac_raise_memory(err, "a page");
    p->given = with->opts.model;
    if (!name || strlen(name) >= sizeof p->name) name = p->given ? "given" : "lenet";
    fac_status status = fac_device_open("cpu", &one, &p->device, err);
    if (!status) status = load(p, name, false, err);
    if (status)
        close_page(p);
    else
        *self = p;
    return status;
}

/* ---- the graph ---- */

static void write_dims(fac_text *to, const char *key, const fac_type *t) {
    fac_json_put_key(to, key);
    fac_text_add(to, "[");
    for (int k = 0; t->dtype != FAC_NONE && k < t->dims.n; k++)
        fac_text_print(to, k ? ",%lld" : "%lld", (long long)t->dims.d[k]);
    fac_text_add(to, "]");
}

static void write_layer(const model_page *p, int i, const fac_layer *l, fac_text *to) {
    fac_alive reads[READS];
    const int n = fac_analysis_reads(p->analysis, i, reads, READS);
    fac_text_add(to, i ? ",{" : "{");
    fac_json_put_pair_text(to, "name", l->name);
    fac_json_put_pair_text(to, "module", l->module);
    fac_json_put_pair_text(to, "op", l->op);
    fac_json_put_pair_text(to, "attrs", l->attrs ? l->attrs : "");
    write_dims(to, "shape", &l->out);
    fac_json_put_pair(to, "macs", l->macs);
    fac_json_put_pair(to, "params", l->params);
    fac_json_put_pair(to, "bytes", l->read + l->written + l->weights);
    fac_json_put_key(to, "reads");
    fac_text_add(to, "[");
    for (int k = 0; k < n && k < READS; k++) fac_text_print(to, k ? ",%d" : "%d", reads[k].layer);
    fac_text_add(to, "]}");
}

static void write_names(const model_page *p, fac_text *to) {
    fac_json_put_key(to, "models");
    fac_text_add(to, "[");
    if (p->given) fac_json_put_text(to, "given");
    for (const fac_zoo *z = fac_zoo_models; z->name; z++) {
        if (!offered(z->name)) continue;
        if (to->n && to->s[to->n - 1] != '[') fac_text_add(to, ",");
        fac_json_put_text(to, z->name);
    }
    fac_text_add(to, "]");
}

static void show(void *self, frames *to) {
    model_page *p = self;
    fac_text t = { 0 };
    if (!p->fresh) return;
    p->fresh = false;
    const fac_totals all = fac_analysis_totals(p->analysis);
    fac_text_add(&t, "{");
    fac_json_put_pair(&t, "generation", p->generation);
    fac_json_put_pair_text(&t, "model", p->name);
    fac_json_put_pair_text(&t, "given", p->given ? p->given : "");
    write_names(p, &t);
    fac_json_put_pair_bool(&t, "gradients", p->gradients);
    fac_json_put_pair(&t, "forward", p->forward);
    fac_json_put_pair(&t, "params", all.params);
    fac_json_put_pair(&t, "macs", all.macs);
    fac_json_put_pair(&t, "weights", all.weights);
    fac_json_put_pair(&t, "peak", all.peak);
    fac_json_put_key(&t, "layers");
    fac_text_add(&t, "[");
    const fac_layer *l;
    for (int i = 0; (l = fac_analysis_layer(p->analysis, i)); i++) write_layer(p, i, l, &t);
    fac_text_add(&t, "]}");
    fac_frames_put(to, FRAME_SETUP, &t);
}

static int64_t work(void *self) {
    (void)self;
    return -1;
}

/* ---- running it ---- */

static void free_inputs(fac_tensor **in) {
    for (int k = 0; k < INPUTS; k++) fac_tensor_free(in[k]);
}

/* One sample of random numbers from -1 to 1; open sizes are 1. */
static fac_status make_input(const fac_value *v, int k, uint64_t seed, fac_tensor **out,
                             fac_error *err) {
    fac_type type = fac_value_type(v);
    for (int i = 0; i < type.dims.n; i++)
        if (type.dims.d[i] < 0) type.dims.d[i] = 1;
    if (type.dtype != FAC_F32)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "input %s is not f32: this page makes random floats only",
                         fac_value_name(v));
    const size_t n = (size_t)fac_dims_count(&type.dims);
    float *x = fac_alloc(n + 1, sizeof *x);
    if (!x) return fac_raise_memory(err, "an input");
    fac_random_fill(seed, (uint64_t)k, -1, 1, n, x);
    fac_status status = fac_tensor_new(NULL, FAC_F32, type.dims, out, err);
    if (!status) status = fac_tensor_write(*out, x, n * sizeof *x, err);
    fac_release(x);
    return status;
}

static fac_status make_inputs(const model_page *p, const cJSON *what, fac_tensor **in,
                              fac_error *err) {
    int64_t seed = 0;
    const int n = fac_graph_inputs(p->graph);
    FAC_TRY(fac_json_int(what, "seed", 0, INT32_MAX, &seed, err));
    if (n > INPUTS)
        return fac_raise(err, FAC_E_UNSUPPORTED, "the model has more than %d inputs", INPUTS);
    for (int k = 0; k < n; k++)
        FAC_TRY(make_input(fac_graph_input(p->graph, k), k, (uint64_t)seed, &in[k], err));
    return FAC_OK;
}

static void write_tensor(const fac_activation *a, int i, fac_text *to) {
    const fac_stats s = fac_tally_stats(a->tally);
    double counts[BUCKETS];
    fac_tally_histogram(a->tally, s.min, s.max, BUCKETS, counts);
    fac_text_add(to, i ? ",{" : "{");
    fac_json_put_pair_text(to, "name", a->name);
    fac_json_put_pair(to, "min", s.min);
    fac_json_put_pair(to, "max", s.max);
    fac_json_put_pair(to, "mean", s.mean);
    fac_json_put_pair(to, "std", s.std);
    fac_json_put_pair(to, "zeros", s.count ? (double)s.zeros / (double)s.count : 0);
    fac_json_put_pair(to, "dead", (double)s.dead);
    fac_json_put_key(to, "counts");
    for (int k = 0; k < BUCKETS; k++)
        fac_text_print(to, k ? ",%.0f" : "[%.0f", fmin(counts[k], 1e15));
    fac_text_add(to, "]}");
}

static fac_status values(model_page *p, const cJSON *what, fac_text *to, fac_error *err) {
    fac_tensor *in[INPUTS] = { NULL };
    fac_activations *all;
    fac_status status = make_inputs(p, what, in, err);
    if (!status) status = fac_activations_new(p->graph, p->device, NULL, &all, err);
    if (!status) {
        status = fac_activations_add(all, in, err);
        fac_json_put_key(to, "tensors");
        fac_text_add(to, "[");
        const fac_activation *a;
        for (int i = 0; !status && (a = fac_activations_get(all, i)); i++) write_tensor(a, i, to);
        fac_text_add(to, "]");
        fac_activations_free(all);
    }
    free_inputs(in);
    return status;
}

static void write_steps(fac_program *program, fac_text *to) {
    fac_step_stat *s = fac_alloc(STEPS, sizeof *s);
    const size_t n = s ? fac_program_steps(program, s, STEPS) : 0;
    fac_json_put_key(to, "steps");
    fac_text_add(to, "[");
    for (size_t i = 0; i < n && i < STEPS; i++) {
        fac_text_add(to, i ? ",{" : "{");
        fac_json_put_pair_text(to, "nodes", s[i].nodes ? s[i].nodes : "");
        fac_json_put_pair_text(to, "op", s[i].op ? s[i].op : "");
        fac_json_put_pair_text(to, "solver", s[i].solver ? s[i].solver : "");
        fac_json_put_pair_text(to, "layouts", s[i].layouts ? s[i].layouts : "");
        fac_json_put_pair(to, "seconds", s[i].runs ? s[i].seconds / (double)s[i].runs : 0);
        fac_json_put_pair(to, "macs", s[i].macs);
        fac_text_add(to, "}");
    }
    fac_text_add(to, "]");
    fac_release(s);
}

static fac_status run_some(fac_program *program, int outputs, fac_tensor *const *in,
                           fac_error *err) {
    fac_status status = FAC_OK;
    fac_tensor **out = fac_alloc((size_t)outputs + 1, sizeof *out);
    if (!out) return fac_raise_memory(err, "outputs");
    for (int k = 0; k <= RUNS && !status; k++) {
        if (k == 1) fac_program_profile(program, true); /* the first run plans and packs */
        status = fac_program_run(program, in, out, err);
    }
    for (int k = 0; k < outputs; k++) fac_tensor_free(out[k]);
    fac_release(out);
    return status;
}

static fac_status plan(model_page *p, const cJSON *what, fac_text *to, fac_error *err) {
    fac_tensor *in[INPUTS] = { NULL };
    fac_program *program = NULL;
    fac_status status = make_inputs(p, what, in, err);
    if (!status) status = fac_program_new(p->graph, p->device, NULL, &program, err);
    if (!status) status = run_some(program, fac_graph_outputs(p->graph), in, err);
    if (!status) write_steps(program, to);
    if (!status) fac_json_put_pair_text(to, "device", fac_device_about(p->device));
    fac_program_free(program);
    free_inputs(in);
    return status;
}

static fac_status command(void *self, const cJSON *what, fac_text *answer, fac_error *err) {
    model_page *p = self;
    const char *name = fac_json_string_of(what, "do"), *model = fac_json_string_of(what, "model");
    if (name && !strcmp(name, "values")) return values(p, what, answer, err);
    if (name && !strcmp(name, "plan")) return plan(p, what, answer, err);
    if (!name || strcmp(name, "load") || !model || strlen(model) >= sizeof p->name)
        return fac_raise(err, FAC_E_ARGUMENT, "unknown command");
    bool gradients = false;
    FAC_TRY(fac_json_bool(what, "gradients", &gradients, err));
    return load(p, model, gradients, err);
}

/* ---- files ---- */

/* The command line that prints the same, and the model; neither contains gradients. */
static fac_status file(void *self, const char *name, fac_text *out, const char **type,
                       fac_error *err) {
    model_page *p = self;
    fac_graph *g;
    if (!strcmp(name, "command.txt")) {
        const bool given = p->given && !strcmp(p->name, "given");
        const char *zoo = given ? "" : "zoo:";
        const char *model = given ? p->given : p->name;
        *type = "text/plain; charset=utf-8";
        fac_text_print(out, "facula inspect '%s%s'\nfacula profile '%s%s' --threads 1\n", zoo,
                       model, zoo, model);
        return FAC_OK;
    }
    if (!p->gradients) return fac_export_file(p->graph, name, out, type, err);
    FAC_TRY(open_model(p, p->name, &g, err));
    const fac_status status = fac_export_file(g, name, out, type, err);
    fac_graph_free(g);
    return status;
}

const page fac_page_graph = { .name = "graph",
                              .open = open_page,
                              .close = close_page,
                              .command = command,
                              .work = work,
                              .show = show,
                              .file = file };
