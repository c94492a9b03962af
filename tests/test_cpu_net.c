/* Whole random networks through programs of the cpu, on every instruction set, against the reference kernels: layouts handed from
 * solver to solver, halos, bodies, batches, branches that meet again. */
#include "cpu_check.h"

static fac_tensor *random_tensor(uint64_t seed, uint64_t stream, fac_dims d, float size) {
    fac_tensor *t;
    fac_error err;
    size_t n = (size_t)fac_dims_count(&d);
    float *x = malloc(n * 4);
    fac_random_fill(seed, stream, -size, size, n, x);
    if (fac_tensor_new(NULL, FAC_F32, d, &t, &err) || fac_tensor_write(t, x, n * 4, &err)) fail_msg("%s", err.text);
    free(x);
    return t;
}

typedef struct builder { fac_graph *g; uint64_t seed, picks, params; } builder;

static int64_t pick(builder *b, int64_t lo, int64_t hi) { return check_pick(b->seed, b->picks++, lo, hi); }

static fac_value *param(builder *b, fac_dims d, float size) {
    char name[16];
    snprintf(name, sizeof name, "p%d", (int)b->params);
    fac_tensor *t = random_tensor(b->seed, 1000 + b->params++, d, size);
    fac_value *v = fac_param(b->g, name, t);
    fac_tensor_free(t);
    return v;
}

/* K, C / groups, R, R with the weights' size chosen so that y stays about as large as x. */
static fac_value *conv(builder *b, fac_value *x, int64_t K, int64_t R, int64_t stride, int64_t groups) {
    int64_t C = fac_value_type(x).dims.d[1] / groups, pad = R / 2;
    fac_value *w = param(b, fac_shape(K, C, R, R), sqrtf(3.0f / (float)(C * R * R)));
    return fac_conv2d(x, w, pick(b, 0, 1) ? param(b, fac_shape(K), 0.1f) : NULL,
                      &(fac_conv2d_opts){ .stride = { stride, stride }, .pad = { pad, pad, pad, pad }, .groups = groups });
}

static fac_value *activation(builder *b, fac_value *x) {
    switch (pick(b, 0, 4)) {
    case 0: return fac_relu(x);
    case 1: return fac_relu6(x);
    case 2: return fac_silu(x);
    case 3: return fac_hard_swish(x);
    default: return x;
    }
}

static fac_value *layer(builder *b, fac_value *x) {
    int64_t C = fac_value_type(x).dims.d[1], K = pick(b, 1, 50), H = fac_value_type(x).dims.d[2];
    fac_pool2d_opts p = { .stride = { pick(b, 1, 2), 0 }, .pad = { 1, 1, 1, 1 } };
    p.stride[1] = p.stride[0];
    switch (H > 4 ? pick(b, 0, 7) : pick(b, 0, 3)) {
    case 0: return activation(b, conv(b, x, K, 3, 1, 1));
    case 1: return activation(b, conv(b, x, K, 1, 1, 1));
    case 2: return fac_relu(fac_add(conv(b, activation(b, conv(b, x, K, 3, 1, 1)), C, 1, 1, 1), x));        /* residual */
    case 3: return activation(b, conv(b, x, C, 3, 1, C));                                                   /* depthwise */
    case 4: return activation(b, conv(b, x, K, 3, 2, 1));
    case 5: return fac_max_pool2d(x, 3, 3, &p);
    case 6: return fac_avg_pool2d(x, 2, 2, &p);
    default: return fac_mul(conv(b, x, K, 5, 2, 1), fac_sigmoid(conv(b, fac_mean(x, fac_shape(2, 3), true), K, 1, 1, 1)));
    }
}

static fac_graph *network(uint64_t seed, int64_t *height, int64_t *width, int64_t *channels) {
    builder b = { fac_graph_new(), seed, 0, 0 };
    *channels = pick(&b, 1, 4), *height = pick(&b, 9, 40), *width = pick(&b, 9, 40);
    fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(fac_symbol(b.g, "N"), *channels, *height, *width));
    for (int64_t k = pick(&b, 2, 6); k > 0; k--) x = layer(&b, x);
    fac_output(b.g, "features", x);
    x = fac_mean(x, fac_shape(2, 3), false);
    int64_t C = fac_value_type(x).dims.d[1];
    fac_output(b.g, "y", fac_linear(x, param(&b, fac_shape(21, C), 1), param(&b, fac_shape(21), 1)));
    return b.g;
}

