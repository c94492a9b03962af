/* What the tests of ONNX export share: a folder, a device, random contents, graphs, and a way to
 * disk and back. */
#ifndef FACULA_TESTS_ONNX_SAVE_CHECK_H
#define FACULA_TESTS_ONNX_SAVE_CHECK_H
#include <sys/stat.h>
#include <unistd.h>
#include "random_check.h"
#include "allocations.h"
#include "facula/facula.h"
#include "facula/backend.h"
#include "facula/ops.h"
#include "graph/graph_internal.h"

static char folder[64], path[96];

/* Texts are equal or not. */
static inline double difference_of_texts(const fac_tensor *a, const fac_tensor *b, int64_t n) {
    char *const *x = fac_tensor_data(a), *const *y = fac_tensor_data(b);
    for (int64_t k = 0; k < n; k++)
        if (strcmp(x[k], y[k])) return INFINITY;
    return 0;
}

/* The largest difference, relative above 1; INFINITY when the types differ. */
static inline double difference(const fac_tensor *a, const fac_tensor *b) {
    fac_type s = fac_tensor_type(a), t = fac_tensor_type(b);
    if (s.dtype != t.dtype || !fac_dims_equal(&s.dims, &t.dims)) return INFINITY;
    if (s.dtype == FAC_TEXT) return difference_of_texts(a, b, fac_dims_count(&s.dims));
    bool real = kind(s.dtype) == 'f';
    fac_tensor *x = NULL, *y = NULL;
    OK(fac_tensor_convert(a, real ? FAC_F64 : FAC_I64, &x, &err));
    OK(fac_tensor_convert(b, real ? FAC_F64 : FAC_I64, &y, &err));
    double worst = 0;
    for (int64_t k = 0; k < fac_dims_count(&s.dims); k++) {
        double p = ((const double *)fac_tensor_data(x))[k],
               q = ((const double *)fac_tensor_data(y))[k];
        int64_t i = ((const int64_t *)fac_tensor_data(x))[k],
                j = ((const int64_t *)fac_tensor_data(y))[k];
        bool same = real ? p == q || (isnan(p) && isnan(q)) : i == j;
        double e = real && isfinite(p - q) ? fabs(p - q) / fmax(1, fabs(q)) : INFINITY;
        worst = same ? worst : fmax(worst, e);
    }
    fac_tensor_free(x);
    fac_tensor_free(y);
    return worst;
}

static inline void run(const fac_graph *g, fac_tensor *const in[], fac_tensor *out[],
                       const char *what) {
    fac_program *p = NULL;
    if (fac_program_new(g, device, &(fac_program_opts){ .precision = FAC_PRECISION_HIGHEST }, &p,
                        &err) ||
        fac_program_run(p, in, out, &err))
        fail_msg("%s: %s", what, err.text);
    fac_program_free(p);
}

/* Inputs in the order of g for a graph whose inputs stand in another one, or are fewer. */
static inline void inputs_by_name(const fac_graph *g, const fac_graph *of, fac_tensor *const in[],
                                  fac_tensor *to[]) {
    for (int i = 0; i < fac_graph_inputs(g); i++)
        for (int k = 0; k < fac_graph_inputs(of); k++)
            if (!strcmp(fac_value_name(fac_graph_input(g, i)),
                        fac_value_name(fac_graph_input(of, k))))
                to[i] = in[k];
}

/* Saves g, loads it and compares what both make of the same inputs.  The largest difference; -1: it
 * cannot be written. */
static inline double round_trip(const fac_graph *g, int opset, double lo, double hi,
                                const char *what) {
    fac_tensor *in[OPERANDS] = { 0 }, *want[OPERANDS] = { 0 }, *again[OPERANDS] = { 0 },
               *got[OPERANDS] = { 0 };
    fac_onnx_saved saved = { 0 };
    fac_status status =
        fac_onnx_save(g, path, &(fac_onnx_save_opts){ .opset = opset, .saved = &saved }, &err);
    if (status == FAC_E_UNSUPPORTED) return -1;
    if (status) fail_msg("%s: %s", what, err.text);
    assert_true(opset ? saved.opset == opset : saved.opset >= FAC_ONNX_USUAL);
    fac_graph *h = NULL;
    if (fac_onnx_load(path, NULL, &h, &err)) fail_msg("%s: reading it back: %s", what, err.text);
    assert_int_equal(fac_graph_outputs(g), fac_graph_outputs(h));
    for (int i = 0; i < fac_graph_inputs(g); i++)
        in[i] = random_tensor(fac_graph_input(g, i)->type, lo, hi);
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

static inline fac_tensor *ramp(fac_dims dims) {
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, FAC_F32, dims, &t, &err));
    float *x = (float *)(uintptr_t)fac_tensor_data(t);
    for (int64_t k = 0; k < fac_dims_count(&dims); k++) x[k] = (float)k * 0.25f - 3;
    return t;
}

static inline fac_graph *loaded(void) {
    fac_graph *h = NULL;
    OK(fac_onnx_load(path, NULL, &h, &err));
    return h;
}

static inline fac_graph *two_layers(void) {
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

static inline int files_in_folder(void) {
    char command[128], text[16] = "";
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    pclose(f);
    return atoi(text);
}

static inline int setup(void **state) {
    (void)state;
    seed = fresh_seed();
    snprintf(folder, sizeof folder, "/tmp/facula-save-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    return fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &device, &err) ? -1 : 0;
}

static inline int teardown(void **state) {
    (void)state;
    fac_device_free(device);
    unlink(path);
    return rmdir(folder);
}
#endif
