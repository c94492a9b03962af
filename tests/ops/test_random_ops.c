/* Random ops: what they are distributed like, that they are functions of (counter, stream,
 * place) alone, and the same where they are computed at once, recorded, or by a kernel of
 * another device. */
#include "lazy_check.h"

enum { MANY = 20000 };

static fac_lazy *shape_of(int64_t n) {
    fac_lazy *x;
    OK(fac_lazy_ints(rec, 1, &n, &x, &err));
    return x;
}

static fac_lazy *counter_of(double k) {
    fac_lazy *x;
    OK(fac_lazy_number(rec, FAC_I64, k, &x, &err));
    return x;
}

/* Draws `n` numbers as f64. */
static double *draw(const char *op, const char *attrs, double counter, int64_t n, fac_lazy *a,
                    fac_lazy *b, unsigned flags) {
    fac_lazy *in[] = { counter_of(counter), shape_of(n), a, b }, *y;
    fac_tensor *t, *wide;
    double *x = calloc((size_t)n, sizeof *x);
    OK(fac_record_text(rec, fac_op_find(op), attrs, b ? 4 : 2, in, flags, 1, &y, &err));
    OK(fac_lazy_tensor(y, &t, &err));
    OK(fac_tensor_convert(t, FAC_F64, &wide, &err));
    OK(fac_tensor_read(wide, x, (size_t)n * sizeof *x, &err));
    fac_tensor_free(t);
    fac_tensor_free(wide);
    fac_lazy_free(y);
    fac_lazy_free(in[0]);
    fac_lazy_free(in[1]);
    return x;
}

static void moments(const double *x, double *mean, double *var) {
    *mean = *var = 0;
    for (int i = 0; i < MANY; i++) *mean += x[i] / MANY;
    for (int i = 0; i < MANY; i++) *var += (x[i] - *mean) * (x[i] - *mean) / MANY;
}

/* Within five standard errors. */
static void uniform_is_uniform(void **state) {
    (void)state;
    static const char *const types[] = { "dtype=f32", "dtype=f64", "dtype=f16",
                                         "dtype=bf16 stream=4" };
    static const double step[] = { 0x1p-24, 0x1p-53, 0x1p-11, 0x1p-8 };
    for (int k = 0; k < 4; k++) {
        double *x = draw("random_uniform", types[k], (double)(seed % 1000), MANY, NULL, NULL, 0),
               mean, var;
        for (int i = 0; i < MANY; i++) {
            assert_true(x[i] >= 0 && x[i] < 1);
            assert_true(fmod(x[i], step[k]) == 0);
        }
        moments(x, &mean, &var);
        assert_true(fabs(mean + step[k] / 2 - 0.5) < 5 * sqrt(1.0 / 12 / MANY));
        assert_true(fabs(var - 1.0 / 12) < 5 * sqrt(1.0 / 180 / MANY));
        free(x);
    }
}

static void normal_is_normal(void **state) {
    (void)state;
    static const char *const types[] = { "dtype=f32", "dtype=f64 stream=9" };
    for (int k = 0; k < 2; k++) {
        double *x = draw("random_normal", types[k], (double)(seed % 1000), MANY, NULL, NULL, 0),
               mean, var;
        int far = 0;
        for (int i = 0; i < MANY; i++) far += fabs(x[i]) > 1.959963984540054;
        moments(x, &mean, &var);
        assert_true(fabs(mean) < 5 / sqrt(MANY));
        assert_true(fabs(var - 1) < 5 * sqrt(2.0 / MANY));
        assert_true(fabs(far - 0.05 * MANY) < 5 * sqrt(0.05 * 0.95 * MANY));
        free(x);
    }
}

static void integers_stay_in_range(void **state) {
    (void)state;
    fac_lazy *low, *high;
    int seen[7] = { 0 };
    OK(fac_lazy_number(rec, FAC_I64, -3, &low, &err));
    OK(fac_lazy_number(rec, FAC_I64, 4, &high, &err));
    double *x = draw("randint", "stream=2", 5, MANY, low, high, 0);
    for (int i = 0; i < MANY; i++) {
        assert_true(x[i] >= -3 && x[i] < 4);
        seen[(int)x[i] + 3]++;
    }
    for (int k = 0; k < 7; k++) assert_true(fabs(seen[k] - MANY / 7.0) < 5 * sqrt(MANY / 7.0));
    free(x);
    fac_lazy_free(low);
    fac_lazy_free(high);
}

