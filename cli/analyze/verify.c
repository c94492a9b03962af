/* facula verify: whether two models are the same function. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "json.h"
#include "run/photo.h"
#include "verdict.h"

static struct {
    device_options device;
    photo_options photo;
    const char *mode, *weights;
    list shapes, inputs;
    long seed, rounds, batch;
    double rtol, atol;
    bool json, whole, verbose, brief;
} o = { .rtol = 1e-4, .atol = 1e-5 };
/* 0: as fac_verify has it, which also knows how exactly each type can be compared. */
static double tolerance(double x, bool any) {
    if (!any) return 0;
    return x > 0 ? x : -1;
}
static const option options[] = {
    { "--mode", OPTION_TEXT, &o.mode, "MODE",
      "full (default): data, then exact; data: numbers; exact: remainders, equal bits; bound: "
      "rounding errors" },
    { "--inputs", OPTION_LIST, &o.inputs, "[NAME=]FILE",
      ".npy, .npz, .pb or a photo instead of random numbers; files without a name go to the inputs "
      "in order" },
    { "--rounds", OPTION_INT, &o.rounds, "N",
      "how many times with fresh random inputs; default 8, each of another kind, of large models 3",
      OPTION_COUNT },
    { "--seed", OPTION_INT, &o.seed, "S", "seed of the random inputs; default 0" },
    { "--rtol", OPTION_REAL, &o.rtol, "X",
      "--mode full, data: |a - b| <= atol + rtol |b|; default 1e-4", "[0, inf)" },
    { "--atol", OPTION_REAL, &o.atol, "X",
      "likewise; default 1e-5 of the largest number of an output", "[0, inf)" },
    { "--whole", OPTION_FLAG, &o.whole, NULL,
      "--mode bound: do not cut the networks where their values agree" },
    { "--verbose", OPTION_FLAG, &o.verbose, NULL,
      "--mode bound: print each pair of values at which the networks were cut" },
    { "--brief", OPTION_FLAG, &o.brief, NULL,
      "print the verdict alone, and do not search for the first value that differs" },
    { "--batch", OPTION_INT, &o.batch, "N", "size of the open first dim of the inputs; default 1",
      OPTION_COUNT },
    { "--shape", OPTION_LIST, &o.shapes, "NAME=DIMS",
      "sizes of an input of both models: x=1x3x224x224; may be repeated" },
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME" },
    LINK_ROOT_OPTION,
    PHOTO_OPTIONS(o.photo),
    DEVICE_OPTIONS(o.device),
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

enum { MODES = 4 };

/* What a comparison holds. */
typedef struct job {
    model a, b;
    fac_device *device;
    fac_tensor **in;
    int nin;
    cJSON *segments;
    photo_plan plan; /* of photos among the inputs */
} job;

/* ---- the verdict ---- */

static void add_finite(cJSON *to, const char *key, double x) {
    if (isfinite(x))
        json_number(to, key, x, 9);
    else
        cJSON_AddNullToObject(to, key);
}

static void take_segment(void *self, const fac_verify_segment *s) {
    job *j = self;
    if (!o.json) {
        if (o.verbose) printf("%10.3g  %9.2g  %s = %s\n", s->worst, s->ratio, s->a, s->b);
        return;
    }
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "a", s->a);
    cJSON_AddStringToObject(row, "b", s->b);
    add_finite(row, "largest_difference", s->worst);
    add_finite(row, "largest_ratio", s->ratio);
    json_number(row, "elements", s->elements, 17);
    cJSON_AddItemToArray(j->segments, row);
}

