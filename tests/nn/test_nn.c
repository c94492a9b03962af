/* Layers: the names, kinds, shapes and first values of their parameters; sources; what they
 * compute. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "facula/nn.h"
#include "facula/program.h"
#include "graph/graph_internal.h"

static fac_value *input(fac_graph *g, fac_dtype dtype, fac_dims dims) {
    return fac_input(g, "x", dtype, dims);
}

static const fac_value *param(fac_graph *g, const char *name, fac_leaf leaf, fac_dtype dtype,
                              fac_dims dims) {
    const fac_value *v = fac_graph_find(g, name);
    if (!v) fail_msg("no parameter %s", name);
    assert_int_equal(v->leaf, leaf);
    assert_int_equal(v->type.dtype, dtype);
    assert_true(fac_dims_equal(&v->type.dims, &dims));
    return v;
}

static void check(fac_graph *g) {
    fac_error err = { 0 };
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
}

static void assert_fails(fac_graph *g, fac_status status, const char *says) {
    fac_error err = { 0 };
    assert_int_equal(fac_graph_check(g, &err), status);
    if (!strstr(err.text, says)) fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    fac_graph_free(g);
}

static void parameters_have_torchs_names(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = input(g, FAC_F32, fac_shape(fac_symbol(g, "N"), 6, 9, 8));
    fac_graph_push(g, "encoder");
    x = fac_nn_conv2d(x, "conv", 8, 3, &(fac_nn_conv2d_opts){ .stride = 2, .pad = 1, .groups = 2 });
    x = fac_nn_batch_norm(x, "bn", 0);
    fac_graph_pop(g);
    x = fac_nn_conv2d(x, "plain", 4, 1, &(fac_nn_conv2d_opts){ .no_bias = true });
    x = fac_nn_linear(fac_flatten(x, 1), "head", 5);
    check(g);
    fac_type y = fac_value_type(x);
    assert_int_equal(y.dims.n, 2);
    assert_int_equal(y.dims.d[1], 5);
    param(g, "encoder.conv.weight", FAC_PARAM, FAC_F32, fac_shape(8, 3, 3, 3));
    param(g, "encoder.conv.bias", FAC_PARAM, FAC_F32, fac_shape(8));
    param(g, "encoder.bn.weight", FAC_PARAM, FAC_F32, fac_shape(8));
    param(g, "encoder.bn.bias", FAC_PARAM, FAC_F32, fac_shape(8));
    param(g, "encoder.bn.running_mean", FAC_STATE, FAC_F32, fac_shape(8));
    param(g, "encoder.bn.running_var", FAC_STATE, FAC_F32, fac_shape(8));
    param(g, "plain.weight", FAC_PARAM, FAC_F32, fac_shape(4, 8, 1, 1));
    param(g, "head.weight", FAC_PARAM, FAC_F32, fac_shape(5, 4 * 5 * 4));
    param(g, "head.bias", FAC_PARAM, FAC_F32, fac_shape(5));
    assert_int_equal(fac_graph_params(g), 9);
    fac_graph_free(g);
}

/* Mean and largest magnitude. */
static void measure(const fac_value *v, double *mean, double *most) {
    const float *p = fac_tensor_data(v->tensor);
    int64_t n = fac_dims_count(&v->type.dims);
    *mean = *most = 0;
    for (int64_t i = 0; i < n; i++) {
        *mean += p[i] / (double)n;
        *most = fmax(*most, fabs((double)p[i]));
    }
}

static void first_values_are_torchs(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 7);
    fac_value *x = input(g, FAC_F32, fac_shape(1, 32, 9, 9));
    x = fac_nn_batch_norm(fac_nn_conv2d(x, "conv", 64, 3, &(fac_nn_conv2d_opts){ .groups = 2 }),
                          "bn", 0);
    fac_nn_linear(fac_flatten(x, 1), "head", 100);
    check(g);
    static const struct {
        const char *name;
        double bound;
    } drawn[] = {
        /* 1 / sqrt(fan_in) */
        { "conv.weight", 1 / 12.0 },
        { "conv.bias", 1 / 12.0 },
        { "head.weight", 1 / 56.0 },
        { "head.bias", 1 / 56.0 },
    };
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++) {
        double mean, most;
        measure(fac_graph_find(g, drawn[i].name), &mean, &most);
        if (most > drawn[i].bound * (1 + 1e-6) || most < 0.9 * drawn[i].bound ||
            fabs(mean) > 0.25 * drawn[i].bound)
            fail_msg("%s: mean %g, at most %g; expected 0 and %g", drawn[i].name, mean, most,
                     drawn[i].bound);
    }
    static const struct {
        const char *name;
        float value;
    } fixed[] = {
        { "bn.weight", 1 },
        { "bn.bias", 0 },
        { "bn.running_mean", 0 },
        { "bn.running_var", 1 },
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        const float *p = fac_tensor_data(fac_value_tensor(fac_graph_find(g, fixed[i].name)));
        for (int k = 0; k < 64; k++) assert_true(p[k] == fixed[i].value);
    }
    fac_graph_free(g);
}

