/* ONNX export: what is written is read back and computes the same.  Every case of every op that ONNX can say, at several
 * opsets; networks of the zoo; leaves, names, symbols and outputs in all their forms; and what is left behind when a file
 * cannot be written: nothing. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "allocations.h"
#include "base/rng.h"
#include "facula/facula.h"
#include "facula/backend.h"
#include "facula/ops.h"
#include "graph/graph_internal.h"

enum { OPERANDS = 16 };

static fac_device *device;
static fac_error err;
static uint64_t seed, stream;
static char folder[64], path[96];
#define OK(call) do { if (call) fail_msg("%s: %s", #call, err.text); } while (0)

/* ---- contents and comparison ---- */

static char kind(fac_dtype d) { return fac_dtype_get(d)->kind; }

static fac_tensor *random_tensor(fac_type type, double lo, double hi) {
    int64_t n = fac_dims_count(&type.dims);
    double *x = calloc((size_t)n + 1, sizeof *x);
    stream++;
    for (int64_t k = 0; k < n; k++) {
        double u = fac_random_uniform(seed, stream, (uint64_t)k);
        x[k] = kind(type.dtype) == 'f' ? lo + (hi - lo) * u : kind(type.dtype) == 'b' ? (double)(u < 0.5)
            : floor(lo + (hi - lo + 1) * u);
        if (kind(type.dtype) == 'u') x[k] = fabs(x[k]);
    }
    fac_tensor *wide = NULL, *t = NULL;
    OK(fac_tensor_new(NULL, FAC_F64, type.dims, &wide, &err));
    OK(fac_tensor_write(wide, x, (size_t)n * sizeof *x, &err));
    OK(fac_tensor_convert(wide, type.dtype, &t, &err));
    fac_tensor_free(wide);
    free(x);
    return t;
}

/* The largest difference, relative above 1; INFINITY when the types differ. */
static double difference(const fac_tensor *a, const fac_tensor *b) {
    fac_type s = fac_tensor_type(a), t = fac_tensor_type(b);
    if (s.dtype != t.dtype || !fac_dims_equal(&s.dims, &t.dims)) return INFINITY;
    bool real = kind(s.dtype) == 'f';
    fac_tensor *x = NULL, *y = NULL;
    OK(fac_tensor_convert(a, real ? FAC_F64 : FAC_I64, &x, &err));
    OK(fac_tensor_convert(b, real ? FAC_F64 : FAC_I64, &y, &err));
    double worst = 0;
    for (int64_t k = 0; k < fac_dims_count(&s.dims); k++) {
        double p = ((const double *)fac_tensor_data(x))[k], q = ((const double *)fac_tensor_data(y))[k];
        int64_t i = ((const int64_t *)fac_tensor_data(x))[k], j = ((const int64_t *)fac_tensor_data(y))[k];
        bool same = real ? p == q || (isnan(p) && isnan(q)) : i == j;
        double e = real && isfinite(p - q) ? fabs(p - q) / fmax(1, fabs(q)) : INFINITY;
        worst = same ? worst : fmax(worst, e);
    }
    fac_tensor_free(x);
    fac_tensor_free(y);
    return worst;
}

static void run(const fac_graph *g, fac_tensor *const in[], fac_tensor *out[], const char *what) {
    fac_program *p = NULL;
    if (fac_program_new(g, device, &(fac_program_opts){ .exact = true }, &p, &err) || fac_program_run(p, in, out, &err))
        fail_msg("%s: %s", what, err.text);
    fac_program_free(p);
}

/* Inputs in the order of g for a graph whose inputs stand in another one, or are fewer. */
static void inputs_by_name(const fac_graph *g, const fac_graph *of, fac_tensor *const in[], fac_tensor *to[]) {
    for (int i = 0; i < fac_graph_inputs(g); i++)
        for (int k = 0; k < fac_graph_inputs(of); k++)
            if (!strcmp(fac_value_name(fac_graph_input(g, i)), fac_value_name(fac_graph_input(of, k)))) to[i] = in[k];
}

