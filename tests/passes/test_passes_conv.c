/* Passes over convolutions: which nodes they leave, and that the results stay. */
#include "net_check.h"

/* Steps of a plan of g for x that this solver has, or all others. */
static int steps_by(fac_device *d, const fac_graph *g, fac_tensor *x, const char *solver,
                    bool others) {
    fac_error err = { 0 };
    fac_program *p;
    fac_tensor *y[NET_OUTPUTS] = { NULL };
    fac_step_stat steps[64];
    if (fac_program_new(g, d, NULL, &p, &err) || fac_program_run(p, &x, y, &err))
        fail_msg("%s", err.text);
    int n = 0;
    for (size_t i = 0, all = fac_program_steps(p, steps, 64); i < all; i++)
        n += (strcmp(steps[i].solver, solver) != 0) == others;
    for (int k = 0; k < fac_graph_outputs(g); k++) fac_tensor_free(y[k]);
    fac_program_free(p);
    return n;
}

/* Without those that bring values into another layout. */
static int steps_of(fac_device *d, const fac_graph *g, fac_tensor *x) {
    return steps_by(d, g, x, "reorder", true);
}

/* Factors of channels after a convolution, as Caffe's Scale layers are written, go into its
 * weights; others stay. */
static void factors(fac_device *d, uint64_t seed) {
    enum { K = 21 };
    static const struct {
        int rank, at, steps;
    } cases[] = { { 3, 0, 1 }, { 4, 1, 1 }, { 1, 0, 2 }, { 2, 1, 2 } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int bias = 0; bias < 2; bias++) {
            builder b = { fac_graph_new(), seed + k, 0, 0 };
            fac_dims shape = { .n = cases[k].rank, .d = { 1, 1, 1, 1 } };
            shape.d[cases[k].at] = K;
            fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(2, 16, 9, K));
            fac_value *w = param(&b, fac_shape(K, 16, 3, 3), 0.2f),
                      *a = bias ? param(&b, fac_shape(K), 1) : NULL;
            fac_value *y = fac_conv2d(x, w, a, &(fac_conv2d_opts){ .pad = { 1, 1, 1, 1 } });
            y = bias ? fac_mul(param(&b, shape, 2), y) : fac_mul(y, param(&b, shape, 2));
            fac_output(b.g, "y", fac_relu(fac_add(y, param(&b, shape, 1))));
            fac_tensor *t = random_tensor(seed, 1, fac_shape(2, 16, 9, K), 1);
            check_network(d, b.g, t, seed + k);
            if (!strstr(fac_device_about(d), "portable"))
                assert_int_equal(steps_of(d, b.g, t), cases[k].steps);
            fac_tensor_free(t);
            fac_graph_free(b.g);
        }
}

/* A convolution whose result another node reads too keeps its weights. */
static void shared(fac_device *d, uint64_t seed) {
    builder b = { fac_graph_new(), seed, 0, 0 };
    fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(1, 16, 8, 8)),
              *y = conv(&b, x, 32, 3, 1, 1);
    fac_output(b.g, "y", fac_mul(y, param(&b, fac_shape(32, 1, 1), 2)));
    fac_output(b.g, "z", y);
    fac_tensor *t = random_tensor(seed, 1, fac_shape(1, 16, 8, 8), 1);
    check_network(d, b.g, t, seed);
    fac_tensor_free(t);
    fac_graph_free(b.g);
}

/* Transposed convolutions run by kernels, as gradients of convolutions; also where output_pad, a
 * size that is asked for or equal sizes decide the padding. */
static void transposed(fac_device *d, uint64_t seed) {
    static const fac_conv_transpose2d_opts all[] = {
        { .stride = { 2, 2 } },
        { .stride = { 2, 3 }, .pad = { 1, 0, 1, 1 }, .output_pad = { 1, 2 } },
        { .stride = { 3, 2 }, .auto_pad = FAC_AUTO_SAME_UPPER },
        { .dilation = { 2, 1 }, .pad = { 1, 1, 1, 1 } },
        { .stride = { 3, 3 }, .output_size = { 13, 15 } }
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        builder b = { fac_graph_new(), seed + k, 0, 0 };
        fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(2, 16, 5, 5));
        fac_value *w = param(&b, fac_shape(16, 9, 2, 2), 0.2f);
        fac_value *bias = k % 2 ? NULL : param(&b, fac_shape(9), 1);
        fac_output(b.g, "y", fac_conv_transpose2d(x, w, bias, &all[k]));
        fac_tensor *t = random_tensor(seed, 1, fac_shape(2, 16, 5, 5), 1);
        check_network(d, b.g, t, seed + k);
        assert_int_equal(steps_by(d, b.g, t, "ref", false), 0);
        fac_tensor_free(t);
        fac_graph_free(b.g);
    }
}

