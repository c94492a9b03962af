/* facula quantize: a model with smaller numbers. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "analyze/kind.h"
#include "json.h"
#include "quantize.h"
#include "quantize_sweep.h"
#include "run/sample_files.h"
#include "text/quantize_gguf.h"

static struct {
    const char *scheme, *out, *data, *set, *calibrate, *activations, *histograms, *rest;
    list keep;
    long samples, opset;
    double percentile;
    bool per_tensor, reduce_range, even, sweep, json;
    input_options input;
    device_options device;
} o = { .samples = 100 };

static const option options[] = {
    { "--scheme", OPTION_TEXT, &o.scheme, "NAME", "what numbers become; needed, see below" },
    { "-o", OPTION_OUT, &o.out, "FILE",
      "the ONNX or GGUF file to write; of a network of few bits also FILE.fac" },
    { "--data", OPTION_TEXT, &o.data, "DIR",
      "samples: a folder of photos, .npy, .npz or .pb; with --set, where the data set is" },
    { "--set", OPTION_TEXT, &o.set, "NAME",
      "a data set with labels (`facula help train`): print the accuracy before and after" },
    { "--samples", OPTION_INT, &o.samples, "N", "run at most N samples; default 100",
      OPTION_COUNT },
    { "--calibrate", OPTION_TEXT, &o.calibrate, "HOW",
      "ranges of activations: minmax (default), percentile or entropy" },
    { "--percentile", OPTION_REAL, &o.percentile, "P",
      "with --calibrate percentile: of numbers that stay inside, in percent; default 99.999",
      "(50, 100]" },
    { "--activations", OPTION_TEXT, &o.activations, "u8|i8", "type of activations; default u8" },
    { "--per-tensor", OPTION_FLAG, &o.per_tensor, NULL,
      "one scale per weight instead of one per output channel" },
    { "--reduce-range", OPTION_FLAG, &o.reduce_range, NULL,
      "weights of 7 bits, for other runtimes on processors without VNNI" },
    { "--even", OPTION_FLAG, &o.even, NULL,
      "of lq:wWaA: even levels of activations; faster on AVX-512 and AVX2" },
    { "--rest", OPTION_TEXT, &o.rest, "int8|float",
      "of lq:wWaA: weights of the first and the last layer; default float" },
    { "--sweep", OPTION_FLAG, &o.sweep, NULL,
      "of lq:wWaA: print what each layer alone loses at 1 to 4 bits; with -o FILE.svg or .png also "
      "a chart" },
    { "--histograms", OPTION_OUT, &o.histograms, "FILE",
      "of lq:wWaA: draw weights and activations with their levels and thresholds to a .svg or "
      ".png" },
    { "--keep", OPTION_LIST, &o.keep, "PATTERN",
      "layers that stay floats: names, modules, op:conv2d or kind:Linear; * stands for any text; "
      "may be repeated" },
    { "--opset", OPTION_INT, &o.opset, "N", "opset of the file, 13 to 26; default 18", "[13, 26]" },
    INPUT_OPTIONS(o.input),
    LINK_ROOT_OPTION,
    DEVICE_OPTIONS(o.device),
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

/* ---- what was asked for ---- */

static const verb *self(void) { return verb_find("quantize"); }

static bool chosen(const char *text, const char *const names[], int *to) {
    for (int k = 0; names[k]; k++)
        if (!text || !strcmp(names[k], text)) {
            *to = k;
            return true;
        }
    return false;
}

static int understand(fac_integers *how) {
    static const char *const ways[] = { "minmax", "percentile", "entropy", NULL };
    static const char *const types[] = { "u8", "i8", NULL };
    int way, type;
    bool bytes;
    if (!rest_chosen(o.rest, &bytes))
        return usage_error(self(), "--rest is int8 or float, not \"%s\"", o.rest);
    if (!chosen(o.calibrate, ways, &way))
        return usage_error(self(), "--calibrate is minmax, percentile or entropy, not \"%s\"",
                           o.calibrate);
    if (!chosen(o.activations, types, &type))
        return usage_error(self(), "--activations is u8 or i8, not \"%s\"", o.activations);
    *how = (fac_integers){ .scheme = o.scheme,
                           .nkeep = o.keep.n,
                           .keep = o.keep.at,
                           .calibration = (fac_calibration)way,
                           .percentile = o.percentile,
                           .is_signed = type == 1,
                           .per_tensor = o.per_tensor,
                           .rest_int8 = bytes,
                           .even_levels = o.even,
                           .reduce_range = o.reduce_range };
    return EXIT_OK;
}

