/* Every solver of the cpu for gradients of convolutions against the reference: random and awkward
 * shapes, every instruction set. */
#include "cpu_check.h"

typedef struct shape {
    int64_t N, C, H, W, K, R, S, groups;
    fac_conv2d_opts o;
} shape;

static fac_value *input(fac_graph *g, const char *name, fac_dims d) {
    return fac_input(g, name, FAC_F32, d);
}

enum {
    ADDED = 1,
    MASKED = 2,
    BIASED = 4,
    CUT = 8
}; /* bodies: dx + x1, where(mask > 0.25, dx, 0), or the mask of the sum; a number for each channel
      is added first; a relu comes last */

/* With such a body. */
static fac_value *with(fac_graph *g, fac_value *dx, int how) {
    fac_value *in[6] = { dx->node->in[0], dx->node->in[1], dx->node->in[2] };
    int n = 3;
    if (!how) return dx;
    fac_graph *body = fac_graph_new();
    fac_value *y = input(body, "x0", dx->type.dims);
    if (how & BIASED) {
        const fac_dims each = fac_shape(dx->type.dims.d[1], 1, 1);
        in[n++] = input(g, "bias", each);
        y = fac_add(y, input(body, "b", each));
    }
    if (how & ADDED) {
        in[n++] = input(g, "residual", dx->type.dims);
        y = fac_add(y, input(body, "x1", dx->type.dims));
    }
    if (how & MASKED) {
        in[n++] = input(g, "mask", dx->type.dims);
        fac_value *test =
            fac_less_or_equal(input(body, "mask", dx->type.dims), fac_number(body, FAC_F32, 0.25));
        y = fac_where(test, fac_number(body, FAC_F32, 0), y);
        check_nan_in = n - 1;
    }
    if (how & CUT) y = fac_relu(y);
    fac_output(body, "y", y);
    return fac_emit_body(g, dx->node->op, dx->node->attrs, n, 3, in, body, NULL);
}

/* Whether the solver, which is one of conv2d_grad_x or conv2d_grad_w, took it with this body. */
static bool grad_with(fac_device *d, const char *solver, const shape *s, int how, uint64_t seed) {
    fac_error err = { 0 };
    fac_graph *g = fac_graph_new();
    fac_conv2d_opts o = s->o;
    o.groups = s->groups;
    fac_value *x = input(g, "x", fac_shape(s->N, s->C, s->H, s->W));
    fac_value *w = input(g, "w", fac_shape(s->K, s->C / s->groups, s->R, s->S));
    fac_value *y = fac_conv2d(x, w, NULL, &o);
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
    fac_value *dy = input(g, "dy", y->type.dims);
    fac_value *to = strstr(solver, "grad_x") ? fac_conv2d_grad_x(dy, w, x, &o)
                                             : fac_conv2d_grad_w(x, dy, w, &o);
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
    fac_value *whole = with(g, to, how);
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
    check_nan = how & MASKED; /* which lets NaN pass */
    bool took = check_solver(d, solver, whole->node, to->node, seed);
    check_nan = false;
    check_nan_in = 0;
    fac_graph_free(g);
    return took;
}

/* Gradients by x that are convolutions take all of the bodies. */
static bool grad(fac_device *d, const char *solver, const shape *s, uint64_t seed) {
    const bool bodies = strstr(solver, "grad_x") && !strstr(solver, "depthwise");
    return grad_with(d, solver, s, bodies ? (int)check_pick(seed, 50, 0, ADDED | MASKED) : 0, seed);
}

/* Dilation along a row only where `dilated`. */
static shape random_shape(uint64_t seed, int64_t channels, bool dilated) {
    shape s = { .N = check_pick(seed, 0, 1, 3),
                .C = channels,
                .K = check_pick(seed, 1, 1, 70),
                .R = check_pick(seed, 2, 1, 5),
                .S = check_pick(seed, 3, 1, 5),
                .groups = 1 };
    for (uint64_t k = 0; k < 2; k++) {
        s.o.stride[k] = check_pick(seed, 4 + k, 1, 3);
        s.o.dilation[k] = check_pick(seed, 6 + k, 1, k && !dilated ? 1 : 2);
    }
    for (int k = 0; k < 4; k++) s.o.pad[k] = check_pick(seed, 8 + (uint64_t)k, 0, 3);
    s.H = check_pick(seed, 12, 1, 20) + (s.R - 1) * s.o.dilation[0];
    s.W = check_pick(seed, 13, 1, 40) + (s.S - 1) * s.o.dilation[1];
    if (check_pick(seed, 14, 0, 3) == 0) {
        s.R = s.S = 1;
        s.o = (fac_conv2d_opts){ .stride = { 1 + (int64_t)(seed % 2), 1 + (int64_t)(seed % 2) } };
    }
    return s;
}

