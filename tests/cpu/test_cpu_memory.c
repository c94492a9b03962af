/* The solvers that mostly read memory: reduce, softmax, norm, lrn.  And the device's own memory. */
#include "memory_check.h"

typedef fac_value *reduction(fac_value *x, fac_dims axes, bool keep);

static void reductions(void **state) {
    (void)state;
    static const struct {
        reduction *f;
        double tolerance;
    } ops[] = { { fac_sum, 2e-6 },
                { fac_mean, 1e-6 },
                { fac_reduce_max, 0 },
                { fac_reduce_min, 0 },
                { fac_reduce_prod, 1e-6 } };
    const struct {
        fac_dims x, axes;
    } all[] = { { fac_shape(2, 19, 5, 7), fac_shape(2, 3) },
                { fac_shape(2, 19, 5, 7), fac_shape(0, 2, 3) },
                { fac_shape(2, 19, 5, 7), fac_shape(1) },
                { fac_shape(2, 19, 5, 7), fac_shape(3) },
                { fac_shape(2, 19, 5, 7), fac_shape(2) },
                { fac_shape(2, 19, 5, 7), fac_shape(0, 2) },
                { fac_shape(2, 19, 5, 7), fac_shape(1, 3) },
                { fac_shape(2, 19, 5, 7), { 0 } },
                { fac_shape(2, 32, 1, 1), fac_shape(2, 3) },
                { fac_shape(1, 48, 7, 7), fac_shape(2, 3) },
                { fac_shape(4, 300, 33, 2), fac_shape(1, 3) },
                { fac_shape(3, 20000), fac_shape(1) },
                { fac_shape(700, 65), fac_shape(0) },
                { fac_shape(300, 1100), fac_shape(0) },
                { fac_shape(40000), fac_shape(0) },
                { { 0 }, { 0 } },
                { fac_shape(2, 19, 0, 7), fac_shape(2) },
                { fac_shape(3, 0), fac_shape(1) },
                { fac_shape(0, 3), fac_shape(1) } };
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (size_t s = 0; s < sizeof all / sizeof *all; s++)
            for (int type = FAC_F32; type <= FAC_F64; type++) {
                fac_graph *g = fac_graph_new();
                fac_value *x = in(g, "x", (fac_dtype)type, all[s].x);
                bool product = ops[k].f == fac_reduce_prod;
                double lo = product ? 0.95 : -3;
                double hi = product ? 1.05 : 3;
                check c = fresh(100 * k + s, lo, hi,
                                type == FAC_F64 ? ops[k].tolerance * 1e-6 : ops[k].tolerance);
                everywhere(c, "reduce", ops[k].f(x, all[s].axes, s % 2), 4);
                fac_graph_free(g);
            }
}

static void sums_to_a_shape(void **state) {
    (void)state;
    const fac_dims x = fac_shape(2, 19, 5, 7),
                   likes[] = { fac_shape(19, 1, 1),    fac_shape(2, 1, 5, 7), fac_shape(7), { 0 },
                               fac_shape(1, 19, 1, 7), fac_shape(2, 19, 1, 1) };
    for (size_t k = 0; k < sizeof likes / sizeof *likes; k++) {
        fac_graph *g = fac_graph_new();
        fac_value *y = fac_sum_like(in(g, "x", FAC_F32, x), in(g, "like", FAC_F32, likes[k]));
        everywhere(fresh(k, -3, 3, 2e-6), "reduce", y, 4);
        fac_graph_free(g);
    }
}

/* A sum is rounded once: 400,000 of 0.1 in f32 come out as exactly as in f64. */
static void sums_are_exact(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *y = fac_sum(in(g, "x", FAC_F32, fac_shape(500, 800)), (fac_dims){ 0 }, false);
    check c = fresh(5, 0.1, 0.1, 6e-8);
    c.strided = false;
    everywhere(c, "reduce", y, 1);
    fac_graph_free(g);
}

static void softmaxes(void **state) {
    (void)state;
    const struct {
        fac_dims x;
        int axis;
    } all[] = { { fac_shape(2, 5), 1 },      { fac_shape(3, 1000), -1 },
                { fac_shape(3, 4, 5), 0 },   { fac_shape(2, 19, 5, 7), 1 },
                { fac_shape(2, 3, 300), 1 }, { fac_shape(1, 1), 1 },
                { fac_shape(3, 0, 2), 1 },   { fac_shape(0, 4), 1 },
                { fac_shape(2, 7, 513), 0 }, { fac_shape(33, 257), 1 } };
    for (size_t s = 0; s < sizeof all / sizeof *all; s++) {
        fac_graph *g = fac_graph_new();
        fac_value *x = in(g, "x", FAC_F32, all[s].x);
        everywhere(fresh(s, -8, 8, 1e-6), "softmax", fac_softmax(x, all[s].axis), 6);
        everywhere(fresh(s, -90, 90, 1e-6), "softmax", fac_log_softmax(x, all[s].axis), 6);
        fac_graph_free(g);
    }
}