static bool is_learned(void) { return !strncmp(o.scheme, "lq:", 3); }

/* Of a scheme that is known. */
static int input_bits(void) { return atoi(strrchr(o.scheme, 'a') + 1); }

static bool asks_for_integers(void) {
    return o.calibrate || o.percentile != 0 || o.activations || o.per_tensor || o.reduce_range;
}

static bool to_packed(void) {
    const size_t n = strlen(o.out);
    return n > 4 && !strcmp(o.out + n - 4, ".fac");
}

static int check(const list *args) {
    bool calibrates;
    const int wrong = arguments_fit(self(), *args, 1, 1, "which model?");
    if (wrong) return wrong;
    if (!o.scheme || (!o.out && !o.sweep))
        return usage_error(self(), "%s is missing", o.scheme ? "-o" : "--scheme");
    if (gguf_scheme(o.scheme)) {
        static const char *const own[] = { "--scheme", "-o", "--memory-limit", "--json", NULL };
        return options_only(self(), own, "is not for language models, which this scheme is of");
    }
    if (!fac_integers_known(o.scheme, &calibrates))
        return usage_error(self(), "there is no scheme \"%s\"", o.scheme);
    const bool sampled =
        o.data || o.set || o.input.named.n || o.input.random || is_folder(args->at[0]);
    if (is_learned() && asks_for_integers())
        return usage_error(self(), "--calibrate, --percentile, --activations, --per-tensor and "
                                   "--reduce-range go with the schemes of 8 bits");
    if (o.sweep && !is_learned())
        return usage_error(self(), "--sweep goes with scheme lq:wWaA, not %s", o.scheme);
    if ((o.rest || o.even) && (o.sweep || !is_learned()))
        return usage_error(self(), "--rest and --even go with scheme lq:wWaA and -o FILE");
    if (o.even && (input_bits() == 1 || input_bits() > 4))
        return usage_error(self(), "--even goes with inputs of 2 to 4 bits, not those of %s",
                           o.scheme);
    if (o.histograms && (o.sweep || !is_learned()))
        return usage_error(self(), "--histograms goes with scheme lq:wWaA and -o FILE");
    if (calibrates && !sampled)
        return usage_error(self(), "scheme %s needs samples: --data DIR is missing", o.scheme);
    return EXIT_OK;
}

/* ---- samples ---- */

static sweep_samples swept;

static fac_status take(void *by, fac_tensor *const in[], fac_error *err) {
    if (o.sweep || o.histograms) {
        const fac_status status = sweep_keep(&swept, in, err);
        if (status || o.sweep) return status;
    }
    return fac_calibrator_add(by, in, err);
}

static int from_folder(const model *m, quantized *q) {
    sample_files files;
    sample_walk w = { .m = m,
                      .input = &o.input,
                      .v = self(),
                      .most = o.samples,
                      .take = take,
                      .self = q->by,
                      .plan = { .from = PHOTO_NONE } };
    int code = sample_files_list(o.data, &files);
    if (!code) code = sample_files_walk(&w, &files);
    sample_files_free(&files);
    q->samples = w.taken;
    q->plan = w.plan;
    if (code || q->plan.from != PHOTO_NONE) return code;
    return photo_options_fit(&o.input.photo, self(), (list){ 0 }, (list){ 0 });
}

/* One sample, of --input or random. */
static int from_options(const model *m, quantized *q) {
    inputs in = { 0 };
    fac_error err = { 0 };
    int code = inputs_load(m, &o.input, self(), (list){ 0 }, &in);
    if (!code && take(q->by, in.tensor, &err)) code = fail(&err);
    q->samples = !code;
    q->plan = in.plan;
    inputs_free(&in);
    return code;
}