static int report_json(job *j, const fac_verdict *v, const char *word) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema_version", 1);
    cJSON_AddStringToObject(root, "verdict", word);
    cJSON_AddStringToObject(root, "mode", o.mode ? o.mode : "full");
    cJSON_AddStringToObject(root, "why", v->why);
    cJSON_AddStringToObject(root, "not_reached", v->note);
    cJSON_AddStringToObject(root, "overflow", v->outgrown);
    cJSON_AddNumberToObject(root, "round", v->same == FAC_DIFFERENT ? v->round : -1);
    cJSON_AddStringToObject(root, "first_difference", v->first);
    json_number(root, "first_differing", v->first_differing, 17);
    json_number(root, "first_elements", v->first_elements, 17);
    cJSON_AddStringToObject(root, "last_equal", v->last);
    add_finite(root, "largest_difference", v->worst);
    add_finite(root, "largest_ratio", v->ratio);
    json_number(root, "elements", v->elements, 17);
    json_number(root, "differing", v->differing, 17);
    json_number(root, "tied", v->tied, 17);
    cJSON_AddNumberToObject(root, "cuts", v->segments);
    cJSON_AddItemToObject(root, "segments", j->segments);
    j->segments = NULL;
    photo_plan_json(&j->plan, root);
    return json_print(root);
}

/* Green, red or, where nothing is known, yellow. */
static const char *colour_of(fac_sameness same) {
    if (same == FAC_SAME) return "32";
    return same == FAC_DIFFERENT ? "31" : "33";
}

static int report(job *j, const fac_verdict *v) {
    const char *word = fac_sameness_word(v->same);
    if (o.json) return report_json(j, v, word) ? EXIT_ERROR : verdict_exit(v->same);
    style(stdout, colour_of(v->same));
    printf("%s", word);
    style(stdout, "0");
    printf(": %s\n", v->why);
    if (v->same != FAC_DIFFERENT && v->worst > 0)
        printf("largest difference %.3g, %.2g of what is allowed\n", v->worst, v->ratio);
    if (v->same != FAC_SAME && *v->note) printf("not reached: %s\n", v->note);
    if (*v->outgrown) printf("overflow: %s\n", v->outgrown);
    if (v->tied > 0)
        printf("not judged: %.0f number%s where rounding decides\n", v->tied,
               v->tied == 1 ? "" : "s");
    if (*v->first && v->first_differing > 0)
        printf("the first value that differs: %s, %.0f of %.0f elements\n", v->first,
               v->first_differing, v->first_elements);
    if (*v->last) printf("equal up to %s\n", v->last);
    photo_plan_print(&j->plan);
    return verdict_exit(v->same);
}

/* ---- inputs ---- */

static int input_place(const job *j, const char *arg, const char **file) {
    const char *equals = strchr(arg, '=');
    for (int i = 0; i < fac_graph_inputs(j->a.graph) && equals; i++) {
        const char *name = fac_value_name(fac_graph_input(j->a.graph, i));
        if (strlen(name) != (size_t)(equals - arg) || strncmp(name, arg, strlen(name))) continue;
        *file = equals + 1;
        return i;
    }
    int i = 0;
    while (i < j->nin && j->in[i]) i++;
    *file = arg;
    return i;
}

static int load_input(job *j, const char *arg) {
    fac_error err = { 0 };
    const char *file;
    const int i = input_place(j, arg, &file);
    if (i >= j->nin) return fail_text("%s is one input too many: the models have %d", file, j->nin);
    const fac_value *v = fac_graph_input(j->a.graph, i);
    if (j->in[i]) return fail_text("input %s is given twice", fac_value_name(v));
    if (!is_image(file)) return tensor_load(file, &j->in[i], &err) ? fail(&err) : EXIT_OK;
    fac_type declared = fac_value_type(v);
    if (o.shapes.n) declared.dims = input_type(v, &o.shapes, o.batch).dims;
    const int code = photo_plan_input(&o.photo, &j->a, declared, &j->plan);
    if (code) return code;
    return photo_tensor(file, &j->plan, &j->in[i], &err) ? fail(&err) : EXIT_OK;
}