static float first(fac_graph *g, const char *name) {
    return *(const float *)fac_tensor_data(fac_value_tensor(fac_graph_find(g, name)));
}

static void numbers_depend_on_seed_and_name_alone(void **state) {
    (void)state;
    float a[4], b[4];
    for (int k = 0; k < 4; k++) {
        fac_graph *g = fac_graph_new();
        fac_nn_seed(g, k == 3 ? 8 : 7);
        fac_value *x = input(g, FAC_F32, fac_shape(1, 10));
        if (k == 1) fac_nn_linear(x, "other", 3);
        if (k != 2) fac_nn_linear(x, "a", 3);
        fac_nn_linear(x, "b", 3);
        if (k == 2) fac_nn_linear(x, "a", 3);
        check(g);
        a[k] = first(g, "a.weight");
        b[k] = first(g, "b.weight");
        fac_graph_free(g);
    }
    assert_true(a[0] == a[1] && a[0] == a[2] && b[0] == b[1] && b[0] == b[2]);
    assert_true(a[0] != b[0]);
    assert_true(a[0] != a[3]);
}

static void parameters_have_the_type_of_x(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_nn_linear(input(g, FAC_F64, fac_shape(2, 10)), "a", 3);
    check(g);
    const fac_value *w = param(g, "a.weight", FAC_PARAM, FAC_F64, fac_shape(3, 10));
    const double *p = fac_tensor_data(w->tensor);
    assert_true(p[0] != 0 && fabs(p[0]) <= 1 / sqrt(10));
    fac_graph_free(g);
}

/* ---- sources ---- */

typedef struct source {
    int calls, mode;
    char last[64];
} source;

static fac_tensor *give(void *self, const char *name, fac_type type, fac_error *err) {
    source *s = self;
    s->calls++;
    snprintf(s->last, sizeof s->last, "%s", name);
    fac_tensor *t = NULL;
    if (s->mode == 1) {
        fac_raise(err, FAC_E_ARGUMENT, "there is no %s here", name);
        return NULL;
    }
    if (s->mode == 2) return NULL;
    if (s->mode == 3) type.dims.d[0]++;
    if (s->mode == 4) type.dtype = FAC_F64;
    return fac_tensor_new(NULL, type.dtype, type.dims, &t, err) ? NULL : t;
}

static void a_source_gives_parameters(void **state) {
    (void)state;
    static const char *const says[] = { NULL, "there is no a.weight here", "gave none", "f32[4,10]",
                                        "f64[3,10]" };
    for (int mode = 0; mode < 5; mode++) {
        source s = { 0, mode, "" };
        fac_graph *g = fac_graph_new();
        fac_nn_source(g, give, &s);
        fac_value *y = fac_nn_linear(input(g, FAC_F32, fac_shape(2, 10)), "a", 3);
        if (mode == 0) {
            check(g);
            assert_int_equal(s.calls, 2);
            assert_string_equal(s.last, "a.bias");
            assert_true(first(g, "a.weight") == 0);
            fac_graph_free(g);
            continue;
        }
        assert_int_equal(s.calls, 1); /* nothing is asked for after an error */
        assert_int_equal(y->leaf, FAC_POISON);
        assert_fails(g, mode < 3 ? FAC_E_ARGUMENT : FAC_E_SHAPE, says[mode]);
    }
}

/* ---- errors ---- */

static void misuse_names_the_layer(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_nn_conv2d(input(g, FAC_F32, fac_shape(1, fac_symbol(g, "C"), 8, 8)), "stem", 4, 3, NULL);
    assert_fails(g, FAC_E_SHAPE, "stem: conv2d");
    g = fac_graph_new();
    fac_nn_conv2d(input(g, FAC_F32, fac_shape(1, 7, 8, 8)), "stem", 4, 3,
                  &(fac_nn_conv2d_opts){ .groups = 2 });
    assert_fails(g, FAC_E_SHAPE, "groups 2");
    g = fac_graph_new();
    fac_nn_linear(input(g, FAC_F32, fac_shape(2, fac_symbol(g, "C"))), "head", 4);
    assert_fails(g, FAC_E_SHAPE, "head: linear");
    g = fac_graph_new();
    fac_nn_batch_norm(input(g, FAC_F32, fac_shape(5)), "bn", 0);
    assert_fails(g, FAC_E_SHAPE, "bn: batch_norm");
    g = fac_graph_new();
    fac_value *x = input(g, FAC_F32, fac_shape(2, 3));
    fac_nn_linear(fac_nn_linear(x, "twice", 3), "twice", 3);
    assert_fails(g, FAC_E_ARGUMENT, "twice.weight");
    g = fac_graph_new();
    fac_value *poison = fac_fail_graph(g, FAC_E_ARGUMENT, "the first error");
    poison =
        fac_nn_linear(fac_nn_batch_norm(fac_nn_conv2d(poison, "a", 1, 1, NULL), "b", 0), "c", 3);
    assert_int_equal(poison->leaf, FAC_POISON);
    assert_int_equal(fac_graph_params(g), 0);
    assert_fails(g, FAC_E_ARGUMENT, "the first error");
}