static fac_status from_set(const train_job *j, quantized *q, fac_error *err) {
    const long size = o.samples < train_given.batch ? o.samples : train_given.batch;
    const fac_batches order = { .size = size, .shuffle = true, .seed = 1 };
    const int64_t batches = fac_batches_count(&j->train, &order);
    fac_status status = FAC_OK;
    for (int64_t i = 0; i < batches && q->samples < o.samples && !status; i++) {
        fac_tensor *x, *labels;
        status = fac_batch(&j->train, &order, 0, i, &x, &labels, err);
        if (status) break;
        status = take(q->by, &x, err);
        q->samples += (long)fac_tensor_type(x).dims.d[0];
        fac_tensor_free(x);
        fac_tensor_free(labels);
    }
    return status;
}

/* ---- the whole ---- */

static double parameter_bytes(const fac_graph *g) {
    double bytes = 0;
    for (int i = 0; i < fac_graph_params(g); i++) {
        const fac_type t = fac_value_type(fac_graph_param(g, i));
        bytes += (double)fac_type_bytes(&t);
    }
    return bytes;
}

static int write_packed(const fac_graph *g, quantized *q) {
    fac_error err = { 0 };
    struct stat s;
    if (fac_packed_save(g, o.out, NULL, &err)) return fail(&err);
    q->bytes = stat(o.out, &s) ? 0 : (double)s.st_size;
    return EXIT_OK;
}

static int write_onnx(const fac_graph *g, quantized *q) {
    fac_error err = { 0 };
    fac_onnx_saved saved = { 0 };
    const fac_onnx_save_opts opts = { .opset = (int)o.opset, .saved = &saved };
    if (fac_onnx_save(g, o.out, &opts, &err)) return fail(&err);
    q->bytes = (double)saved.bytes + (double)saved.data;
    return EXIT_OK;
}

/* ONNX has no learned levels, which a packed file begins with, too: weights are written as what
 * they are quantized to. */
static int write_levels(const fac_graph *g, quantized *q) {
    fac_error err = { 0 };
    fac_graph *plain;
    if (fac_graph_dequantize(g, &plain, &err)) return fail(&err);
    const int code = write_onnx(plain, q);
    fac_graph_free(plain);
    return code;
}

static int write_model(const fac_graph *g, quantized *q) {
    return to_packed() ? write_packed(g, q) : write_levels(g, q);
}

static fac_status test(const train_job *j, const fac_graph *g, quantized *q, fac_error *err) {
    scores before = { 0 }, after = { 0 };
    train_job other = *j;
    fac_status status = evaluate_scores(j, g, &before, err);
    other.m.graph = (fac_graph *)(uintptr_t)g; /* read only there */
    if (!status) status = evaluate_scores(&other, NULL, &after, err);
    q->tested = before.samples;
    q->right_before = before.right;
    q->right = after.right;
    q->same = before.same;
    recordings_free(&before.heard);
    recordings_free(&after.heard);
    return status;
}

/* What the quantizers of the result are given by the same samples. */
static int count_levels(const fac_graph *g, fac_device *device, quantized *q) {
    fac_error err = { 0 };
    if (!o.histograms) return EXIT_OK;
    fac_status status = fac_quantizers_new(g, device, &q->levels, &err);
    for (int i = 0; i < swept.n && !status; i++)
        status = fac_quantizers_add(q->levels, swept.at + i * swept.inputs, &err);
    return status ? fail(&err) : levels_draw(q->levels, o.scheme, o.histograms);
}

static int finish(const train_job *labelled, fac_device *device, quantized *q) {
    fac_error err = { 0 };
    fac_graph *g = NULL;
    if (fac_calibrator_finish(q->by, &g, &err)) return fail(&err);
    int code = write_model(g, q);
    if (!code) code = count_levels(g, device, q);
    if (!code && labelled && test(labelled, g, q, &err)) code = fail(&err);
    fac_graph_free(g);
    if (code) return code;
    return o.json ? quantize_json(q) : quantize_print(q);
}

static int sweep(const fac_graph *g, fac_device *device, const train_job *labelled) {
    const sweep_what what = { .model = g,
                              .device = device,
                              .scheme = o.scheme,
                              .out = o.out,
                              .keep = &o.keep,
                              .labelled = labelled,
                              .samples = &swept,
                              .json = o.json };
    return quantize_sweep(&what);
}