static void all(fac_device *d, const char *solver, const shape *shapes, size_t n, uint64_t seed) {
    for (size_t k = 0; k < n; k++)
        if (!grad(d, solver, &shapes[k], seed + k))
            fail_msg("%s does not take shape %zu", solver, k);
}

static void w_direct(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 8; k++) {
        shape s = random_shape(seed + k, check_pick(seed + k, 20, 1, 70), true);
        shape few = random_shape(seed + k, 1 + (int64_t)(k % 4), false);
        assert_true(grad(d, "conv2d_grad_w/direct", &s, seed + k));
        assert_true(grad(d, "conv2d_grad_w/first", &few, seed + k));
    }
    /* whole images in a strip, strips that do not come out even, rows dealt out in parts, more taps
     * than a tile has */
    static const shape fixed[] = {
        { 9, 40, 7, 7, 33, 3, 3, 1, { .pad = { 1, 1, 1, 1 } } },
        { 2, 17, 31, 90, 20, 3, 3, 1, { .pad = { 1, 1, 1, 1 } } },
        { 3, 16, 56, 40, 24, 1, 1, 1, { .groups = 1 } },
        { 1, 150, 5, 9, 300, 1, 1, 1, { .groups = 1 } },
        { 2, 90, 20, 31, 130, 1, 1, 1, { .stride = { 2, 2 } } },
        { 1, 100, 9, 7, 140, 3, 3, 1, { .pad = { 1, 1, 1, 1 } } },
        { 2, 70, 14, 14, 70, 3, 3, 1, { .stride = { 2, 2 }, .pad = { 1, 1, 1, 1 } } },
        { 1, 272, 3, 5, 290, 3, 3, 1, { .pad = { 1, 1, 1, 1 } } }
    };
    static const shape first[] = {
        { 3, 3, 65, 63, 40, 7, 7, 1, { .stride = { 2, 2 }, .pad = { 3, 3, 3, 3 } } },
        { 2, 1, 28, 28, 6, 5, 5, 1, { .pad = { 2, 2, 2, 2 } } },
        { 1, 3, 40, 50, 20, 11, 11, 1, { .stride = { 4, 4 } } }
    };
    all(d, "conv2d_grad_w/direct", fixed, sizeof fixed / sizeof *fixed, seed);
    all(d, "conv2d_grad_w/first", first, sizeof first / sizeof *first, seed);
    shape grouped = { 1, 32, 8, 8, 32, 3, 3, 2, { .pad = { 1, 1, 1, 1 } } };
    assert_false(grad(d, "conv2d_grad_w/direct", &grouped, seed));
}

static void w_depthwise(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 10; k++) {
        shape s = random_shape(seed + k, check_pick(seed + k, 20, 1, 70), true);
        if (k % 3 == 0) {
            s.R = s.S = 3;
            s.H += 5;
            s.W += 5;
        }
        if (k % 7 == 0) {
            s.S = 7;
            s.W += 20;
        }
        s.groups = s.K = s.C;
        assert_true(grad(d, "conv2d_grad_w/depthwise", &s, seed + k));
    }
    static const shape fixed[] = {
        { 2, 20, 60, 57, 20, 3, 3, 20, { .pad = { 1, 1, 1, 1 } } },
        { 3, 300, 7, 7, 300, 3, 3, 300, { .stride = { 2, 2 }, .pad = { 1, 1, 1, 1 } } }
    };
    all(d, "conv2d_grad_w/depthwise", fixed, sizeof fixed / sizeof *fixed, seed);
}

/* Stride 1, and no more padding than the kernel reaches: then it is a convolution. */
static shape convolution_like(uint64_t seed, int64_t channels) {
    shape s = random_shape(seed, channels, true);
    for (int k = 0; k < 2; k++) {
        int64_t reach = ((k ? s.S : s.R) - 1) * s.o.dilation[k];
        s.o.stride[k] = 1;
        if (s.o.pad[k] > reach) s.o.pad[k] = reach;
        if (s.o.pad[2 + k] > reach) s.o.pad[2 + k] = reach;
    }
    return s;
}