/* ---- values ---- */

/* y of a graph with one input and one output; read into to[n]. */
static void compute(fac_graph *g, const float *x, float *to, size_t n) {
    fac_error err = { 0 };
    fac_device *device = NULL;
    fac_program *p = NULL;
    fac_tensor *in = NULL, *out = NULL;
    fac_type type = fac_value_type(fac_graph_input(g, 0));
    if (fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &device, &err) ||
        fac_program_new(g, device, NULL, &p, &err) ||
        fac_tensor_new(NULL, FAC_F32, type.dims, &in, &err) ||
        fac_tensor_write(in, x, fac_type_bytes(&type), &err) ||
        fac_program_run(p, &in, &out, &err) || fac_tensor_read(out, to, n * sizeof *to, &err))
        fail_msg("%s", err.text);
    fac_tensor_free(out);
    fac_tensor_free(in);
    fac_program_free(p);
    fac_device_free(device);
}

/* Every channel against the formula, with running statistics of its own. */
static void batch_norm_is_its_formula(void **state) {
    (void)state;
    enum { C = 3, HW = 4 };
    fac_graph *g = fac_graph_new();
    fac_value *y = fac_nn_batch_norm(input(g, FAC_F32, fac_shape(2, C, 2, 2)), "bn", 0.5);
    fac_output(g, "y", y);
    check(g);
    static const char *const names[] = { "bn.weight", "bn.bias", "bn.running_mean",
                                         "bn.running_var" };
    static const float values[4][C] = { { 1, 2, -3 }, { 0, 5, 1 }, { 7, -1, 2 }, { 1, 4, 0.25f } };
    for (int k = 0; k < 4; k++) {
        fac_tensor *t = fac_value_tensor(fac_graph_find(g, names[k]));
        assert_int_equal(fac_tensor_write(t, values[k], sizeof values[k], NULL), FAC_OK);
    }
    float x[2 * C * HW], out[2 * C * HW];
    for (int i = 0; i < 2 * C * HW; i++) x[i] = (float)(i * i % 17) - 8;
    compute(g, x, out, 2 * C * HW);
    for (int i = 0; i < 2 * C * HW; i++) {
        int c = i / HW % C;
        double expected =
            ((double)x[i] - values[2][c]) / sqrt(values[3][c] + 0.5) * values[0][c] + values[1][c];
        assert_float_equal(out[i], expected, 1e-5);
    }
    fac_graph_free(g);
}

/* 5 x 5 windows at stride 2 over 6 x 6: "same" gives 3 x 3, with one line of zeros before and two
 * after. */
static void same_padding_lies_after(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = input(g, FAC_F32, fac_shape(1, 1, 6, 6));
    fac_output(g, "y",
               fac_nn_conv2d(x, "c", 1, 5,
                             &(fac_nn_conv2d_opts){
                                 .stride = 2, .no_bias = true, .auto_pad = FAC_AUTO_SAME_UPPER }));
    check(g);
    float ones[36], out[9];
    for (int i = 0; i < 36; i++) ones[i] = 1;
    fac_tensor *w = fac_value_tensor(fac_graph_find(g, "c.weight"));
    assert_int_equal(fac_tensor_write(w, ones, 25 * sizeof *ones, NULL), FAC_OK);
    compute(g, ones, out, 9);
    static const int covered[3] = { 4, 5, 3 }; /* rows -1..3, 1..5, 3..7 of 0..5 */
    for (int i = 0; i < 9; i++) assert_float_equal(out[i], covered[i / 3] * covered[i % 3], 1e-5);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_have_torchs_names),
        cmocka_unit_test(first_values_are_torchs),
        cmocka_unit_test(numbers_depend_on_seed_and_name_alone),
        cmocka_unit_test(parameters_have_the_type_of_x),
        cmocka_unit_test(a_source_gives_parameters),
        cmocka_unit_test(misuse_names_the_layer),
        cmocka_unit_test(batch_norm_is_its_formula),
        cmocka_unit_test(same_padding_lies_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
