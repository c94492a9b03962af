/* facula run: one model, once. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli.h"
#include "files.h"
#include "inputs.h"
#include "json.h"
#include "analyze/kind.h"
#include "labels.h"
#include "run_sound.h"
#include "run_stats.h"
#include "show_photo.h"

static struct {
    device_options device;
    input_options input;
    const char *weights, *output_dir, *labels, *precision;
    list outputs;
    long top;
    bool json, picture, stats, verbose;
} o = { .top = 5 };

static const option options[] = {
    INPUT_OPTIONS(o.input),
    { "--output", OPTION_OUTS, &o.outputs, "NAME=FILE",
      "write an output to .npy, .npz, .pb or .safetensors; may be repeated" },
    { "--output-dir", OPTION_TEXT, &o.output_dir, "DIR", "write every output to DIR/NAME.npy" },
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME: .safetensors, .pth, .npz" },
    LINK_ROOT_OPTION,
    { "--labels", OPTION_TEXT, &o.labels, "FILE",
      "names of the classes, one per line; may be a pipe: /dev/stdin, <(...)" },
    { "--top", OPTION_INT, &o.top, "N", "how many classes to print; default 5", "[0, 100]" },
    { "--picture", OPTION_FLAG, &o.picture, NULL, "draw the photo beside its classes" },
    { "--stats", OPTION_FLAG, &o.stats, NULL,
      "also print time, parameters, multiply-adds and memory" },
    { "--verbose", OPTION_FLAG, &o.verbose, NULL,
      "also print which nodes the device leaves to the cpu, and which results change their "
      "layout" },
    { "--precision", OPTION_TEXT, &o.precision, "NAME", PRECISION_HELP },
    DEVICE_OPTIONS(o.device),
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

enum { TOP = 100 }; /* of classes, as --top has it */

typedef struct job {
    model m;
    fac_device *device;
    fac_program *program;
    inputs in;
    fac_tensor **out; /* nout of them */
    int nout;
    labels names;
    file_names files;
    bool named; /* names were looked for */
    fac_plan_stat stat;
    double ms;
} job;

static int save(const fac_tensor *t, const char *name, const char *path) {
    fac_error err = { 0 };
    return tensor_save(t, name, path, &err) ? fail(&err) : EXIT_OK;
}

/* "a_b" keeps its own name, also where "a/b" comes before it. */
static bool name_files(job *j) {
    bool good = true;
    for (int i = 0; i < fac_graph_outputs(j->m.graph); i++) {
        const char *name = fac_graph_output_name(j->m.graph, i);
        if (file_name_ordinary(name)) good &= file_name(&j->files, name, NAMES_FLAT) != NULL;
    }
    return good;
}

/* The files that an output goes to; the last one written is reported. */
static int save_output(job *j, int i, char *file, size_t size) {
    const char *name = fac_graph_output_name(j->m.graph, i);
    int code = EXIT_OK;
    file[0] = 0;
    for (int k = 0; k < o.outputs.n && !code; k++) {
        const char *equals = strchr(o.outputs.at[k], '=');
        if (strlen(name) != (size_t)(equals - o.outputs.at[k]) ||
            strncmp(o.outputs.at[k], name, strlen(name)))
            continue;
        snprintf(file, size, "%s", equals + 1);
        code = save(j->out[i], name, file);
    }
    if (o.output_dir && !code) {
        const char *own = file_name(&j->files, name, NAMES_FLAT);
        if (!own) return fail_text("out of memory");
        if (mkdir(o.output_dir, 0777) && access(o.output_dir, W_OK))
            return fail_text("%s: cannot be made", o.output_dir);
        code = path_join(file, size, o.output_dir, own, ".npy");
        if (!code) code = output_check(file);
        if (!code) code = save(j->out[i], name, file);
    }
    return code;
}