/* Saves g, loads it and compares what both make of the same inputs.  The largest difference; -1: it cannot be written. */
static double round_trip(const fac_graph *g, int opset, double lo, double hi, const char *what) {
    fac_tensor *in[OPERANDS] = { 0 }, *want[OPERANDS] = { 0 }, *again[OPERANDS] = { 0 }, *got[OPERANDS] = { 0 };
    fac_onnx_saved saved = { 0 };
    fac_status status = fac_onnx_save(g, path, &(fac_onnx_save_opts){ .opset = opset, .saved = &saved }, &err);
    if (status == FAC_E_UNSUPPORTED) return -1;
    if (status) fail_msg("%s: %s", what, err.text);
    assert_true(opset ? saved.opset == opset : saved.opset >= FAC_ONNX_USUAL);
    fac_graph *h = NULL;
    if (fac_onnx_load(path, NULL, &h, &err)) fail_msg("%s: reading it back: %s", what, err.text);
    assert_int_equal(fac_graph_outputs(g), fac_graph_outputs(h));
    for (int i = 0; i < fac_graph_inputs(g); i++) in[i] = random_tensor(fac_graph_input(g, i)->type, lo, hi);
    inputs_by_name(h, g, in, again);
    run(g, in, want, what);
    run(h, again, got, what);
    double worst = 0;
    for (int k = 0; k < fac_graph_outputs(g); k++) {
        worst = fmax(worst, difference(got[k], want[k]));
        fac_tensor_free(want[k]);
        fac_tensor_free(got[k]);
    }
    for (int i = 0; i < fac_graph_inputs(g); i++) fac_tensor_free(in[i]);
    fac_graph_free(h);
    unlink(path);
    return worst;
}

/* ---- every op ---- */

static double epsilon(fac_dtype d) {
    return d == FAC_F16 ? 0x1p-10 : d == FAC_BF16 ? 0x1p-7 : d == FAC_F32 ? 0x1p-23 : d == FAC_F64 ? 0x1p-52 : 0;
}

static void fill_params(fac_graph *g, double lo, double hi) {
    for (int i = 0; i < fac_graph_params(g); i++) {
        fac_value *v = fac_graph_param(g, i);
        fac_tensor *x = random_tensor(v->type, lo, hi);
        OK(fac_tensor_write(fac_value_tensor(v), fac_tensor_data(x), fac_type_bytes(&v->type), &err));
        fac_tensor_free(x);
    }
}

/* Attributes are f32 in ONNX, ours are f64: what that alone may change. */
static double tolerance(const fac_case *c, const fac_graph *g) {
    fac_dtype d = fac_graph_output(g, 0)->type.dtype;
    return kind(d) == 'f' ? fmax(fmax(c->tolerance, 8 * epsilon(d)), d == FAC_F64 ? 1e-6 : 0) : 0;
}

static bool has_spelling(const fac_op *op) {
    bool plain = false;
    for (const fac_onnx *how = op->onnx; how && how->type; how++)
        plain |= !how->load && !*how->domain && how->since <= FAC_ONNX_NEWEST;
    return plain || op->save || (op->expand && !(op->is & FAC_OP_BODIES));
}

/* What is said at no opset although its op can be: noise. */
static bool exempt(const fac_op *op, const char *problem) { return !strcmp(op->name, "dropout") && strstr(problem, "training"); }

static void one_case(const fac_op *op, const fac_case *c, int opset, bool params, int *written, int *refused) {
    char what[200];
    fac_graph *g = NULL;
    snprintf(what, sizeof what, "%s at opset %d%s", c->problem, opset, params ? ", with parameters" : "");
    if (fac_problem_graph(c->problem, params, &g, &err)) fail_msg("%s: %s", what, err.text);
    fill_params(g, c->lo, c->hi);
    double worst = round_trip(g, opset, c->lo, c->hi, what);
    if (worst < 0) {
        ++*refused;
        if (!op->expand && !strstr(err.text, op->name)) fail_msg("%s: the refusal does not name it: %s", what, err.text);
        if (!opset && has_spelling(op) && !exempt(op, c->problem)) fail_msg("%s: %s", what, err.text);
    } else {
        ++*written;
        if (worst > tolerance(c, g)) fail_msg("%s: differs by %g", what, worst);
    }
    fac_graph_free(g);
}

