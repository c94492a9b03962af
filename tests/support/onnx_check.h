/* What tests of the importer share: small models as bytes, and what must come of them. */
#ifndef FACULA_TESTS_ONNX_CHECK_H
#define FACULA_TESTS_ONNX_CHECK_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "facula/op.h"
#include "facula/program.h"
#include "onnx/load.h"
#include "onnx_writer.h"

enum {
    NODE = 1,
    INITIALIZER = 5,
    INPUT = 11,
    OUTPUT = 12,
    SPARSE = 15,
    FUNCTIONS = 25,
    ATTRIBUTE = 5,
    DOMAIN = 7
};
enum { F32 = 1, I64 = 7, COMPLEX = 14 };

/* ---- building ---- */

static inline bytes node(const char *type, const char *in, const char *out) {
    return w_node(type, in, out);
}
static inline void add(bytes *graph, bytes n) { w_sub(graph, NODE, n); }
static inline void in(bytes *graph, const char *name, const char *dims) {
    w_sub(graph, INPUT, w_value(name, F32, dims));
}
static inline void out(bytes *graph, const char *name) {
    w_sub(graph, OUTPUT, w_value(name, F32, NULL));
}
static inline void weights(bytes *graph, const char *name, const char *dims, size_t n) {
    float x[16];
    for (size_t k = 0; k < n; k++) x[k] = (float)k + 1;
    w_sub(graph, INITIALIZER, w_tensor_f32(name, dims, x, n));
}
static inline void ints(bytes *graph, const char *name, const char *dims, const int64_t *x,
                        size_t n) {
    bytes t = w_tensor(name, I64, dims);
    w_bytes(&t, 9, x, n * sizeof *x);
    w_sub(graph, INITIALIZER, t);
}
static inline bytes named(bytes n, const char *name) {
    w_text(&n, 3, name);
    return n;
}
static inline bytes domain(bytes n, const char *name) {
    w_text(&n, DOMAIN, name);
    return n;
}

/* ---- loading ---- */

static inline fac_status try_bytes(const void *p, size_t n, const fac_onnx_opts *opts,
                                   fac_graph **g, fac_error *err) {
    fac_source_files files = { .file = fac_file_memory(p, n) };
    assert_non_null(files.file);
    return fac_onnx_load_files(&files, opts, g, err);
}
static inline fac_graph *load_with(bytes model, const fac_onnx_opts *opts) {
    fac_graph *g = NULL;
    fac_error err = { 0 };
    if (try_bytes(model.p, model.n, opts, &g, &err))
        fail_msg("%s: %s", fac_status_name(err.status), err.text);
    free(model.p);
    return g;
}
static inline fac_graph *load(bytes graph) { return load_with(w_model(graph, 8, 17), NULL); }

static inline void refuses_with(bytes model, const fac_onnx_opts *opts, fac_status status,
                                const char *text) {
    fac_graph *g = NULL;
    fac_error err = { 0 };
    fac_status got = try_bytes(model.p, model.n, opts, &g, &err);
    free(model.p);
    assert_null(g);
    if (!strstr(err.text, text)) fail_msg("\"%s\" is not in \"%s\"", text, err.text);
    assert_int_equal(got, status);
}
static inline void refuses(bytes graph, fac_status status, const char *text) {
    refuses_with(w_model(graph, 8, 17), NULL, status, text);
}

/* Runs a graph with inputs of f32[n] and one output of f32[n]. */
static inline void runs(fac_graph *g, const float *x, const float *want, int n) {
    fac_device *cpu;
    fac_program *p;
    fac_tensor *from[1] = { NULL }, *to[1] = { NULL };
    fac_error err = { 0 };
    float got[16];
    assert_int_equal(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &cpu, &err),
                     FAC_OK);
    if (x)
        assert_int_equal(fac_tensor_borrow(FAC_F32, fac_shape(n), NULL, x, NULL, NULL, from, &err),
                         FAC_OK);
    if (fac_program_new(g, cpu, NULL, &p, &err) || fac_program_run(p, from, to, &err))
        fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_read(to[0], got, (size_t)n * sizeof *got, &err), FAC_OK);
    for (int k = 0; k < n; k++)
        if (got[k] != want[k]) fail_msg("[%d] is %g, not %g", k, (double)got[k], (double)want[k]);
    fac_tensor_free(from[0]);
    fac_tensor_free(to[0]);
    fac_program_free(p);
    fac_device_free(cpu);
    fac_graph_free(g);
}

static inline bytes small_graph(void) {
    bytes g = { 0 };
    in(&g, "x", "N,4");
    weights(&g, "w", "4", 4);
    add(&g, named(node("Add", "x,w", "h"), "/block/Add"));
    add(&g, node("Relu", "h", "y"));
    out(&g, "y");
    return g;
}
#endif