static int check_outputs(const job *j) {
    for (int k = 0; k < o.outputs.n; k++) {
        const char *equals = strchr(o.outputs.at[k], '=');
        bool found = false;
        if (!equals)
            return usage_error(verb_find("run"), "--output needs NAME=FILE, not \"%s\"",
                               o.outputs.at[k]);
        for (int i = 0; i < fac_graph_outputs(j->m.graph); i++) {
            const char *name = fac_graph_output_name(j->m.graph, i);
            found |= strlen(name) == (size_t)(equals - o.outputs.at[k]) &&
                     !strncmp(o.outputs.at[k], name, strlen(name));
        }
        if (!found)
            return fail_text("the model has no output \"%.*s\"; its first is %s",
                             (int)(equals - o.outputs.at[k]), o.outputs.at[k],
                             fac_graph_output_name(j->m.graph, 0));
    }
    return EXIT_OK;
}

/* Scores of a classifier: one row of at least two numbers in the first output. */
static bool are_scores(const fac_tensor *out, int64_t *n) {
    fac_type t = fac_tensor_type(out);
    int wide = 0;
    *n = fac_dims_count(&t.dims);
    for (int k = 0; k < t.dims.n; k++) wide += t.dims.d[k] > 1;
    return fac_dtype_get(t.dtype)->kind == 'f' && *n >= 2 && wide == 1;
}

/* The best of them, and what they are called; an exit code. */
static int best_classes(job *j, int64_t n, int most, fac_class *top, int *found) {
    fac_error err = { 0 };
    int code = j->named ? EXIT_OK : labels_find(&j->m, o.labels, &j->names);
    j->named = true;
    if (!code) code = labels_fit(&j->names, n);
    if (code) return code;
    return fac_top(j->out[0], 0, j->names.names, most, top, found, &err) ? fail(&err) : EXIT_OK;
}

static int no_scores(const job *j) {
    const fac_type t = fac_tensor_type(j->out[0]);
    char dims[128];
    return fail_text("--%s is for a row of scores; the first output, %s, is %s[%s]",
                     o.labels ? "labels" : "top", fac_graph_output_name(j->m.graph, 0),
                     fac_dtype_get(t.dtype)->name,
                     dims_text(j->m.graph, &t.dims, dims, sizeof dims));
}

static int print_values(const fac_tensor *t) {
    fac_tensor *f = NULL;
    fac_error err = { 0 };
    fac_type type = fac_tensor_type(t);
    int64_t n = fac_dims_count(&type.dims);
    if (type.dtype == FAC_TEXT) return EXIT_OK;
    const fac_status status = fac_tensor_convert(t, FAC_F64, &f, &err);
    if (status) return status == FAC_E_NOMEM ? fail(&err) : EXIT_OK;
    const double *x = fac_tensor_data(f);
    printf("  ");
    for (int64_t i = 0; i < n && i < 8; i++) printf(" %.6g", x[i]);
    printf("%s\n", n > 8 ? " ..." : "");
    fac_tensor_free(f);
    return EXIT_OK;
}