static void x_direct(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 8; k++) {
        shape s = convolution_like(seed + k, check_pick(seed + k, 20, 1, 70)), deep = s;
        assert_true(grad(d, "conv2d_grad_x/direct", &s, seed + k));
        s.groups = s.K = s.C;
        assert_true(grad(d, "conv2d_grad_x/depthwise", &s, seed + k));
        deep.groups = 2;
        deep.C = 32;
        deep.K = 64;
        assert_true(grad(d, "conv2d_grad_x/direct", &deep, seed + k));
    }
    /* narrow images: rows two by two, and lists of pixels; many tiles, whose masks are brought in
     * during the sums */
    static const shape fixed[] = {
        { 2, 40, 7, 7, 70, 3, 3, 1, { .pad = { 1, 1, 1, 1 } } },
        { 2, 33, 14, 14, 200, 1, 1, 1, { .groups = 1 } },
        { 1, 64, 9, 31, 100, 1, 1, 1, { .groups = 1 } },
        { 1, 48, 6, 28, 64, 3, 3, 1, { .pad = { 1, 1, 1, 1 } } },
        { 1, 40, 7, 7, 290, 3, 3, 1, { .pad = { 1, 1, 1, 1 } } }
    }; /* in slices */
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++)
        for (int how = 0; how <= (ADDED | MASKED); how++)
            assert_true(grad_with(d, "conv2d_grad_x/direct", &fixed[k], how, seed + k));
    shape depthwise = { 1, 16, 9, 9, 16, 3, 3, 16, { .pad = { 1, 1, 1, 1 } } };
    assert_false(grad_with(d, "conv2d_grad_x/depthwise", &depthwise, MASKED, seed));
    shape strided = { 1, 16, 9, 9, 16, 3, 3, 1, { .stride = { 1, 2 }, .pad = { 1, 1, 1, 1 } } };
    assert_false(grad(d, "conv2d_grad_x/direct", &strided, seed));
    shape wide = { 1, 16, 9, 9, 16, 3, 3, 1, { .pad = { 3, 3, 3, 3 } } };
    assert_false(grad(d, "conv2d_grad_x/direct", &wide, seed));
}

static void x_strided(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 10; k++) {
        shape s = random_shape(seed + k, check_pick(seed + k, 20, 2, 70), true);
        for (uint64_t i = 0; i < 2; i++) {
            s.o.dilation[i] = 1;
            s.o.stride[i] = check_pick(seed + k, 30 + i, 1, 4);
        }
        if (s.o.stride[0] == 1 && s.o.stride[1] == 1) s.o.stride[k % 2] = 2;
        s.H += 8; /* windows may end before the image does */
        s.W += 8;
        assert_true(grad(d, "conv2d_grad_x/strided", &s, seed + k));
        s.groups = s.K = s.C;
        assert_true(grad(d, "conv2d_grad_x/strided_depthwise", &s, seed + k));
    }
    static const shape fixed[] = {
        { 4, 60, 14, 14, 70, 3, 3, 1, { .stride = { 2, 2 }, .pad = { 1, 1, 1, 1 } } },
        { 2, 20, 15, 29, 40, 1, 1, 1, { .stride = { 2, 2 } } },
        { 1, 35, 65, 67, 20, 3, 3, 1, { .stride = { 2, 2 }, .pad = { 0, 1, 1, 0 } } }
    };
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++)
        for (int how = 0; how <= (ADDED | MASKED); how++)
            assert_true(grad_with(d, "conv2d_grad_x/strided", &fixed[k], how, seed + k));
    static const int biased[] = { BIASED, BIASED | CUT, BIASED | ADDED | CUT, CUT };
    for (size_t k = 0; k < 4 * sizeof fixed / sizeof *fixed; k++) {
        const shape *s = &fixed[k / 4]; /* the second one leaves pixels that no tap reaches */
        assert_int_equal(grad_with(d, "conv2d_grad_x/strided", s, biased[k % 4], seed + k),
                         s->R > 1);
    }
}

