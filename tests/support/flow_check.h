/* What tests of graphs inside graphs share: graphs from text, run with given numbers, compared with
 * each other. */
#ifndef FACULA_TESTS_FLOW_CHECK_H
#define FACULA_TESTS_FLOW_CHECK_H
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "graph_check.h"
#include "program_check.h"

static fac_graph *read_text(const char *text) {
    fac_graph *g = NULL;
    FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_non_null(f);
    OK(fac_graph_read(f, &g, err));
    fclose(f);
    assert_ok(g);
    assert_sound(g);
    return g;
}

static inline void refuses(const char *text, fac_status status, const char *part) {
    fac_graph *g = NULL;
    fac_error e = { 0 };
    FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_non_null(f);
    const fac_status got = fac_graph_read(f, &g, &e);
    fclose(f);
    fac_graph_free(g);
    if (got != status || !strstr(e.text, part))
        fail_msg("%s: %s\n  instead of %s: %s", fac_status_name(got), e.text,
                 fac_status_name(status), part);
}

/* Floats are random, integers are `count`, bools are `flag`. */
typedef struct numbers {
    uint64_t seed;
    int64_t count;
    bool flag;
} numbers;

static fac_tensor *input_of(const fac_graph *g, int i, const numbers *x) {
    const fac_type type = fac_value_type(fac_graph_input(g, i));
    fac_tensor *wide = NULL, *t = NULL;
    const int64_t n = fac_dims_count(&type.dims);
    assert_true(n >= 0 && n <= 64);
    double v[64];
    for (int64_t k = 0; k < n; k++)
        v[k] = type.dtype == FAC_BOOL ? x->flag
               : type.dtype == FAC_I64
                   ? (double)x->count
                   : 2 * fac_random_uniform(x->seed, (uint64_t)i, (uint64_t)k) - 1;
    OK(fac_tensor_new(NULL, FAC_F64, type.dims, &wide, err));
    OK(fac_tensor_write(wide, v, (size_t)n * sizeof *v, err));
    OK(fac_tensor_convert(wide, type.dtype, &t, err));
    fac_tensor_free(wide);
    return t;
}

enum { MOST = 8 };

static void run_on(fac_device *d, const fac_graph *g, const numbers *x, fac_tensor *out[MOST]) {
    fac_tensor *in[MOST] = { NULL };
    fac_program *p = NULL;
    for (int i = 0; i < fac_graph_inputs(g); i++) in[i] = input_of(g, i, x);
    OK(fac_program_new(g, d, NULL, &p, err));
    for (int k = 0; k < MOST; k++) out[k] = NULL;
    OK(fac_program_run(p, in, out, err));
    fac_program_free(p);
    for (int i = 0; i < MOST; i++) fac_tensor_free(in[i]);
}

static inline double *doubles(const fac_tensor *t, int64_t *n) {
    fac_tensor *wide = NULL;
    const fac_type type = fac_tensor_type(t);
    *n = fac_dims_count(&type.dims);
    OK(fac_tensor_convert(t, FAC_F64, &wide, err));
    double *x = malloc((size_t)(*n + 1) * sizeof *x);
    assert_non_null(x);
    OK(fac_tensor_read(wide, x, (size_t)*n * sizeof *x, err));
    fac_tensor_free(wide);
    return x;
}

static inline void assert_equal_tensors(const fac_tensor *a, const fac_tensor *b,
                                        double tolerance) {
    const fac_type s = fac_tensor_type(a), t = fac_tensor_type(b);
    int64_t n, m;
    assert_int_equal(s.dtype, t.dtype);
    assert_true(fac_dims_equal(&s.dims, &t.dims));
    double *x = doubles(a, &n), *y = doubles(b, &m);
    for (int64_t k = 0; k < n; k++)
        if (!(fabs(x[k] - y[k]) <= tolerance))
            fail_msg("element %lld is %g instead of %g", (long long)k, x[k], y[k]);
    free(x);
    free(y);
}

/* Both graphs give the same for the same numbers, on this device. */
static inline void same_graphs(fac_device *d, const fac_graph *a, const fac_graph *b,
                               const numbers *x, double tolerance) {
    fac_tensor *p[MOST], *q[MOST];
    assert_int_equal(fac_graph_outputs(a), fac_graph_outputs(b));
    run_on(d, a, x, p);
    run_on(d, b, x, q);
    for (int k = 0; k < fac_graph_outputs(a); k++) {
        assert_equal_tensors(p[k], q[k], tolerance);
        fac_tensor_free(p[k]);
        fac_tensor_free(q[k]);
    }
}

static inline void same(const char *a, const char *b, const numbers *x) {
    fac_graph *g = read_text(a), *h = read_text(b);
    same_graphs(device, g, h, x, 1e-6);
    fac_graph_free(g);
    fac_graph_free(h);
}

static inline char *text_of(const fac_graph *g) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    OK(fac_graph_write(g, f, err));
    fclose(f);
    return text;
}
#endif