static void every_case(void **state) {
    static const int opsets[] = { 0, 13, 17, 20, FAC_ONNX_NEWEST };
    (void)state;
    int written[5] = { 0 }, refused[5] = { 0 };
    for (const fac_op *const *op = fac_ops; *op; op++)
        for (const fac_case *c = (*op)->cases; c && c->problem; c++)
            for (int k = 0; k < 5; k++) {
                if ((*op)->is & FAC_OP_BODIES) continue;            /* they come from files, or are made behind the exporter */
                one_case(*op, c, opsets[k], false, &written[k], &refused[k]);
                if (k == 0) one_case(*op, c, opsets[k], true, &written[k], &refused[k]);
            }
    for (int k = 0; k < 5; k++) print_message("opset %d: %d written, %d refused\n", opsets[k], written[k], refused[k]);
}

/* ---- networks ---- */

static void zoo_networks(void **state) {
    static const char *const names[] = { "lenet", "squeezenet1_1", "mobilenet_v2", "efficientnet_lite0", "resnet18" };
    (void)state;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        fac_graph *g = NULL;
        const fac_zoo *zoo = fac_zoo_find(names[k]);
        if (!zoo) fail_msg("the zoo has no %s", names[k]);
        OK(fac_zoo_new(names[k], NULL, seed, &g, &err));
        fac_graph *quiet = fac_graph_inference(g);
        OK(fac_onnx_save(quiet, path, NULL, &err));
        fac_graph *h = NULL;
        OK(fac_onnx_load(path, NULL, &h, &err));
        assert_string_equal(fac_value_name(fac_graph_input(h, 0)), "x");
        assert_string_equal(fac_graph_output_name(h, 0), "logits");
        assert_string_equal(fac_symbol_name(h, fac_graph_input(h, 0)->type.dims.d[0]), "N");
        for (int i = 0; i < fac_graph_params(g); i++) {
            const char *name = fac_value_name(fac_graph_param(g, i));
            if (!fac_graph_find(quiet, name)) continue;
            fac_value *v = fac_graph_find(h, name);
            if (!v || v->leaf != FAC_PARAM) fail_msg("%s: parameter %s is lost", names[k], name);
        }
        fac_type type = { FAC_F32, fac_shape(2, zoo->channels, zoo->height, zoo->width) };
        fac_tensor *x = random_tensor(type, -1, 1), *a = NULL, *b = NULL;
        run(g, &x, &a, names[k]);
        run(h, &x, &b, names[k]);
        double worst = difference(b, a);
        print_message("%s: logits differ by %g\n", names[k], worst);
        assert_true(worst <= 1e-5);
        fac_tensor_free(x);
        fac_tensor_free(a);
        fac_tensor_free(b);
        fac_graph_free(quiet);
        fac_graph_free(g);
        fac_graph_free(h);
    }
}

/* ---- leaves, names, outputs ---- */

static fac_tensor *ramp(fac_dims dims) {
    fac_tensor *t = NULL;
    float x[64];
    for (int k = 0; k < 64; k++) x[k] = (float)k * 0.25f - 3;
    OK(fac_tensor_new(NULL, FAC_F32, dims, &t, &err));
    OK(fac_tensor_write(t, x, (size_t)fac_dims_count(&dims) * sizeof *x, &err));
    return t;
}

static fac_graph *loaded(void) {
    fac_graph *h = NULL;
    OK(fac_onnx_load(path, NULL, &h, &err));
    return h;
}

/* Outputs that are leaves, twice the same value, and one with the name of its own input. */
static void outputs_of_all_kinds(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2, 3));
    fac_tensor *t = ramp(fac_shape(2, 3));
    fac_value *w = fac_param(g, "w", t), *y = fac_add(x, w);
    fac_output(g, "x", x);
    fac_output(g, "copy", x);
    fac_output(g, "weight", w);
    fac_output(g, "sum", y);
    fac_output(g, "sum again", y);
    fac_output(g, "number", fac_number(g, FAC_F32, 2.5));
    OK(fac_graph_check(g, &err));
    assert_true(round_trip(g, 0, -1, 1, "outputs") == 0);
    fac_output(g, "w", y);
    assert_int_equal(fac_onnx_save(g, path, NULL, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "\"w\""));
    fac_tensor_free(t);
    fac_graph_free(g);
}

