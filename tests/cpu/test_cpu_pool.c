/* Pools of the cpu: windows of all kinds, and what is not a number. */
#include "cpu_conv_check.h"

static void pools(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 40; k++) {
        fac_error err = { 0 };
        fac_graph *g = fac_graph_new();
        uint64_t s = seed + k;
        fac_pool2d_opts o = { .ceil_mode = check_pick(s, 0, 0, 1),
                              .count_include_pad = check_pick(s, 1, 0, 1) };
        int64_t R = check_pick(s, 2, 1, 5), S = check_pick(s, 3, 1, 5);
        for (uint64_t i = 0; i < 2; i++) {
            o.stride[i] = check_pick(s, 4 + i, 1, 3);
            o.dilation[i] = check_pick(s, 6 + i, 1, 2);
        }
        for (uint64_t i = 0; i < 4; i++) o.pad[i] = check_pick(s, 8 + i, 0, i % 2 ? S / 2 : R / 2);
        int64_t W = k % 8 ? check_pick(s, 12, 10, 30) : 300;
        fac_value *x = input(g, 0,
                             fac_shape(check_pick(s, 13, 1, 2), check_pick(s, 14, 1, 40),
                                       check_pick(s, 15, 10, 30), W));
        fac_value *y = k % 2 ? fac_max_pool2d(x, R, S, &o) : fac_avg_pool2d(x, R, S, &o);
        if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
        assert_true(check_solver(d, k % 2 ? "max_pool2d/blocked" : "avg_pool2d/blocked", y->node,
                                 y->node, s));
        fac_graph_free(g);
    }
}

/* NaN stays where the definition has it, through relu, clip and maxima. */
static void nans(fac_device *d, uint64_t seed) {
    static const char *const solvers[] = { "conv2d/direct", "conv2d/gemm", "conv2d/first",
                                           "conv2d/depthwise" };
    check_nan = true;
    for (uint64_t k = 0; k < 16; k++) {
        static const int channels[] = { 5, 5, 2, 5 }, groups[] = { 1, 1, 1, 5 };
        shape s = { 1,    channels[k % 4], 9, 17, 5, 2, 1, groups[k % 4], { .stride = { 2, 1 } },
                    true, (int)(k / 4) };
        assert_true(conv(d, solvers[k % 4], &s, seed + k));
    }
    for (int average = 0; average < 2; average++) {
        fac_graph *g = fac_graph_new();
        fac_value *x = input(g, 0, fac_shape(1, 21, 13, 19));
        fac_value *y = average ? fac_avg_pool2d(x, 2, 2, NULL) : fac_max_pool2d(x, 2, 3, NULL);
        assert_true(check_solver(d, average ? "avg_pool2d/blocked" : "max_pool2d/blocked", y->node,
                                 y->node, seed));
        fac_graph_free(g);
    }
    check_nan = false;
}

static uint64_t seed;

static void test_pools(void **s) { (void)s, check_everywhere(pools, seed + 5000); }
static void test_nans(void **s) { (void)s, check_everywhere(nans, seed + 7000); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_nans),
    };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