static fac_value *pointwise(builder *b, fac_value *x, int64_t K, bool bias, int64_t stride) {
    const int64_t C = fac_value_type(x).dims.d[1];
    fac_value *w = param(b, fac_shape(K, C, 1, 1), 0.3f);
    return fac_conv2d(x, w, bias ? param(b, fac_shape(K), 1) : NULL,
                      &(fac_conv2d_opts){ .stride = { stride, stride } });
}

/* Branches of one image: those that may become one convolution, and those that may not. */
static void merged(fac_device *d, uint64_t seed) {
    enum { FIRST = 3 };
    for (int k = 0; k < 7; k++) {
        builder b = { fac_graph_new(), seed + (uint64_t)k, 0, 0 };
        fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(2, 24, 11, 14)), *y[FIRST];
        x = fac_relu(conv(&b, x, 32, 3, 1, 1));
        bool bias = k != 1, one = k < 3;
        for (int i = 0; i < FIRST; i++) {
            const int64_t K = i == 1 && k != 3 ? 20
                              : k == 3         ? 20 + i
                                               : 16 * (i + 1); /* 3: no whole blocks */
            y[i] = pointwise(&b, x, K, bias && (k != 4 || i == 0), k == 5 ? i + 1 : 1);
            if (k == 2)
                y[i] = fac_clip(y[i], fac_number(b.g, FAC_F32, -1), fac_number(b.g, FAC_F32, 1));
            else if (k != 6 || i == 0)
                y[i] = fac_relu(y[i]);
        }
        for (int i = 0; i < FIRST; i++) {
            fac_value *z =
                i ? conv(&b, y[i], 16, 2 * i + 1, 1, 1) : fac_max_pool2d(y[i], 3, 3, NULL);
            static const char *const names[FIRST] = { "a", "b", "c" };
            fac_output(b.g, names[i], z);
        }
        fac_tensor *t = random_tensor(seed, 1, fac_shape(2, 24, 11, 14), 1);
        check_network(d, b.g, t, seed);
        if (!strstr(fac_device_about(d), "portable")) {
            const int steps = steps_of(d, b.g, t);
            if (one && steps != 5) fail_msg("%s, case %d: %d steps", fac_device_about(d), k, steps);
            if (!one && steps < 6) fail_msg("%s, case %d: %d steps", fac_device_about(d), k, steps);
        }
        fac_tensor_free(t);
        fac_graph_free(b.g);
    }
}

/* A program that writes its weights keeps its convolutions apart. */
static void test_training(void **state) {
    (void)state;
    fac_device *d;
    fac_error err = { 0 };
    if (fac_device_open("cpu", NULL, &d, &err)) fail_msg("%s", err.text);
    float want[2], got[2];
    for (int fused = 0; fused < 2; fused++) {
        builder b = { fac_graph_new(), 9, 0, 0 };
        fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(1, 16, 6, 6)), *w[2], *y[2];
        for (int i = 0; i < 2; i++) {
            w[i] = param(&b, fac_shape(16, 16, 1, 1), 0.3f);
            y[i] = conv(&b, fac_relu(fac_conv2d(x, w[i], NULL, NULL)), 16, 3, 1, 1);
        }
        fac_value *loss = fac_mean(fac_mul(y[0], y[1]), fac_shape(0, 1, 2, 3), false);
        fac_output(b.g, "loss", loss);
        fac_value *dw[2];
        fac_grad(loss, 2, w, dw);
        for (int i = 0; i < 2; i++) fac_update(w[i], fac_sub(w[i], dw[i]));
        if (fac_graph_check(b.g, &err)) fail_msg("%s", err.text);
        fac_tensor *t = random_tensor(9, 1, fac_shape(1, 16, 6, 6), 1);
        fac_program *p;
        if (fac_program_new(b.g, d, &(fac_program_opts){ .no_fuse = !fused }, &p, &err))
            fail_msg("%s", err.text);
        for (int k = 0; k < 2; k++) {
            fac_tensor *out = NULL;
            float *to = &(fused ? got : want)[k];
            if (fac_program_run(p, &t, &out, &err) || fac_tensor_read(out, to, 4, &err))
                fail_msg("%s", err.text);
            fac_tensor_free(out);
        }
        fac_program_free(p);
        fac_tensor_free(t);
        fac_graph_free(b.g);
    }
    for (int k = 0; k < 2; k++) assert_true(fabsf(got[k] - want[k]) <= 1e-5f * fabsf(want[k]));
    fac_device_free(d);
}