static void permutations_have_each_once(void **state) {
    (void)state;
    enum { N = 501 };
    double *x = draw("permutation", NULL, 3, N, NULL, NULL, 0),
           *y = draw("permutation", NULL, 4, N, NULL, NULL, 0);
    bool seen[N] = { false };
    int same = 0, there = 0;
    for (int i = 0; i < N; i++) {
        assert_false(seen[(int)x[i]]);
        seen[(int)x[i]] = true;
        same += x[i] == y[i];
        there += (int)x[i] == i;
    }
    assert_true(same < 20 && there < 20);
    free(x);
    free(y);
}

static void bernoulli_is_as_likely(void **state) {
    (void)state;
    static float p[MANY];
    double want = 0, have = 0;
    for (int i = 0; i < MANY; i++) p[i] = (float)(i % 5) / 4; /* 0, 0.25 .. 1 */
    fac_lazy *in[] = { lazy_of(fac_shape(MANY), p), counter_of(8) },
             *y = op_with("bernoulli", NULL, 2, in);
    static bool b[MANY];
    fac_tensor *t;
    OK(fac_lazy_tensor(y, &t, &err));
    OK(fac_tensor_read(t, b, sizeof b, &err));
    for (int i = 0; i < MANY; i++) {
        if (p[i] == 0 || p[i] == 1) assert_int_equal(b[i], p[i] == 1);
        want += (double)p[i];
        have += b[i];
    }
    assert_true(fabs(want - have) < 5 * sqrt(0.25 * MANY));
    fac_tensor_free(t);
    fac_lazy_free(in[0]);
    fac_lazy_free(in[1]);
    fac_lazy_free(y);
}

/* The same numbers at once, recorded, and in a longer list; others by another counter or stream. */
static void functions_of_counter_and_place(void **state) {
    (void)state;
    static const char *const ops[] = { "random_bits", "random_uniform", "random_normal" };
    static const double within[] = { 0, 0, 2e-6 }; /* fused loops round in other places */
    for (int k = 0; k < 3; k++) {
        double *a = draw(ops[k], "stream=1", 7, 100, NULL, NULL, 0),
               *b = draw(ops[k], "stream=1", 7, 100, NULL, NULL, FAC_RECORD_NOW);
        double *c = draw(ops[k], "stream=1", 7, 5001, NULL, NULL, 0),
               *d = draw(ops[k], "stream=1", 8, 100, NULL, NULL, 0);
        double *e = draw(ops[k], "stream=2", 7, 100, NULL, NULL, 0);
        for (int i = 0; i < 100; i++) {
            assert_true(fabs(a[i] - b[i]) <= within[k] && fabs(a[i] - c[i]) <= within[k]);
            assert_true(a[i] != d[i] && a[i] != e[i]);
        }
        free(a), free(b), free(c), free(d), free(e);
    }
}

static void wrong_ranges(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *counter = fac_number(g, FAC_I64, 1), *shape = fac_ints(g, fac_shape(3));
    fac_randint(counter, 0, shape, fac_number(g, FAC_I64, 5), fac_number(g, FAC_I64, 5));
    assert_int_equal(fac_graph_check(g, &err), FAC_E_ARGUMENT);
    fac_graph_free(g);
    g = fac_graph_new();
    fac_uniform(fac_number(g, FAC_F32, 1), 0, fac_ints(g, fac_shape(3)), FAC_F32);
    assert_int_not_equal(fac_graph_check(g, &err), FAC_OK);
    fac_graph_free(g);
    g = fac_graph_new();
    fac_uniform(fac_number(g, FAC_I64, 1), 0, fac_ints(g, fac_shape(3)), FAC_I32);
    assert_int_equal(fac_graph_check(g, &err), FAC_E_DTYPE);
    fac_graph_free(g);
}

#define LAZY_TEST(f) cmocka_unit_test_setup_teardown(f, open_recorder, close_recorder)
int main(void) {
    const struct CMUnitTest tests[] = {
        LAZY_TEST(uniform_is_uniform),     LAZY_TEST(normal_is_normal),
        LAZY_TEST(integers_stay_in_range), LAZY_TEST(permutations_have_each_once),
        LAZY_TEST(bernoulli_is_as_likely), LAZY_TEST(functions_of_counter_and_place),
        LAZY_TEST(wrong_ranges),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_device);
}