/* A constant list of numbers and symbols becomes shapes of what has those sizes; the model runs at any of them. */
static void symbols_in_lists(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    int64_t N = fac_symbol(g, "N"), T = fac_symbol(g, "T");
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(N, 6, T)), *r = fac_relu(x);
    fac_output(g, "split", fac_reshape(r, fac_shape(N, 2, 3, T)));
    fac_output(g, "turned", fac_reshape(r, fac_shape(T, 6, N)));
    fac_output(g, "wide", fac_expand(fac_number(g, FAC_F32, 3), fac_shape(N)));
    fac_output(g, "dims", fac_shape_of(fac_flatten(x, 1)));
    OK(fac_graph_check(g, &err));
    OK(fac_onnx_save(g, path, NULL, &err));
    fac_graph *h = loaded();
    assert_string_equal(fac_symbol_name(h, fac_graph_input(h, 0)->type.dims.d[2]), "T");
    for (int n = 1; n < 4; n++) {
        fac_tensor *in = random_tensor((fac_type){ FAC_F32, fac_shape(n, 6, 5 - n) }, -1, 1), *a[4] = { 0 }, *b[4] = { 0 };
        run(g, &in, a, "symbols");
        run(h, &in, b, "symbols");
        for (int k = 0; k < 4; k++) {
            assert_true(difference(b[k], a[k]) == 0);
            fac_tensor_free(a[k]);
            fac_tensor_free(b[k]);
        }
        fac_tensor_free(in);
    }
    unlink(path);
    fac_graph_free(g);
    fac_graph_free(h);
}

/* A size that no value has can be said nowhere. */
static void lost_symbols(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_input(g, "x", FAC_F32, fac_shape(2));
    fac_output(g, "y", fac_expand(fac_number(g, FAC_F32, 3), fac_shape(fac_symbol(g, "M"))));
    OK(fac_graph_check(g, &err));
    assert_int_equal(fac_onnx_save(g, path, NULL, &err), FAC_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "expand"));
    assert_int_not_equal(access(path, F_OK), 0);
    fac_graph_free(g);
}

static bool file_has(const char *file, const char *text) {
    FILE *f = fopen(file, "rb");
    assert_non_null(f);
    char *all = calloc(1, 1 << 20);
    size_t n = fread(all, 1, (1 << 20) - 1, f);
    fclose(f);
    bool has = memmem(all, n, text, strlen(text)) != NULL;
    free(all);
    return has;
}

static void names_and_metadata(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "image", FAC_F32, fac_shape(fac_symbol(g, "batch"), 4));
    fac_tensor *t = ramp(fac_shape(3, 4));
    fac_graph_push(g, "encoder");
    fac_graph_push(g, "0");
    fac_value *w = fac_param(g, "encoder.0.weight", t);
    fac_value *y = fac_relu(fac_linear(x, w, NULL));
    fac_graph_pop(g);
    y = fac_relu(fac_add(y, y));
    fac_graph_pop(g);
    fac_output(g, "logits", fac_neg(y));
    const char *keys[] = { "classes", "note" }, *values[] = { "3", "two lines\nof it" };
    fac_onnx_saved saved = { 0 };
    OK(fac_onnx_save(g, path, &(fac_onnx_save_opts){ .name = "little", .doc = "what it is", .n = 2, .keys = keys,
        .values = values, .saved = &saved }, &err));
    static const char *const texts[] = { "little", "what it is", "facula", "classes", "two lines\nof it", "batch", "image",
        "logits", "encoder.0.weight", "encoder.0.linear", "encoder.0.relu", "encoder.relu", "encoder.add" };
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (!file_has(path, texts[k])) fail_msg("%s is not in the file", texts[k]);
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_size, saved.bytes);
    assert_int_equal(saved.nodes, 5);
    assert_int_equal(saved.tensors, 1);
    assert_int_equal(saved.data, 0);
    OK(fac_onnx_save(g, path, &(fac_onnx_save_opts){ .producer = "someone else" }, &err));
    assert_true(file_has(path, "someone else"));
    unlink(path);
    fac_tensor_free(t);
    fac_graph_free(g);
}

