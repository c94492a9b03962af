/* Passes over convolutions: which nodes they leave, and that the results stay. */
#include "net_check.h"

/* Steps of a plan of g for x, without those that bring values into another layout. */
static int steps_of(fac_device *d, const fac_graph *g, fac_tensor *x) {
    fac_error err = { 0 };
    fac_program *p;
    fac_tensor *y[NET_OUTPUTS] = { NULL };
    fac_step_stat steps[64];
    if (fac_program_new(g, d, NULL, &p, &err) || fac_program_run(p, &x, y, &err)) fail_msg("%s", err.text);
    int n = 0;
    for (size_t i = 0, all = fac_program_steps(p, steps, 64); i < all; i++) n += strcmp(steps[i].solver, "reorder") != 0;
    for (int k = 0; k < fac_graph_outputs(g); k++) fac_tensor_free(y[k]);
    fac_program_free(p);
    return n;
}

/* Factors of channels behind a convolution, as Caffe's Scale layers are written, go into its weights; others stay. */
static void factors(fac_device *d, uint64_t seed) {
    enum { K = 21 };
    static const struct { int rank, at, steps; } cases[] = { { 3, 0, 1 }, { 4, 1, 1 }, { 1, 0, 2 }, { 2, 1, 2 } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int bias = 0; bias < 2; bias++) {
            builder b = { fac_graph_new(), seed + k, 0, 0 };
            fac_dims shape = { .n = cases[k].rank, .d = { 1, 1, 1, 1 } };
            shape.d[cases[k].at] = K;
            fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(2, 16, 9, K));
            fac_value *w = param(&b, fac_shape(K, 16, 3, 3), 0.2f), *a = bias ? param(&b, fac_shape(K), 1) : NULL;
            fac_value *y = fac_conv2d(x, w, a, &(fac_conv2d_opts){ .pad = { 1, 1, 1, 1 } });
            y = bias ? fac_mul(param(&b, shape, 2), y) : fac_mul(y, param(&b, shape, 2));
            fac_output(b.g, "y", fac_relu(fac_add(y, param(&b, shape, 1))));
            fac_tensor *t = random_tensor(seed, 1, fac_shape(2, 16, 9, K), 1);
            check_network(d, b.g, t, seed + k);
            if (!strstr(fac_device_about(d), "portable")) assert_int_equal(steps_of(d, b.g, t), cases[k].steps);
            fac_tensor_free(t);
            fac_graph_free(b.g);
        }
}

/* A convolution whose result another node reads too keeps its weights. */
static void shared(fac_device *d, uint64_t seed) {
    builder b = { fac_graph_new(), seed, 0, 0 };
    fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(1, 16, 8, 8)), *y = conv(&b, x, 32, 3, 1, 1);
    fac_output(b.g, "y", fac_mul(y, param(&b, fac_shape(32, 1, 1), 2)));
    fac_output(b.g, "z", y);
    fac_tensor *t = random_tensor(seed, 1, fac_shape(1, 16, 8, 8), 1);
    check_network(d, b.g, t, seed);
    fac_tensor_free(t);
    fac_graph_free(b.g);
}

static uint64_t seed;
static void test_factors(void **s) { (void)s, check_everywhere(factors, seed); }
static void test_shared(void **s) { (void)s, check_everywhere(shared, seed); }

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_factors), cmocka_unit_test(test_shared) };
    seed = check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