/* Batch norms in front of convolutions, with Caffe's factors and summands after them: one step
 * each, of the solver for it. */
static void affine(fac_device *d, uint64_t seed) {
    for (int k = 0; k < 8; k++) {
        builder b = { fac_graph_new(), seed + (uint64_t)k, 0, 0 };
        const int64_t C = k % 2 ? 19 : 48;
        const int64_t H = k % 3 ? 7 : 31;
        fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(1 + k % 2, 16, H, 9));
        fac_value *y = fac_avg_pool2d(conv(&b, x, C, 3, 1, 1), 2, 2, NULL);
        fac_value *p[4], *v = param(&b, fac_shape(C), 0.4f);
        for (int i = 0; i < 4; i++) p[i] = param(&b, fac_shape(C), 1);
        y = fac_batch_norm(y, p[0], p[1], p[2], fac_mul(v, v), 1e-3);
        if (k & 4) {
            y = fac_mul(y, param(&b, fac_shape(C, 1, 1), 2));
            y = fac_add(param(&b, fac_shape(C, 1, 1), 2), y);
        }
        if (k & 2) y = k & 1 ? fac_relu6(y) : fac_relu(y);
        fac_output(b.g, "y", y);
        fac_output(b.g, "z", conv(&b, y, 24, 3, 1, 1));
        fac_tensor *t = random_tensor(seed, 1, fac_shape(1 + k % 2, 16, H, 9), 1);
        check_network(d, b.g, t, seed);
        if (!strstr(fac_device_about(d), "portable")) assert_int_equal(steps_of(d, b.g, t), 4);
        fac_tensor_free(t);
        fac_graph_free(b.g);
    }
}

/* All earlier results joined anew for each layer: after the pass nothing is joined twice. */
static void grown(fac_device *d, uint64_t seed) {
    builder b = { fac_graph_new(), seed, 0, 0 };
    fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(2, 16, 9, 8));
    fac_value *all[5] = { fac_relu(conv(&b, x, 32, 3, 1, 1)) }, *y = all[0];
    for (int k = 1; k < 5; k++) {
        all[k] = conv(&b, y, 16, 3, 1, 1);
        y = fac_concat(all, k + 1, 1);
    }
    fac_output(b.g, "y", fac_mean(y, fac_shape(2, 3), false));
    fac_tensor *t = random_tensor(seed, 1, fac_shape(2, 16, 9, 8), 1);
    check_network(d, b.g, t, seed);
    if (!strstr(fac_device_about(d), "portable")) assert_int_equal(steps_of(d, b.g, t), 6);
    fac_tensor_free(t);
    fac_graph_free(b.g);
}

static uint64_t seed;
static void test_merged(void **s) { (void)s, check_everywhere(merged, seed); }
static void test_affine(void **s) { (void)s, check_everywhere(affine, seed); }
static void test_grown(void **s) { (void)s, check_everywhere(grown, seed); }
static void test_factors(void **s) { (void)s, check_everywhere(factors, seed); }
static void test_transposed(void **s) { (void)s, check_everywhere(transposed, seed); }
static void test_shared(void **s) { (void)s, check_everywhere(shared, seed); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_factors),   cmocka_unit_test(test_shared),
        cmocka_unit_test(test_merged),    cmocka_unit_test(test_training),
        cmocka_unit_test(test_grown),     cmocka_unit_test(test_affine),
        cmocka_unit_test(test_transposed)
    };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