static int load_inputs(job *j) {
    j->nin = fac_graph_inputs(j->a.graph);
    j->in = calloc((size_t)j->nin + 1, sizeof *j->in);
    if (!j->in) return fail_text("out of memory");
    for (int i = 0; i < o.inputs.n; i++) {
        const int code = load_input(j, o.inputs.at[i]);
        if (code) return code;
    }
    for (int i = 0; i < j->nin && o.inputs.n; i++)
        if (!j->in[i])
            return fail_text("input %s is not given",
                             fac_value_name(fac_graph_input(j->a.graph, i)));
    return EXIT_OK;
}

/* ---- work ---- */

static int work(job *j, list args, fac_verify_opts *opts) {
    fac_error err = { 0 };
    fac_verdict v;
    int code = model_load(args.at[0], o.weights, &o.shapes, 0, &j->a);
    if (!code) code = model_load(args.at[1], o.weights, &o.shapes, 0, &j->b);
    if (!code) code = batch_fits(j->a.graph, fac_graph_inputs(j->a.graph) > 0, o.batch);
    if (!code) code = batch_fits(j->b.graph, fac_graph_inputs(j->b.graph) > 0, o.batch);
    if (!code) code = device_open(&o.device, &j->device);
    if (!code) code = load_inputs(j);
    if (code) return verdict_error(code);
    opts->n = o.inputs.n ? j->nin : 0;
    opts->inputs = j->in;
    opts->self = j;
    opts->segment = take_segment;
    j->segments = o.json ? cJSON_CreateArray() : NULL;
    return fac_verify(j->a.graph, j->b.graph, j->device, opts, &v, &err) ? verdict_error(fail(&err))
                                                                         : report(j, &v);
}

static int run(list args) {
    static const char *const modes[] = { "full", "exact", "bound", "data" };
    const verb *self = verb_find("verify");
    int mode = 0;
    const int wrong = arguments_fit(self, args, 2, 2, "which two models?");
    if (wrong) return wrong;
    while (o.mode && mode < MODES && strcmp(modes[mode], o.mode)) mode++;
    if (mode == MODES)
        return usage_error(self, "--mode is full, exact, bound or data, not \"%s\"", o.mode);
    if (o.inputs.n && mode == FAC_VERIFY_EXACT)
        return usage_error(
            self, "--inputs goes with --mode full, bound or data: exact makes its own numbers");
    const int idle = photo_options_fit(&o.photo, self, (list){ 0 }, o.inputs);
    if (idle) return idle;
    const bool any = option_given(&o.rtol) || option_given(&o.atol);
    fac_verify_opts opts = { .mode = (fac_verify_mode)mode,
                             .seed = (uint64_t)o.seed,
                             .rounds = (int)o.rounds,
                             .batch = o.batch,
                             .rtol = tolerance(o.rtol, any),
                             .atol = tolerance(o.atol, any),
                             .whole = o.whole,
                             .brief = o.brief };
    job j = { 0 };
    const int code = work(&j, args, &opts);
    for (int i = 0; i < j.nin && j.in; i++) fac_tensor_free(j.in[i]);
    free(j.in);
    cJSON_Delete(j.segments);
    fac_device_free(j.device);
    model_free(&j.a);
    model_free(&j.b);
    return code;
}

const verb verb_verify = {
    .name = "verify",
    .summary = "check whether two models are the same function",
    .usage = "facula verify A B [options]",
    .options = options,
    .examples = "verify model.onnx tiled.onnx\nverify model.onnx edited.onnx --mode data --inputs "
                "photo.jpg\nverify a.onnx b.onnx --mode bound --verbose",
    .run = run,
    .list = photo_presets,
    .more =
        "full says \"same\" when real numbers agree on inputs of many sizes, and remainders modulo "
        "primes are\nequal: sums of these are exact in any order, and each function becomes a "
        "table that depends on the\nop and its attributes.  \"different\" names real inputs on "
        "which the outputs differ by more than\nrounding.\n\nbound computes gamma_K sum |a||b| "
        "beside real numbers, from value to value where both models have\nequal ones.  bound and "
        "data prove nothing, so they never say \"same\".\n\nExit code: " VERDICT_CODES "."
};