static void norms(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = in(g, "x", FAC_F32, fac_shape(2, 19, 5, 7));
    fac_value *c = in(g, "c", FAC_F32, fac_shape(19)), *d = in(g, "d", FAC_F32, fac_shape(19));
    fac_value *m = in(g, "m", FAC_F32, fac_shape(19)), *v = in(g, "v", FAC_F32, fac_shape(19));
    fac_value *t = in(g, "t", FAC_F32, fac_shape(3, 5, 384));
    fac_value *s = in(g, "s", FAC_F32, fac_shape(384)), *b = in(g, "b", FAC_F32, fac_shape(384));
    fac_value *p = in(g, "p", FAC_F32, fac_shape(2, 24, 6));
    fac_value *q = in(g, "q", FAC_F32, fac_shape(24)), *r = in(g, "r", FAC_F32, fac_shape(24));
    everywhere(fresh(1, 0.1, 2, 1e-5), "norm", fac_batch_norm(x, c, d, m, v, 1e-5), 8);
    everywhere(fresh(2, -3, 3, 2e-5), "norm", fac_layer_norm(t, s, b, -1, 1e-5), 4);
    everywhere(fresh(3, -3, 3, 2e-5), "norm", fac_layer_norm(t, s, NULL, 2, 1e-12), 4);
    everywhere(fresh(4, -3, 3, 2e-5), "norm", fac_layer_norm(t, NULL, NULL, 1, 1e-5), 4);
    everywhere(fresh(5, -3, 3, 2e-5), "norm", fac_rms_norm(t, s, -1, 1e-5), 4);
    everywhere(fresh(6, -3, 3, 2e-5), "norm", fac_group_norm(p, q, r, 4, 1e-5), 4);
    everywhere(fresh(7, -3, 3, 2e-5), "norm", fac_group_norm(p, NULL, NULL, 1, 1e-5), 4);
    everywhere(fresh(8, -3, 3, 2e-5), "norm", fac_instance_norm(p, q, r, 1e-5), 4);
    fac_graph_free(g);
}

static void response_normalization(void **state) {
    (void)state;
    const fac_dims shapes[] = { fac_shape(2, 7, 3, 4), fac_shape(1, 96, 20, 21), fac_shape(2, 3),
                                fac_shape(0, 3, 2, 2), fac_shape(1, 37, 6, 5) };
    const double betas[] = { 0.75, 0.5, 1, 0.6 };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t k = 0; k < 4; k++) {
            fac_graph *g = fac_graph_new();
            fac_value *x = in(g, "x", FAC_F32, shapes[s]);
            everywhere(fresh(s, -2, 2, 2e-6), "lrn", fac_lrn(x, 4 + (int64_t)k, 0.3, betas[k], 1.5),
                       3);
            fac_graph_free(g);
        }
}

/* ---- the device ---- */

static void memory_is_counted(void **state) {
    (void)state;
    fac_device *d;
    fac_tensor *t, *u = NULL;
    fac_error err = { 0 };
    assert_int_equal(fac_device_open("cpu",
                                     &(fac_device_opts){ .memory_limit = 1 << 20, .threads = 2 },
                                     &d, NULL),
                     FAC_OK);
    assert_int_equal(fac_tensor_new(d, FAC_F32, fac_shape(200000), &t, NULL), FAC_OK);
    assert_true(fac_device_memory(d).now >= 800000);
    assert_int_equal(fac_tensor_new(d, FAC_F32, fac_shape(200000), &u, &err), FAC_E_NOMEM);
    assert_non_null(strstr(err.text, "800000")); /* what was asked for, and the limit */
    assert_non_null(strstr(err.text, "1048576"));
    assert_null(u);
    fac_tensor_free(t);
    assert_int_equal(fac_device_memory(d).now, 0);
    assert_true(fac_device_memory(d).peak >= 800000 && fac_device_memory(d).peak <= 1 << 20);
    fac_device_free(d);
}

static void serial(void *self, int n, void (*task)(void *arg, int i), void *arg) {
    ++*(int *)self;
    for (int i = n - 1; i >= 0; i--) task(arg, i);
}

/* A copy that is worth sharing out. */
static void copy_much(fac_device *d) {
    enum { N = 300 };
    fac_dims dims = fac_shape(N, N);
    fac_layout from = fac_layout_plain(&dims), to = { .stride = { 1, N } };
    float *x = calloc(N * N, sizeof *x), *y = calloc(N * N, sizeof *y);
    fac_copy c;
    for (int i = 0; i < N * N; i++) x[i] = (float)i;
    fac_copy_plan(&c, &dims, &from, &to, sizeof *x);
    fac_copy_run(&c, fac_cpu_of(d), x, y);
    for (int i = 0; i < N * N; i++) assert_true(y[i % N * N + i / N] == (float)i);
    free(x);
    free(y);
}

static void options(void **state) {
    (void)state;
    fac_device *d = NULL;
    fac_error err = { 0 };
    int calls = 0;
    assert_int_equal(fac_device_open("cpu:1", NULL, &d, &err), FAC_E_UNSUPPORTED);
    assert_int_equal(fac_device_open("cpu", &(fac_device_opts){ .threads = -1 }, &d, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_device_open("cpu", &(fac_device_opts){ .isa = "mmx" }, &d, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(
        fac_device_open("cpu", &(fac_device_opts){ .pool = &(fac_pool){ .threads = 2 } }, &d, &err),
        FAC_E_ARGUMENT);
    assert_null(d);
    fac_pool pool = { 3, &calls, serial };
    assert_int_equal(
        fac_device_open("cpu", &(fac_device_opts){ .pool = &pool, .isa = "portable" }, &d, &err),
        FAC_OK);
#if defined(__aarch64__)
    assert_string_equal(fac_device_about(d), "neon, 3 threads"); /* there is none without it */
#else
    assert_string_equal(fac_device_about(d), "portable, 3 threads");
#endif
    copy_much(d);
    assert_true(calls > 0);
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions),
        cmocka_unit_test(sums_are_exact),
        cmocka_unit_test(sums_to_a_shape),
        cmocka_unit_test(softmaxes),
        cmocka_unit_test(norms),
        cmocka_unit_test(response_normalization),
        cmocka_unit_test(memory_is_counted),
        cmocka_unit_test(options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
