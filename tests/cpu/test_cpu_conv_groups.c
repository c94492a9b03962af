/* Convolutions with groups, as products, and of three dims on the cpu. */
#include "cpu_conv_check.h"

static void depthwise(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 40; k++) {
        shape s = random_shape(seed + k, check_pick(seed + k, 20, 1, 70));
        s.K = s.groups = s.C;
        s.H += 5;
        s.W += 5;
        if (k % 4 == 0) {
            s.R = s.S = 3;
            s.o.dilation[0] = s.o.dilation[1] = 1;
            s.o.stride[1] = 1 + (int64_t)(k / 4 % 2);
        }
        if (k % 4 == 1) {
            s.R = s.S = 5;
            s.o.dilation[0] = s.o.dilation[1] = 1;
            s.o.stride[1] = 1 + (int64_t)(k / 4 % 2);
        }
        assert_true(conv(d, "conv2d/depthwise", &s, seed + k));
    }
}

/* Groups smaller than a vector: what is smaller depends on the instruction set. */
static void grouped(fac_device *d, uint64_t seed) {
    int64_t lanes = ((const fac_cpu *)d)->simd->lanes;
    for (uint64_t k = 0; k < 24; k++) {
        shape s = random_shape(seed + k, 1);
        int64_t group = (int64_t)2 << k % 3;
        s.groups = check_pick(seed + k, 20, 2, 9);
        s.K = s.C = s.groups * group;
        s.H += 5;
        s.W += 5;
        if (k % 4 < 2) {
            s.R = s.S = 3;
            s.o.dilation[0] = s.o.dilation[1] = 1;
            s.o.stride[1] = 1 + (int64_t)(k % 4);
        }
        assert_int_equal(conv(d, "conv2d/grouped", &s, seed + k), group < lanes);
    }
    shape odd = { 1, 9, 9, 9, 9, 3, 3, 3, { .pad = { 1, 1, 1, 1 } }, true, 0 };
    assert_false(conv(d, "conv2d/grouped", &odd, seed));
}

static void gemm(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 40; k++) {
        shape s = random_shape(seed + k, 1);
        s.groups = check_pick(seed + k, 20, 1, 3);
        s.C = s.groups * check_pick(seed + k, 21, 1, 9);
        s.K = s.groups * check_pick(seed + k, 22, 1, 25);
        assert_true(conv(d, "conv2d/gemm", &s, seed + k));
    }
    shape deep = {
        1, 130, 9, 9, 40, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, true, 3
    }; /* several slabs of the sum */
    assert_true(conv(d, "conv2d/gemm", &deep, seed));
}

/* One row of outputs and kernels of one column, which are not what a 1 x 1 kernel sees: 3 x 1 on
 * an image of one row, on one of three, and rows or pixels that are skipped. */
static void one_row(fac_device *d, uint64_t seed) {
    static const char *const solvers[] = { "conv2d/gemm", "conv2d/direct", "conv2d/first",
                                           "conv2d/grouped" };
    for (uint64_t k = 0; k < 32; k++) {
        const int64_t W = check_pick(seed + k, 0, 1, 40);
        shape s = { .N = 2, .C = 8, .K = 9, .H = 1, .W = W, .R = 3, .S = 1, .groups = 1 };
        s.o.pad[0] = s.o.pad[2] = k % 4 == 0;
        if (k % 4) s.H = 3;
        if (k % 4 >= 2) {
            s.R = 1;
            s.o.stride[0] = 3;
        }
        if (k % 4 == 3) {
            s.o.stride[1] = 2;
            s.o.pad[1] = s.o.pad[3] = W / 2;
        }
        s.body = k / 4 % 2 ? 3 : 0;
        for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++)
            assert_true(conv(d, solvers[i], &s, seed + k) || i);
    }
}

static void volume(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 15; k++) {
        fac_error err = { 0 };
        fac_graph *g = fac_graph_new();
        int64_t groups = check_pick(seed + k, 0, 1, 2), T = check_pick(seed + k, 1, 1, 3),
                R = check_pick(seed + k, 2, 1, 3);
        fac_conv3d_opts o = { .groups = groups };
        for (uint64_t i = 0; i < 3; i++) {
            o.stride[i] = check_pick(seed + k, 3 + i, 1, 2);
            o.dilation[i] = check_pick(seed + k, 6 + i, 1, 2);
        }
        for (uint64_t i = 0; i < 6; i++) o.pad[i] = check_pick(seed + k, 9 + i, 0, 2);
        const bool row = k % 5 == 4; /* of outputs, and a kernel of one column */
        const int64_t D = row ? (T - 1) * o.dilation[0] + 1 : (int64_t)(6 + k % 3);
        const int64_t H = row ? (R - 1) * o.dilation[1] + 1 : 7;
        if (row) memset(o.pad, 0, sizeof o.pad);
        fac_value *x = input(g, 0, fac_shape(2, groups * 3, D, H, 9));
        fac_value *w = input(g, 1, fac_shape(groups * 5, 3, T, R, row ? 1 : 3));
        fac_value *y = fac_conv3d(x, w, input(g, 2, fac_shape(groups * 5)), &o);
        if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
        assert_true(check_solver(d, "conv3d/gemm", y->node, y->node, seed + k));
        fac_graph_free(g);
    }
}

static uint64_t seed;

static void test_depthwise(void **s) { (void)s, check_everywhere(depthwise, seed + 2000); }
static void test_grouped(void **s) { (void)s, check_everywhere(grouped, seed + 8000); }
static void test_gemm(void **s) { (void)s, check_everywhere(gemm, seed + 3000); }
static void test_one_row(void **s) { (void)s, check_everywhere(one_row, seed + 9000); }
static void test_volume(void **s) { (void)s, check_everywhere(volume, seed + 4000); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_depthwise), cmocka_unit_test(test_grouped),
        cmocka_unit_test(test_gemm),      cmocka_unit_test(test_one_row),
        cmocka_unit_test(test_volume),
    };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