static void run(fac_device *d, const fac_graph *g, const fac_program_opts *o, fac_tensor *x, float *to[2], size_t n[2]) {
    fac_error err = { 0 };
    fac_program *p;
    fac_tensor *y[2] = { NULL, NULL };
    if (fac_program_new(g, d, o, &p, &err) || fac_program_run(p, &x, y, &err)) fail_msg("%s", err.text);
    for (int k = 0; k < 2; k++) {
        fac_type t = fac_tensor_type(y[k]);
        n[k] = (size_t)fac_dims_count(&t.dims);
        to[k] = malloc(n[k] * 4);
        if (fac_tensor_read(y[k], to[k], n[k] * 4, &err)) fail_msg("%s", err.text);
        fac_tensor_free(y[k]);
    }
    fac_program_free(p);
}

static void networks(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 12; k++) {
        int64_t H, W, C;
        fac_graph *g = network(seed + k, &H, &W, &C);
        fac_error err = { 0 };
        if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
        fac_tensor *x = random_tensor(seed + k, 1, fac_shape(1 + (int64_t)(k % 3), C, H, W), 1);
        float *want[2], *got[2];
        size_t n[2], m[2];
        run(d, g, &(fac_program_opts){ .solver = "ref", .no_fuse = true }, x, want, n);
        for (int fused = 0; fused < 2; fused++) {
            run(d, g, &(fac_program_opts){ .no_fuse = !fused }, x, got, m);
            for (int o = 0; o < 2; o++) {
                assert_int_equal(n[o], m[o]);
                float most = 0;
                for (size_t i = 0; i < n[o]; i++) most = fmaxf(most, fabsf(want[o][i]));
                for (size_t i = 0; i < n[o]; i++)
                    if (!(fabsf(got[o][i] - want[o][i]) <= 2e-6f + 5e-6f * most))
                        fail_msg("%s, seed %llu, fused %d, output %d[%zu]: %.9g, expected %.9g", fac_device_about(d),
                                 (unsigned long long)(seed + k), fused, o, i, (double)got[o][i], (double)want[o][i]);
                free(got[o]);
            }
        }
        free(want[0]), free(want[1]);
        fac_tensor_free(x);
        fac_graph_free(g);
    }
}

/* A solver asked for by name, and what it says when the problem is not its own. */
static void forced(fac_device *d, uint64_t seed) {
    static const struct { const char *solver; int64_t C, groups; bool takes; } cases[] = {
        { "conv2d/direct", 32, 1, true }, { "conv2d/gemm", 32, 1, true }, { "conv2d/first", 3, 1, true },
        { "conv2d/depthwise", 32, 32, true }, { "conv2d/first", 32, 1, false }, { "conv2d/depthwise", 32, 1, false } };
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
                for (size_t i = 0; i < n[o]; i++) assert_true(fabsf(got[o][i] - want[o][i]) <= 1e-5f);
                free(want[o]), free(got[o]);
            }
        } else {
            fac_program *p = NULL;
            fac_tensor *none[2] = { NULL, NULL };
            fac_error err = { 0 };
            fac_status s = fac_program_new(b.g, d, &(fac_program_opts){ .solver = cases[k].solver }, &p, &err);
            if (!s) s = fac_program_run(p, &t, none, &err);
            assert_int_equal(s, FAC_E_UNSUPPORTED);
            fac_program_free(p);
        }
        fac_tensor_free(t);
        fac_graph_free(b.g);
    }
}

static uint64_t seed;
static void test_networks(void **s) { (void)s, check_everywhere(networks, seed); }
static void test_forced(void **s) { (void)s, check_everywhere(forced, seed); }

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_networks), cmocka_unit_test(test_forced) };
    seed = check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