/* Parameters that lie strided or on no boundary of an element are written as they read. */
static void strided_parameters(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_tensor *t = ramp(fac_shape(5, 4)), *turned = NULL;
    OK(fac_tensor_view(t, fac_shape(4, 3), (int64_t[]){ 1, 4 }, 4, &turned, &err));
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2, 4));
    fac_output(g, "y", fac_matmul(x, fac_param(g, "w", turned)));
    assert_true(round_trip(g, 0, -1, 1, "strided") == 0);
    fac_tensor_free(t);
    fac_tensor_free(turned);
    fac_graph_free(g);
}

/* ---- files ---- */

static fac_graph *two_layers(void) {
    fac_graph *g = fac_graph_new();
    fac_tensor *t = NULL, *b = ramp(fac_shape(32));
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(32, 16), &t, &err));
    fac_tensor *r = random_tensor(fac_tensor_type(t), -1, 1);
    OK(fac_tensor_write(t, fac_tensor_data(r), 32 * 16 * 4, &err));
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(3, 16));
    fac_output(g, "y", fac_softmax(fac_linear(x, fac_param(g, "w", t), fac_param(g, "b", b)), 1));
    fac_tensor_free(t);
    fac_tensor_free(b);
    fac_tensor_free(r);
    return g;
}

static int files_in_folder(void) {
    char command[128], text[16] = "";
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    pclose(f);
    return atoi(text);
}

/* Large tensors beside the model: at boundaries of pages, and gone with it when it fails. */
static void external_data(void **state) {
    (void)state;
    fac_graph *g = two_layers();
    char data[128];
    snprintf(data, sizeof data, "%s.data", path);
    fac_onnx_saved saved = { 0 };
    fac_onnx_save_opts opts = { .inside = 1, .saved = &saved };
    OK(fac_onnx_save(g, path, &opts, &err));
    struct stat s;
    assert_int_equal(stat(data, &s), 0);
    assert_int_equal(s.st_size, saved.data);
    assert_int_equal(saved.data, 32 * 16 * 4);          /* the bias is small and stays */
    fac_graph *h = loaded();
    fac_tensor *x = random_tensor((fac_type){ FAC_F32, fac_shape(3, 16) }, -1, 1), *a = NULL, *b = NULL;
    run(g, &x, &a, "external");
    run(h, &x, &b, "external");
    assert_true(difference(b, a) == 0);
    fac_graph_free(h);
    unlink(path);
    unlink(data);
    assert_int_equal(mkdir(data, 0700), 0);             /* where the data would go */
    assert_int_not_equal(fac_onnx_save(g, path, &opts, &err), FAC_OK);
    assert_int_equal(files_in_folder(), 1);
    rmdir(data);
    assert_int_equal(mkdir(path, 0700), 0);             /* where the model would go */
    assert_int_not_equal(fac_onnx_save(g, path, &opts, &err), FAC_OK);
    assert_int_equal(files_in_folder(), 1);
    rmdir(path);
    fac_tensor_free(x);
    fac_tensor_free(a);
    fac_tensor_free(b);
    fac_graph_free(g);
}

/* A full disk, a folder that is not there: an error that says the path, and an old file that is still there. */
static void files_that_fail(void **state) {
    (void)state;
    fac_graph *g = two_layers();
    if (!access("/dev/full", W_OK)) {
        assert_int_equal(fac_onnx_save(g, "/dev/full", NULL, &err), FAC_E_IO);
        assert_non_null(strstr(err.text, "/dev/full"));
    }
    char missing[128];
    snprintf(missing, sizeof missing, "%s/none/m.onnx", folder);
    assert_int_equal(fac_onnx_save(g, missing, NULL, &err), FAC_E_IO);
    assert_non_null(strstr(err.text, missing));
    assert_int_equal(files_in_folder(), 0);
    OK(fac_onnx_save(g, path, NULL, &err));
    struct stat before, after;
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(fac_onnx_save(g, path, &(fac_onnx_save_opts){ .opset = 5 }, &err), FAC_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "opset 5"));
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    unlink(path);
    assert_int_equal(files_in_folder(), 0);
    fac_graph_free(g);
}

/* ---- what is refused ---- */