/* Kernels of 2 x 2 and stride 2, as of transposed convolutions; tiles of one row, of several. */
static void x_doubled(fac_device *d, uint64_t seed) {
    static const int hows[] = { 0, BIASED, BIASED | CUT, CUT };
    for (uint64_t k = 0; k < 12; k++) {
        const int64_t P = check_pick(seed + k, 40, 1, 20), Q = check_pick(seed + k, 41, 1, 90);
        shape s = { check_pick(seed + k, 42, 1, 3),
                    check_pick(seed + k, 43, 1, 40),
                    2 * P,
                    2 * Q,
                    check_pick(seed + k, 44, 1, 40),
                    2,
                    2,
                    1,
                    { .stride = { 2, 2 } } };
        const bool taken = grad_with(d, "conv2d_grad_x/doubled", &s, hows[k % 4], seed + k);
        if (P * Q >= 48) assert_true(taken); /* three vectors of sixteen */
    }
    const shape odd = { 1, 8, 17, 16, 8, 2, 2, 1, { .stride = { 2, 2 } } };
    assert_false(grad(d, "conv2d_grad_x/doubled", &odd, seed));
}

/* Of x and of w. */
static void winograd(fac_device *d, const char *const solvers[3], uint64_t seed) {
    check_largest = true;
    for (uint64_t k = 0; k < 6; k++) {
        shape s = convolution_like(seed + k, check_pick(seed + k, 20, 1, 70));
        s.R = s.S = k % 3 == 2 ? 5 : 3;
        s.o = (fac_conv2d_opts){ .pad = { 1, (int64_t)(k % 3), 1, 2 } };
        s.H += 5;
        s.W += 5;
        assert_true(grad(d, solvers[k % 3], &s, seed + k));
    }
    /* many tiles, so that they come in blocks; more channels than an item has */
    static const shape fixed[] = { { 4, 96, 7, 7, 80, 3, 3, 1, { .pad = { 1, 1, 1, 1 } } },
                                   { 1, 60, 85, 83, 70, 3, 3, 1, { .pad = { 1, 1, 1, 1 } } } };
    all(d, solvers[1], fixed, sizeof fixed / sizeof *fixed, seed);
    for (int how = 0; how <= (ADDED | MASKED) && strstr(solvers[1], "grad_x"); how++)
        assert_true(grad_with(d, solvers[1], &fixed[1], how, seed));
    check_largest = false;
}

static void x_winograd(fac_device *d, uint64_t seed) {
    static const char *const solvers[] = { "conv2d_grad_x/winograd_2x2",
                                           "conv2d_grad_x/winograd_4x4",
                                           "conv2d_grad_x/winograd_5x5" };
    winograd(d, solvers, seed);
}

static void w_winograd(fac_device *d, uint64_t seed) {
    static const char *const solvers[] = { "conv2d_grad_w/winograd_2x2",
                                           "conv2d_grad_w/winograd_4x4",
                                           "conv2d_grad_w/winograd_5x5" };
    winograd(d, solvers, seed);
    /* several groups of channels and of tiles */
    static const shape wide[] = { { 1, 150, 9, 9, 170, 3, 3, 1, { .pad = { 1, 1, 1, 1 } } },
                                  { 2, 40, 61, 58, 40, 3, 3, 1, { .pad = { 1, 1, 1, 1 } } } };
    check_largest = true;
    for (int k = 0; k < 2; k++) all(d, solvers[k], wide, sizeof wide / sizeof *wide, seed);
    check_largest = false;
}

static uint64_t seed;
static void test_w_direct(void **s) { (void)s, check_everywhere(w_direct, seed); }
static void test_x_direct(void **s) { (void)s, check_everywhere(x_direct, seed + 1000); }
static void test_w_depthwise(void **s) { (void)s, check_everywhere(w_depthwise, seed + 5000); }
static void test_x_doubled(void **s) { (void)s, check_everywhere(x_doubled, seed + 9000); }
static void test_x_strided(void **s) { (void)s, check_everywhere(x_strided, seed + 4000); }
static void test_x_winograd(void **s) { (void)s, check_everywhere(x_winograd, seed + 2000); }
static void test_w_winograd(void **s) { (void)s, check_everywhere(w_winograd, seed + 3000); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_w_direct),    cmocka_unit_test(test_x_direct),
        cmocka_unit_test(test_x_strided),   cmocka_unit_test(test_x_doubled),
        cmocka_unit_test(test_w_depthwise), cmocka_unit_test(test_x_winograd),
        cmocka_unit_test(test_w_winograd)
    };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