static int report(job *j, cJSON *rows) {
    const fac_graph *g = j->m.graph;
    cJSON *root = o.json ? cJSON_CreateObject() : NULL, *tops = NULL, *outs = NULL;
    int64_t n = 0;
    fac_class top[TOP];
    int found = 0, code = EXIT_OK;
    bool photo = false;
    for (int i = 0; i < fac_graph_inputs(g); i++) photo |= j->in.photo[i] != NULL;
    const bool asked = option_given(&o.top) || o.labels, scores = are_scores(j->out[0], &n);
    if (asked && !scores)
        code = no_scores(j);
    else if ((photo || asked) && scores && o.top)
        code = best_classes(j, n, (int)o.top, top, &found);
    if (code) {
        cJSON_Delete(root);
        return code;
    }
    if (root) {
        tops = cJSON_AddArrayToObject(root, "top");
        outs = cJSON_AddArrayToObject(root, "outputs");
    }
    char name[64];
    if (found && !root && o.picture && j->in.photo[0]) {
        code = show_photo(j->in.photo[0], top, found);
    } else {
        for (int k = 0; k < found; k++) {
            const char *label = label_of(&top[k], name, sizeof name);
            if (root) {
                cJSON *t = cJSON_CreateObject();
                cJSON_AddNumberToObject(t, "index", (double)top[k].index);
                cJSON_AddStringToObject(t, "label", label);
                json_number(t, "p", top[k].probability, 7);
                cJSON_AddItemToArray(tops, t);
            } else {
                printf("%6.2f %%  %4d  %s\n", 100 * top[k].probability, (int)top[k].index, label);
            }
        }
    }
    if (root) {
        photo_plan_json(&j->in.plan, root);
        if (found) cJSON_AddStringToObject(root, "labels", labels_from(&j->names, n));
    } else if (!code) {
        photo_plan_print(&j->in.plan);
        if (found && o.picture) putchar('\n');
    }
    for (int i = 0; i < fac_graph_outputs(g) && !code; i++) {
        char file[1024], dims[128];
        fac_type t = fac_tensor_type(j->out[i]);
        code = save_output(j, i, file, sizeof file);
        if (root) {
            cJSON *e = cJSON_CreateObject();
            cJSON_AddStringToObject(e, "name", fac_graph_output_name(g, i));
            cJSON_AddStringToObject(e, "dtype", fac_dtype_get(t.dtype)->name);
            cJSON_AddItemToObject(e, "shape", json_dims(&t.dims));
            if (file[0])
                cJSON_AddStringToObject(e, "file", file);
            else
                cJSON_AddNullToObject(e, "file");
            cJSON_AddItemToArray(outs, e);
        } else if (!found || file[0]) {
            printf("%s %s[%s]%s%s\n", fac_graph_output_name(g, i), fac_dtype_get(t.dtype)->name,
                   dims_text(g, &t.dims, dims, sizeof dims), file[0] ? " -> " : "", file);
            if (!code && !file[0]) code = print_values(j->out[i]);
        }
    }
    if (root && code) {
        cJSON_Delete(root);
    } else if (root) {
        if (j->in.photo[0]) cJSON_AddStringToObject(root, "photo", j->in.photo[0]);
        json_number(root, "ms", j->ms, 6);
        if (rows)
            cJSON_AddItemToArray(rows, root);
        else
            code = json_print(root);
    } else if (!code && !o.picture && !o.stats) {
        printf("%.2f ms on %s (%s)%s\n", j->ms, fac_device_name(j->device),
               fac_device_about(j->device), j->m.random ? "; random weights" : "");
    }
    return code;
}

static void forget(job *j) {
    inputs_free(&j->in);
    tensors_free(j->out, j->nout);
    j->out = NULL;
}

/* A run is over when its results are there. */
static fac_status run_and_wait(job *j, fac_error *err) {
    fac_status status = fac_program_run(j->program, j->in.tensor, j->out, err);
    return status ? status : fac_device_sync(j->device, err);
}

/* Loads the inputs, runs, reports. */
static int once(job *j, list files, cJSON *rows) {
    fac_error err = { 0 };
    int code = inputs_load(&j->m, &o.input, verb_find("run"), files, &j->in);
    j->nout = fac_graph_outputs(j->m.graph);
    if (!code && !(j->out = tensors_new(j->nout))) code = fail_text("out of memory");
    if (code) return code;
    if (fac_program_plan(j->program, j->in.tensor, &j->stat, &err))
        return kind_fail_run(&err, j->m.graph, j->in.random);
    double start = now();
    if (run_and_wait(j, &err)) return kind_fail_run(&err, j->m.graph, j->in.random);
    j->ms = 1e3 * (now() - start);
    code = o.verbose ? run_steps_print(j->program, j->device) : EXIT_OK;
    return code ? code : report(j, rows);
}

/* Several photos for a model with one input: one run each. */
static bool many_photos(const job *j, list files) {
    bool photos = fac_graph_inputs(j->m.graph) == 1 && files.n > 1;
    for (int i = 0; i < files.n; i++) photos &= is_image(files.at[i]);
    return photos;
}