static void training_graphs(void **state) {
    (void)state;
    fac_graph *g = two_layers();
    fac_value *w = fac_graph_find(g, "w");
    fac_update(w, fac_mul(w, fac_number(g, FAC_F32, 0.5)));
    assert_int_equal(fac_onnx_save(g, path, NULL, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "\"w\""));
    fac_graph *quiet = fac_graph_inference(g);
    assert_true(round_trip(quiet, 0, -1, 1, "inference") == 0);
    fac_graph_free(quiet);
    fac_graph_free(g);
    g = fac_graph_new();
    fac_input(g, "x", FAC_F32, fac_shape(2));
    assert_int_equal(fac_onnx_save(g, path, NULL, &err), FAC_E_ARGUMENT);
    fac_graph_free(g);
}

/* All ops without a spelling in one message, each once. */
static void refusals_name_all(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(1, 2, 6, 6)), *n = fac_input(g, "n", FAC_I64, (fac_dims){ 0 });
    fac_value *a = fac_dropout_train(x, 0.5, n), *b = fac_dropout_train(a, 0.5, n), *loss, *dx;
    loss = fac_sum(fac_max_pool2d(b, 2, 2, NULL), (fac_dims){ 0 }, false);
    fac_grad(loss, 1, &x, &dx);
    fac_output(g, "dx", dx);
    OK(fac_graph_check(g, &err));
    assert_int_equal(fac_onnx_save(g, path, NULL, &err), FAC_E_UNSUPPORTED);
    const char *first = strstr(err.text, "dropout");
    assert_non_null(first);
    assert_null(strstr(first + 1, "dropout"));
    assert_non_null(strstr(err.text, "max_pool2d_grad"));
    assert_int_equal(files_in_folder(), 0);
    fac_graph_free(g);
}

/* ---- gradients that are made of ops ---- */

static void gradients(void **state) {
    (void)state;
    fac_graph *g = two_layers();
    fac_value *y = fac_graph_output(g, 0), *w[] = { fac_graph_find(g, "w"), fac_graph_find(g, "b") }, *d[2];
    fac_grad(fac_sum(fac_mul(y, y), (fac_dims){ 0 }, false), 2, w, d);
    fac_output(g, "dw", d[0]);
    fac_output(g, "db", d[1]);
    OK(fac_graph_check(g, &err));
    double worst = round_trip(g, 0, -1, 1, "gradients");
    assert_true(worst >= 0 && worst < 1e-6);
    fac_graph_free(g);
}

/* Every allocation fails once: an error about memory, or a file that is whole; nothing lies around. */
static void lost_memory(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    int64_t N = fac_symbol(g, "N");
    fac_value *x = fac_input(g, "x", FAC_F16, fac_shape(N, 6)), *y = fac_reshape(fac_gelu(x), fac_shape(N, 2, 3));
    fac_output(g, "y", fac_sum_like(y, fac_input(g, "like", FAC_F32, fac_shape(3))));
    fac_output(g, "z", fac_identity(fac_pow(fac_cast(y, FAC_U8), fac_number(g, FAC_U8, 2))));
    OK(fac_graph_check(g, &err));
    long failed = 0;
    for (long n = 0;; n++) {
        allocations_left = n;
        fac_status status = fac_onnx_save(g, path, &(fac_onnx_save_opts){ .inside = 1 }, &err);
        allocations_left = -1;
        if (!status) break;
        failed++;
        if (status != FAC_E_NOMEM) fail_msg("allocation %ld lost: %s", n, err.text);
        assert_int_equal(files_in_folder(), 0);
    }
    print_message("%ld losses\n", failed);
    assert_true(failed > 50);
    unlink(path);
    fac_graph_free(g);
}

static int setup(void **state) {
    (void)state;
    const char *given = getenv("FACULA_SEED");
    seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("FACULA_SEED=%llu\n", (unsigned long long)seed);
    snprintf(folder, sizeof folder, "/tmp/facula-save-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    return fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &device, &err) ? -1 : 0;
}

static int teardown(void **state) {
    (void)state;
    fac_device_free(device);
    unlink(path);
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_of_all_kinds), cmocka_unit_test(symbols_in_lists), cmocka_unit_test(lost_symbols),
        cmocka_unit_test(names_and_metadata), cmocka_unit_test(strided_parameters), cmocka_unit_test(external_data),
        cmocka_unit_test(files_that_fail), cmocka_unit_test(training_graphs), cmocka_unit_test(refusals_name_all),
        cmocka_unit_test(gradients), cmocka_unit_test(lost_memory), cmocka_unit_test(every_case), cmocka_unit_test(zoo_networks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
