/* Whole random networks through programs of the cpu, on every instruction set, against the
 * reference kernels: layouts handed from solver to solver, halos, bodies, batches, branches that
 * meet again. */
#include "net_check.h"

static fac_value *layer(builder *b, fac_value *x) {
    int64_t C = fac_value_type(x).dims.d[1], K = pick(b, 1, 50), H = fac_value_type(x).dims.d[2];
    fac_pool2d_opts p = { .stride = { pick(b, 1, 2), 0 }, .pad = { 1, 1, 1, 1 } };
    p.stride[1] = p.stride[0];
    switch (H > 4 ? pick(b, 0, 7) : pick(b, 0, 3)) {
    case 0:
        return activation(b, conv(b, x, K, 3, 1, 1));
    case 1:
        return activation(b, conv(b, x, K, 1, 1, 1));
    case 2:
        return fac_relu(
            fac_add(conv(b, activation(b, conv(b, x, K, 3, 1, 1)), C, 1, 1, 1), x)); /* residual */
    case 3:
        return activation(b, conv(b, x, C, 3, 1, C)); /* depthwise */
    case 4:
        return activation(b, conv(b, x, K, 3, 2, 1));
    case 5:
        return fac_max_pool2d(x, 3, 3, &p);
    case 6:
        return fac_avg_pool2d(x, 2, 2, &p);
    default:
        return fac_mul(conv(b, x, K, 5, 2, 1),
                       fac_sigmoid(conv(b, fac_mean(x, fac_shape(2, 3), true), K, 1, 1, 1)));
    }
}

static fac_graph *network(uint64_t seed, int64_t *height, int64_t *width, int64_t *channels) {
    builder b = { fac_graph_new(), seed, 0, 0 };
    *channels = pick(&b, 1, 4);
    *height = pick(&b, 9, 40);
    *width = pick(&b, 9, 40);
    fac_value *x =
        fac_input(b.g, "x", FAC_F32, fac_shape(fac_symbol(b.g, "N"), *channels, *height, *width));
    for (int64_t k = pick(&b, 2, 6); k > 0; k--) x = layer(&b, x);
    fac_output(b.g, "features", x);
    x = fac_mean(x, fac_shape(2, 3), false);
    int64_t C = fac_value_type(x).dims.d[1];
    fac_output(b.g, "y",
               fac_linear(x, param(&b, fac_shape(21, C), 1), param(&b, fac_shape(21), 1)));
    return b.g;
}

static void networks(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 12; k++) {
        int64_t H, W, C;
        fac_graph *g = network(seed + k, &H, &W, &C);
        fac_tensor *x = random_tensor(seed + k, 1, fac_shape(1 + (int64_t)(k % 3), C, H, W), 1);
        check_network(d, g, x, seed + k);
        fac_tensor_free(x);
        fac_graph_free(g);
    }
}

/* A solver asked for by name, and what it says when the problem is not its own. */
static void forced(fac_device *d, uint64_t seed) {
    static const struct {
        const char *solver;
        int64_t C, groups;
        bool takes;
    } cases[] = { { "conv2d/direct", 32, 1, true }, { "conv2d/gemm", 32, 1, true },
                  { "conv2d/first", 3, 1, true },   { "conv2d/depthwise", 32, 32, true },
                  { "conv2d/first", 32, 1, false }, { "conv2d/depthwise", 32, 1, false } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        builder b = { fac_graph_new(), seed, 0, 0 };
        fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(2, cases[k].C, 13, 11));
        fac_value *y = fac_relu(conv(&b, x, 32, 3, 1, cases[k].groups));
        fac_output(b.g, "y", y);
        fac_output(b.g, "z", fac_neg(y));
        fac_tensor *t = random_tensor(seed, 1, fac_shape(2, cases[k].C, 13, 11), 1);
        if (cases[k].takes) {
            float *want[2], *got[2];
            size_t n[2];
            run(d, b.g, &(fac_program_opts){ .solver = "ref" }, t, want, n);
            run(d, b.g, &(fac_program_opts){ .solver = cases[k].solver }, t, got, n);
            for (int o = 0; o < 2; o++) {
                for (size_t i = 0; i < n[o]; i++)
                    assert_true(fabsf(got[o][i] - want[o][i]) <= 1e-5f);
                free(want[o]), free(got[o]);
            }
        } else {
            fac_program *p = NULL;
            fac_tensor *none[2] = { NULL, NULL };
            fac_error err = { 0 };
            fac_status s =
                fac_program_new(b.g, d, &(fac_program_opts){ .solver = cases[k].solver }, &p, &err);
            if (!s) s = fac_program_run(p, &t, none, &err);
            assert_int_equal(s, FAC_E_UNSUPPORTED);
            fac_program_free(p);
        }
        fac_tensor_free(t);
        fac_graph_free(b.g);
    }
}

/* Scratch that is each thread's own: in one place for all layers of a size, where no value lies. */
static void own_scratch(fac_device *d, uint64_t seed) {
    builder b = { fac_graph_new(), seed, 0, 0 };
    fac_error err = { 0 };
    fac_program *p = NULL;
    fac_arena_part part[8];
    fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(1, 32, 30, 30));
    for (int k = 0; k < 3; k++) x = fac_relu(conv(&b, x, 32, 3, 1, 1));
    fac_output(b.g, "y", x);
    fac_tensor *t = random_tensor(seed, 1, fac_shape(1, 32, 30, 30), 1), *y = NULL;
    const fac_program_opts o = { .solver = "conv2d/winograd_4x4" };
    if (fac_program_new(b.g, d, &o, &p, &err) || fac_program_run(p, &t, &y, &err))
        fail_msg("%s", err.text);
    const size_t n = fac_program_arena(p, part, 8);
    size_t values = 0, scratch = 0, at = 0;
    assert_true(n > 3 && n <= 8);
    for (size_t k = 0; k < n; k++)
        if (!part[k].scratch && part[k].at + part[k].bytes > values)
            values = part[k].at + part[k].bytes;
    for (size_t k = 0; k < n; k++) {
        if (!part[k].scratch) continue;
        assert_true(part[k].at >= values && (!scratch || part[k].at == at));
        at = part[k].at, scratch++;
    }
    assert_int_equal(scratch, 3);
    fac_tensor_free(t), fac_tensor_free(y);
    fac_program_free(p);
    fac_graph_free(b.g);
}

static uint64_t seed;
static void test_own_scratch(void **s) { (void)s, check_everywhere(own_scratch, seed); }
static void test_networks(void **s) { (void)s, check_everywhere(networks, seed); }
static void test_forced(void **s) { (void)s, check_everywhere(forced, seed); }

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_networks),
                                        cmocka_unit_test(test_forced),
                                        cmocka_unit_test(test_own_scratch) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