static int begin(const fac_graph *g, fac_device *device, quantized *q) {
    fac_error err = { 0 };
    fac_integers how;
    const int code = understand(&how);
    if (code) return code;
    swept.inputs = fac_graph_inputs(g);
    if (o.sweep) return EXIT_OK;
    q->bytes_before = parameter_bytes(g);
    return fac_calibrator_new(g, device, &how, &q->by, &err) ? fail(&err) : EXIT_OK;
}

static int with_files(const char *path, quantized *q) {
    model m = { 0 };
    fac_device *device = NULL;
    int code =
        o.data ? EXIT_OK : photo_options_fit(&o.input.photo, self(), (list){ 0 }, o.input.named);
    if (!code) code = device_open(&o.device, &device);
    inputs_given = &o.input.named;
    if (!code) code = model_load(path, NULL, &o.input.shapes, o.input.seed, &m);
    if (!code) code = begin(m.graph, device, q);
    if (!code && o.data)
        code = from_folder(&m, q);
    else if (!code && (o.input.named.n || o.input.random))
        code = from_options(&m, q);
    if (!code) code = o.sweep ? sweep(m.graph, device, NULL) : finish(NULL, device, q);
    fac_quantizers_free(q->levels);
    fac_calibrator_free(q->by);
    model_free(&m);
    fac_device_free(device);
    return code;
}

static int with_set(const char *path, quantized *q) {
    static train_job j;
    fac_error err = { 0 };
    const evaluate_what what = { path, o.set, o.input.photo.preset };
    train_given.data = o.data;
    train_given.device = o.device;
    int code = evaluate_open(self(), &what, &j, &q->plan);
    if (!code) code = begin(j.m.graph, j.dev, q);
    if (!code && from_set(&j, q, &err)) code = fail(&err);
    if (!code) code = o.sweep ? sweep(j.m.graph, j.dev, &j) : finish(&j, j.dev, q);
    fac_quantizers_free(q->levels);
    fac_calibrator_free(q->by);
    train_free(&train_given, &j);
    return code;
}

static int run(list args) {
    quantized q = {
        .scheme = o.scheme, .out = o.out, .drawn = o.histograms, .plan = { .from = PHOTO_NONE }
    };
    int code = check(&args);
    if (code) return code;
    if (gguf_scheme(o.scheme)) {
        code = memory_limit(o.device.memory_limit);
        return code ? code : gguf_quantize(args.at[0], o.scheme, o.out, o.json);
    }
    const bool labelled = o.set || is_folder(args.at[0]);
    code = labelled ? with_set(args.at[0], &q) : with_files(args.at[0], &q);
    sweep_free(&swept);
    return code;
}

static void schemes(void) {
    printf("\nschemes\n");
    for (int k = 0; fac_integers_scheme(k); k++)
        help_row(fac_integers_scheme(k), 14, fac_integers_about(k));
    gguf_schemes();
}

const verb verb_quantize = {
    .name = "quantize",
    .summary = "store a model in integers of 8 or 4 bits, or in levels of 1 to 4 bits",
    .usage = "facula quantize MODEL --scheme NAME -o FILE [--data DIR] [options]",
    .options = options,
    .examples = "quantize model.onnx --scheme int8:static --data photos -o int8.onnx\n"
                "quantize runs/first --scheme lq:w2a2 --set mnist --data data/mnist -o bits.onnx\n"
                "quantize bits.onnx --scheme int8:static --data photos -o bits.fac\n"
                "quantize model.gguf --scheme q4_0 -o small.gguf",
    .run = run,
    .list = schemes,
    .more =
        "MODEL is FILE.onnx, zoo:NAME, or the --out folder of a training.  The result is an ONNX\n"
        "file that any runtime runs.  The table shows what each layer costs: the ratio of signal\n"
        "to error of its weights and of what later layers read, in dB.  A layer with few dB is\n"
        "one for --keep.  Schemes of 8 and 4 bits leave layers of fewer bits as they are:\n"
        "int8:static makes bytes of the first and the last layer of such a network."
};