/* The median of some more runs. */
static int print_stats(job *j) {
    enum { RUNS = 15 };
    fac_error err = { 0 };
    double ms[RUNS];
    for (int i = 0; i < RUNS; i++) {
        double start = now();
        if (run_and_wait(j, &err)) return fail(&err);
        double t = 1e3 * (now() - start);
        int k = i;
        for (; k > 0 && ms[k - 1] > t; k--) ms[k] = ms[k - 1];
        ms[k] = t;
    }
    return run_stats_print(j->program, j->device, j->m.graph, ms[RUNS / 2], RUNS, j->stat.arena);
}

static int work(job *j, list args) {
    fac_error err = { 0 };
    fac_program_opts opts = { 0 };
    numerics how;
    const verb *self = verb_find("run");
    const list files = { args.at + 1, args.n - 1 };
    int code = precision_read(self, o.precision, &how);
    if (!code) code = photo_options_fit(&o.input.photo, self, files, o.input.named);
    if (!code && o.picture && !photo_among(files) && !photo_among(o.input.named))
        code = usage_error(self, "--picture is for photos, and no input is one");
    if (!code) code = device_open(&o.device, &j->device);
    inputs_given = &o.input.named;
    if (!code) code = model_load(args.at[0], o.weights, &o.input.shapes, o.input.seed, &j->m);
    if (!code) code = precision_apply(&how, &j->m.graph);
    opts.precision = how.products;
    if (!code) code = check_outputs(j);
    if (!code && !name_files(j)) code = fail_text("out of memory");
    if (code) return code;
    if (fac_program_new(j->m.graph, j->device, &opts, &j->program, &err)) return fail(&err);
    if (files.n && means_sounds(files.at[0])) {
        const sound_run how_heard = { &j->m,    j->device,  j->program, &j->names,
                                      o.labels, (int)o.top, o.json,     false };
        return run_sounds(&how_heard, files);
    }
    if (!many_photos(j, files)) {
        code = once(j, files, NULL);
    } else {
        cJSON *root = o.json ? cJSON_CreateObject() : NULL,
              *rows = root ? cJSON_AddArrayToObject(root, "photos") : NULL;
        for (int i = 0; i < files.n && !code; i++) {
            forget(j);
            if (!o.json) printf("%s%s\n", i ? "\n" : "", files.at[i]);
            code = once(j, (list){ files.at + i, 1 }, rows);
        }
        if (root && !code)
            code = json_print(root);
        else
            cJSON_Delete(root);
    }
    return !code && o.stats && !o.json ? print_stats(j) : code;
}

static int run(list args) {
    static job j;
    const int wrong = arguments_fit(verb_find("run"), args, 1, ANY_NUMBER, "which model?");
    if (wrong) return wrong;
    int code = work(&j, args);
    forget(&j);
    fac_program_free(j.program);
    model_free(&j.m);
    labels_free(&j.names);
    file_names_free(&j.files);
    fac_device_free(j.device);
    return code;
}

const verb verb_run = {
    .name = "run",
    .summary = "run a model on photos, sounds or tensors",
    .usage = "facula run MODEL [PHOTO|SOUND|TENSOR...] [options]",
    .options = options,
    .more = "MODEL is an ONNX file, zoo:NAME, or a text of `facula show`.  The files after it are "
            "its inputs in\norder; a model with one input takes any number of photos, one run "
            "each.  For a photo the likeliest\nclasses are printed.  Size, layout and type of a "
            "photo are those of the model's input, where it\nstates them.\n\nA sound (WAV, and "
            "through libsndfile FLAC, Ogg, MP3) is read in windows as long as the model's\ninput, "
            "at the rate that the model's metadata state.\n\n--output-dir: characters that file "
            "systems forbid become _, and a name that is already taken gets\na number at its end.",
    .list = photo_presets,
    .examples = "run model.onnx photo.jpg --labels names.txt\nrun zoo:resnet50 --weights "
                "resnet50.safetensors photo.jpg --top 3\nrun model.onnx --input x=x.npy --output "
                "y=y.npy\nrun model.onnx --random --stats --threads 1",
    .run = run
};
